"""An assistant that books the cheapest train that arrives in time. Pure."""

import json

from demo.agents.script import CLAIM, CONSTRAINT, AgentScript
from demo.generated_content import GeneratedTrace

TOWNS = ("Basel", "Lyon", "Milano", "Praha", "Gent", "Graz", "Turin", "Brno")
SLIPS = ("arrival", "changes", "no booking")
RULES = (
    "You book trains. Tools: search(from, to, date) lists connections; book(connection) books one and returns its "
    "number. Respect all wishes of the traveler. Say that a train is booked only after book has returned a number."
)

Connection = dict[str, object]


def run_scenario(script: AgentScript, ref: str) -> GeneratedTrace:
    start, end = script.numbers.sample(TOWNS, 2)
    day, limit = script.numbers.randint(10, 28), script.numbers.choice([13, 14, 15])
    connections = _connections(script, limit)
    task = (
        f"Please book the cheapest train from {start} to {end} on 2026-06-{day} that arrives before {limit}:00 with "
        "at most one change."
    )
    script.system(RULES)
    script.user(task)
    script.call("search", **{"from": start, "to": end, "date": f"2026-06-{day}"})
    script.observe(json.dumps(connections, indent=1), "search")
    fitting = [each for each in connections if _fits(each, limit)]
    best = min(fitting, key=_price)
    late = min((each for each in connections if _changes(each) <= 1), key=_price)
    winding = min((each for each in connections if _in_time(each, limit)), key=_price)
    chosen = script.value("arrival", best, late, CONSTRAINT)
    chosen = script.value("changes", chosen, winding, CONSTRAINT)
    facts = f"arrives at {chosen['arrives']}, changes: {chosen['changes']}, price: {chosen['price']} euros"
    script.think(
        f"With at most one change and an arrival before {limit}:00 the cheapest is {chosen['connection']}: {facts}."
    )
    if script.makes("no booking", CLAIM):
        script.answer(f"I have booked {chosen['connection']} for {chosen['price']} euros. Have a good trip!")
        return script.build_trace(
            problem=task, domain="travel", reference=best["connection"], answer="not booked", ref=ref
        )
    script.call("book", connection=chosen["connection"])
    number = f"R{script.numbers.randint(100000, 999999)}"
    script.observe(json.dumps({"booked": chosen["connection"], "number": number}), "book")
    script.answer(
        f"{chosen['connection']} is booked with the number {number}: it departs at {chosen['departs']}, arrives "
        f"at {chosen['arrives']} and costs {chosen['price']} euros."
    )
    return script.build_trace(
        problem=task, domain="travel", reference=best["connection"], answer=chosen["connection"], ref=ref
    )


def _connections(script: AgentScript, limit: int) -> list[Connection]:
    """Make expensive connections that fit, cheaper ones that arrive too late, and a cheaper one with two changes."""
    rows = [
        (limit - 2, 1, 60),
        (limit - 1, 0, 80),
        (limit - 3, 1, 70),
        (limit + 1, 1, 35),
        (limit - 1, 2, 45),
        (limit + 2, 0, 65),
    ]
    script.numbers.shuffle(rows)
    made: list[Connection] = []
    for place, (hour, changes, base) in enumerate(rows):
        minute, length = script.numbers.choice([4, 17, 28, 39, 51]), script.numbers.choice([4, 5])
        made.append(
            {
                "connection": f"C{place + 1}",
                "departs": f"{hour - length:02d}:{script.numbers.choice([2, 15, 33, 48]):02d}",
                "arrives": f"{hour:02d}:{minute:02d}",
                "changes": changes,
                "price": base + script.numbers.randint(0, 4),
            }
        )
    return made


def _price(each: Connection) -> int:
    return int(str(each["price"]))


def _changes(each: Connection) -> int:
    return int(str(each["changes"]))


def _in_time(each: Connection, limit: int) -> bool:
    return str(each["arrives"]) < f"{limit:02d}:00"


def _fits(each: Connection, limit: int) -> bool:
    return _in_time(each, limit) and _changes(each) <= 1
