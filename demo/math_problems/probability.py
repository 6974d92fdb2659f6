"""Draws, dice and choices. Pure."""

from fractions import Fraction
from math import comb

from demo.math_problems.derivation import (
    ARITHMETIC,
    CASE,
    FORMULA,
    MISREAD,
    Derivation,
    ProblemFamily,
    format_number,
    format_sum,
)

COLORS = ("red", "blue", "green", "white", "yellow")


def two_draws(path: Derivation) -> None:
    first, second = path.numbers.sample(COLORS, 2)
    many, few = path.numbers.randint(4, 9), path.numbers.randint(2, 6)
    total = many + few
    path.ask(
        f"A bag holds ${many}$ {first} and ${few}$ {second} balls. Two balls are drawn without putting the first one "
        "back. What is the probability that they have the same color?",
        Fraction(comb(many, 2) + comb(few, 2), comb(total, 2)),
        balls=(many, few),
    )
    path.say(f"There are ${many} + {few} = {total}$ balls in the bag.")
    path.aside("Drawing both balls together would not change the result.")
    left = path.value("with replacement", total - 1, total, MISREAD)
    path.say(f"At the second draw there are ${left}$ balls in the bag.")
    taken = total - left
    one = Fraction(many * (many - taken), total * left)
    path.say(
        f"Both are {first} with probability "
        f"$\\frac{{{many}}}{{{total}}} \\cdot \\frac{{{many - taken}}}{{{left}}} = {format_number(one)}$."
    )
    if path.makes("other color", CASE):
        path.conclude("That is the probability of the same color:", one)
        return
    other = Fraction(few * (few - taken), total * left)
    path.say(
        f"Both are {second} with probability "
        f"$\\frac{{{few}}}{{{total}}} \\cdot \\frac{{{few - taken}}}{{{left}}} = {format_number(other)}$."
    )
    both = one + other
    both = path.value("product for sum", both, one * other, FORMULA)
    sign = "+" if both == one + other else r"\cdot"
    path.say(
        "These two cases are mutually exclusive, so the probability is "
        f"${format_number(one)} {sign} {format_number(other)} = {format_number(both)}$."
    )
    path.conclude("The probability of the same color is", both)


def at_least_one(path: Derivation) -> None:
    rolls, face = path.numbers.choice([2, 3, 4]), path.numbers.randint(1, 6)
    miss = Fraction(5, 6) ** rolls
    path.ask(
        f"A fair die is rolled ${rolls}$ times. What is the probability that at least one roll shows a ${face}$?",
        1 - miss,
        rolls=rolls,
    )
    path.aside("At least one means one or more.")
    path.say(f"A single roll shows a ${face}$ with probability $\\frac{{1}}{{6}}$.")
    if path.makes("adding chances", FORMULA):
        path.say("With more rolls, the chances of the rolls add up.")
        path.say(f"So I add ${rolls}$ times $\\frac{{1}}{{6}}$, which is ${format_number(Fraction(rolls, 6))}$.")
        path.conclude("The probability is", Fraction(rolls, 6))
        return
    path.say(f"The opposite event is that no roll shows a ${face}$.")
    single = path.value("other faces", Fraction(5, 6), Fraction(4, 6), CASE)
    path.say(f"One roll shows another number with probability ${format_number(single)}$.")
    path.say("The rolls are independent, so I multiply.")
    none = single**rolls
    none = path.value("power", none, none + Fraction(1, 6**rolls), ARITHMETIC)
    path.say(f"No ${face}$ at all: $\\left({format_number(single)}\\right)^{rolls} = {format_number(none)}$.")
    if path.makes("complement", MISREAD):
        path.conclude("That is the required probability:", none)
        return
    path.say(f"At least one ${face}$ has the probability $1 - {format_number(none)} = {format_number(1 - none)}$.")
    path.conclude("The probability is", 1 - none)


