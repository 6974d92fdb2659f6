"""Problems with several parts, so that steps after an error can depend on it or not. Pure."""

import random
from fractions import Fraction
from typing import NamedTuple

CALCULATION, OMISSION = "calculation", "left-out"


class PartStep(NamedTuple):
    """A step as it follows from the right value, and from the wrong one. Equal texts do not depend on the error."""

    right: str
    wrong: str

    @property
    def depends(self) -> bool:
        return self.right != self.wrong


class RecoveryProblem(NamedTuple):
    """A problem whose solution can make one error, at the first step whose texts differ."""

    problem: str
    domain: str
    steps: tuple[PartStep, ...]
    correction: str  # the step before the last one, if the solution notices the error
    kind: str  # of the error
    answers: tuple[str, str]  # the right one and the wrong one


def _both(text: str) -> PartStep:
    return PartStep(text, text)


def make_trip(dice: random.Random) -> RecoveryProblem:
    pupils, adults = dice.choice((20, 25)), dice.randint(2, 4)
    bus, ticket, lunch = dice.randint(14, 22) * 10, dice.randint(6, 9), dice.randint(4, 6)
    people = pupils + adults
    tickets, meals = people * ticket, pupils * lunch
    slip = tickets - 10
    totals = [bus + each + meals for each in (tickets, slip)]
    shares = [f"{float(Fraction(total, pupils)):.2f}" for total in totals]
    right, wrong = (
        f"Together with the bus, that is ${bus} + {each} + {meals} = {bus + each + meals}$ euros."
        for each in (tickets, slip)
    )
    right_share, wrong_share = (
        f"Each pupil pays ${total} / {pupils} = {share}$ euros." for total, share in zip(totals, shares, strict=True)
    )
    return RecoveryProblem(
        f"{pupils} pupils and {adults} adults visit a museum. The bus costs {bus} euros in all, a ticket {ticket} euros"
        f" per person, and lunch {lunch} euros per pupil; the adults bring their own. The pupils share all costs."
        " How much does each of them pay?",
        "trip",
        (
            _both(f"${pupils} + {adults} = {people}$ people need a ticket."),
            PartStep(
                f"The tickets cost ${people} \\cdot {ticket} = {tickets}$ euros.",
                f"The tickets cost ${people} \\cdot {ticket} = {slip}$ euros.",
            ),
            _both(f"Lunch costs ${pupils} \\cdot {lunch} = {meals}$ euros."),
            PartStep(right, wrong),
            PartStep(right_share, wrong_share),
        ),
        f"Let me check the tickets: ${people} \\cdot {ticket} = {tickets}$, not ${slip}$. With that,"
        f" ${bus} + {tickets} + {meals} = {totals[0]}$ euros.",
        CALCULATION,
        (shares[0], shares[1]),
    )


def make_walls(dice: random.Random) -> RecoveryProblem:
    length, width, height = dice.randint(5, 7), dice.randint(3, 4), 3
    openings, price, roller = dice.randint(6, 8), dice.randint(8, 11), dice.randint(5, 9)
    long, short = 2 * length * height, 2 * width * height
    areas = [long + each - openings for each in (short, short // 2)]
    liters = [-(-area // 8) for area in areas]
    costs = [n * price for n in liters]
    return RecoveryProblem(
        f"A room is {length} meters long, {width} meters wide and {height} meters high. Its door and window take up"
        f" {openings} square meters. One liter of paint covers 8 square meters and costs {price} euros; only full"
        f" liters are sold. A roller costs {roller} euros. What do a roller and the paint for the four walls cost?",
        "painting",
        (
            _both(f"The two long walls have $2 \\cdot {length} \\cdot {height} = {long}$ square meters."),
            PartStep(
                f"The two short walls have $2 \\cdot {width} \\cdot {height} = {short}$ square meters.",
                f"The short walls have ${width} \\cdot {height} = {short // 2}$ square meters.",
            ),
            _both(f"Whatever the area is, a roller costs {roller} euros."),
            *(
                PartStep(*pair)
                for pair in zip(
                    *(
                        (
                            f"Without door and window, ${long} + {each} - {openings} = {area}$ square meters are left,"
                            f" so {n} liters are enough.",
                            f"The paint costs ${n} \\cdot {price} = {cost}$ euros, and with the roller it is"
                            f" ${cost} + {roller} = {cost + roller}$ euros.",
                        )
                        for each, area, n, cost in zip((short, short // 2), areas, liters, costs, strict=True)
                    ),
                    strict=True,
                )
            ),
        ),
        f"There are two short walls, so they have ${short}$ square meters instead of ${short // 2}$. That leaves"
        f" ${areas[0]}$ square meters, for which I need {liters[0]} liters.",
        OMISSION,
        (str(costs[0] + roller), str(costs[1] + roller)),
    )


def make_journey(dice: random.Random) -> RecoveryProblem:
    walk, wait, ride = dice.randint(15, 25), dice.randint(8, 14), dice.randint(95, 115)
    taxi, base, rate, distance = dice.randint(12, 18), dice.randint(3, 5), dice.randint(2, 3), dice.randint(6, 9)
    start = 8 * 60 + dice.choice((10, 15, 20))
    station, leaves = start + walk, start + walk + wait
    ends = leaves + ride, leaves + ride - 10
    fare = base + rate * distance
    arrivals = [_clock(end + taxi) for end in ends]
    return RecoveryProblem(
        f"Mara leaves at {_clock(start)}. She walks {walk} minutes to the station, waits {wait} minutes, takes the"
        f" train for {ride} minutes and then a taxi for {taxi} minutes. The taxi costs {base} euros and {rate} euros"
        f" more for each of its {distance} kilometers. When does she arrive, and what does the taxi cost?",
        "journey",
        (
            _both(f"She reaches the station at {_clock(station)}, and the train leaves at {_clock(leaves)}."),
            PartStep(
                f"The train needs {ride} minutes, so it arrives at {_clock(ends[0])}.",
                f"The train needs {ride} minutes, so it arrives at {_clock(ends[1])}.",
            ),
            _both(f"The taxi costs ${base} + {rate} \\cdot {distance} = {fare}$ euros."),
            PartStep(*(f"After {taxi} minutes in the taxi it is {arrival}." for arrival in arrivals)),
            PartStep(*(f"She arrives at {arrival}, and the taxi costs {fare} euros." for arrival in arrivals)),
        ),
        f"I look at the train again: {ride} minutes after {_clock(leaves)} it is {_clock(ends[0])}, so it is"
        f" {arrivals[0]} after the taxi.",
        CALCULATION,
        (f"{arrivals[0]}, {fare} euros", f"{arrivals[1]}, {fare} euros"),
    )


def _clock(minutes: int) -> str:
    return f"{minutes // 60}:{minutes % 60:02d}"


PROBLEMS = {"trip": make_trip, "walls": make_walls, "journey": make_journey}