def dice_sum(path: Derivation) -> None:
    bound = path.numbers.choice([8, 9, 10])
    ways = {total: 13 - total for total in range(bound, 13)}
    favourable = sum(ways.values())
    path.ask(
        f"Two fair dice are rolled. What is the probability that the sum is at least ${bound}$?",
        Fraction(favourable, 36),
        bound=bound,
    )
    outcomes = path.value("order of the dice", 36, 21, FORMULA)
    path.say(f"Two dice have ${outcomes}$ equally likely outcomes.")
    totals = list(ways)
    totals = path.value("the bound itself", totals, totals[1:], MISREAD)
    path.say(f"The sums that count are {', '.join(f'${total}$' for total in totals)}.")
    path.aside("The greatest possible sum is $12$.")
    counts = []
    for total in totals:
        count = path.value(f"ways to {total}", ways[total], ways[total] + 1, ARITHMETIC)
        counts.append(count)
        path.say(f"The sum ${total}$ comes up in ${count}$ way{'s' if count > 1 else ''}.")
    good = sum(counts)
    path.say(f"Altogether ${format_sum(counts)} = {good}$ outcomes count.")
    path.conclude("The probability is", Fraction(good, outcomes))


def committee(path: Derivation) -> None:
    women, men = path.numbers.randint(4, 7), path.numbers.randint(4, 7)
    size, least = 4, 2
    counts = {k: comb(women, k) * comb(men, size - k) for k in range(least, size + 1)}
    path.ask(
        f"From ${women}$ women and ${men}$ men a committee of ${size}$ people is chosen. In how many ways can this "
        f"be done if at least ${least}$ of them must be women?",
        sum(counts.values()),
        committee=(women, men, size, least),
    )
    path.aside("The committee has no chair, so the order of its members does not matter.")
    cases = list(counts)
    cases = path.value("last case", cases, cases[:-1], CASE)
    path.say(f"The number of women can be {', '.join(f'${case}$' for case in cases)}.")
    found = []
    for k in cases:
        count = path.value(f"case {k}", counts[k], comb(women, k) + comb(men, size - k), FORMULA)
        found.append(count)
        sign = r"\cdot" if count == counts[k] else "+"
        path.say(
            f"With ${k}$ women: $\\binom{{{women}}}{{{k}}} {sign} \\binom{{{men}}}{{{size - k}}} = "
            f"{comb(women, k)} {sign} {comb(men, size - k)} = {count}$ ways."
        )
    total = sum(found)
    total = path.value("sum", total, total - 10, ARITHMETIC)
    path.say(f"The cases are mutually exclusive, so I add them: ${format_sum(found)} = {total}$.")
    path.conclude("The number of committees is", total)


def game(path: Derivation) -> None:
    stake, prize, small = path.numbers.randint(2, 5), path.numbers.choice([6, 9, 12, 15]), path.numbers.randint(1, 3)
    gain = Fraction(prize + 2 * small, 6) - stake
    path.ask(
        f"In a game you pay ${stake}$ euros and roll a fair die. A six wins ${prize}$ euros, a four or a five wins "
        f"${small}$ {'euro' if small == 1 else 'euros'}, and everything else wins nothing. What is the expected gain "
        "per game, after the stake, in euros?",
        gain,
        game=(stake, prize, small),
    )
    path.say(
        f"A six has probability $\\frac{{1}}{{6}}$ and contributes $\\frac{{1}}{{6}} \\cdot {prize} = "
        f"{format_number(Fraction(prize, 6))}$."
    )
    chance = path.value("four or five", Fraction(2, 6), Fraction(1, 6), CASE)
    path.say(f"A four or a five has probability ${format_number(chance)}$.")
    part = chance * small
    path.say(f"It contributes ${format_number(chance)} \\cdot {small} = {format_number(part)}$.")
    path.aside("The other three numbers contribute nothing.")
    won = Fraction(prize, 6) + part
    won = path.value("sum of fractions", won, won + Fraction(1, 3), ARITHMETIC)
    path.say(
        f"The expected win is ${format_number(Fraction(prize, 6))} + {format_number(part)} = {format_number(won)}$."
    )
    if path.makes("stake", MISREAD):
        path.conclude("So the expected gain in euros is", won)
        return
    path.say(
        "The stake is paid in every game, so I subtract it: "
        f"${format_number(won)} - {stake} = {format_number(won - stake)}$."
    )
    path.conclude("The expected gain in euros is", won - stake)


FAMILIES = tuple(
    ProblemFamily(derive.__name__, "probability", derive)
    for derive in (two_draws, at_least_one, dice_sum, committee, game)
)
