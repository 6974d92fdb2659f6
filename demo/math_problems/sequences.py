"""Sums and recurrences, and one very long derivation. Pure."""

from fractions import Fraction

from demo.math_problems.derivation import (
    ARITHMETIC,
    CASE,
    FORMULA,
    MISREAD,
    SIGN,
    Derivation,
    ProblemFamily,
    format_added,
    format_number,
)

LONG_STARTS = (161, 894, 970, 977, 990)  # ninety-eight steps each


def arithmetic_sum(path: Derivation) -> None:
    first, step, count = path.numbers.randint(3, 15), path.numbers.randint(3, 9), path.numbers.randint(14, 40)
    last = first + (count - 1) * step
    path.ask(
        f"Find the sum ${first} + {first + step} + {first + 2 * step} + \\dots + {last}$, in which each term is "
        f"${step}$ more "
        "than the previous one.",
        count * (first + last) // 2,
        terms=(first, step, last),
    )
    path.say(f"The terms grow by ${step}$, so this is an arithmetic sum.")
    path.say(f"From the first to the last term it grows by ${last} - {first} = {last - first}$.")
    steps = (last - first) // step
    steps = path.value("number of steps", steps, steps - 1, ARITHMETIC)
    path.say(f"That is ${last - first} / {step} = {steps}$ steps.")
    terms = path.value("fence post", steps + 1, steps, CASE)
    path.say(f"So there are ${terms}$ terms.")
    path.aside("Adding the terms one by one would take much longer.")
    pair = first + last
    path.say(f"The first and the last term add up to ${first} + {last} = {pair}$.")
    total = Fraction(terms * pair, 2)
    total = path.value("half", total, Fraction(terms * pair), FORMULA)
    halved = "" if total == terms * pair else " / 2"
    path.say(f"The sum is ${terms} \\cdot {pair}{halved} = {format_number(total)}$.")
    path.conclude("The sum is", total)


def geometric_sum(path: Derivation) -> None:
    first, ratio = path.numbers.choice([1, 2, 3, 5]), path.numbers.choice([2, 3, 4])
    count = path.numbers.randint(5, 8)
    last = first * ratio ** (count - 1)
    path.ask(
        f"Find the sum ${first} + {first * ratio} + {first * ratio**2} + \\dots + {last}$, in which each term is "
        f"${ratio}$ times the previous one.",
        sum(first * ratio**k for k in range(count)),
        terms=(first, ratio, last),
    )
    path.say(f"This is a geometric sum with the first term ${first}$ and the ratio ${ratio}$.")
    path.say(f"The last term is ${last} = {first} \\cdot {ratio}^{count - 1}$.")
    terms = path.value("fence post", count, count - 1, CASE)
    path.say(f"So there are ${terms}$ terms.")
    path.aside("The terms grow quickly, so the last one makes up most of the sum.")
    base = path.value("denominator", ratio - 1, ratio, FORMULA)
    path.say(f"The sum is ${first} \\cdot \\frac{{{ratio}^n - 1}}{{{base}}}$ with $n = {terms}$.")
    power = ratio**terms
    power = path.value("power", power, power + ratio, ARITHMETIC)
    path.say(f"Here ${ratio}^{terms} = {power}$.")
    total = Fraction(first * (power - 1), base)
    path.say(f"That gives ${first} \\cdot \\frac{{{power - 1}}}{{{base}}} = {format_number(total)}$.")
    path.conclude("The sum is", total)


def recurrence(path: Derivation) -> None:
    start, factor = path.numbers.randint(1, 4), path.numbers.choice([2, 3])
    shift, index = path.numbers.choice([-3, -2, -1, 1, 2, 5]), path.numbers.randint(6, 9)
    term = start
    for _ in range(index - 1):
        term = factor * term + shift
    path.ask(
        f"A sequence begins with $a_1 = {start}$ and continues with $a_{{n+1}} = {factor}a_n{format_added(shift)}$. "
        f"Find $a_{index}$.",
        term,
        recurrence=(start, factor, shift, index),
    )
    path.aside("There is a closed formula, but the index is small.")
    current = path.value("start", start, start + 1, MISREAD)
    path.say(f"I begin with $a_1 = {current}$ and compute one term after the other.")
    for place in range(2, index + 1):
        following = factor * current + shift
        kind, wrong = (SIGN, factor * current - shift) if place % 3 == 0 else (ARITHMETIC, following + factor)
        following = path.value(f"term {place}", following, wrong, kind)
        path.say(f"$a_{place} = {factor} \\cdot {current}{format_added(shift)} = {following}$.")
        current = following
    path.conclude(f"So $a_{index}$ is", current)


def telescope(path: Derivation) -> None:
    end = path.numbers.choice([9, 14, 19, 24, 29, 49, 99])
    path.ask(
        f"Compute $\\frac{{1}}{{1 \\cdot 2}} + \\frac{{1}}{{2 \\cdot 3}} + \\dots + "
        f"\\frac{{1}}{{{end} \\cdot {end + 1}}}$.",
        1 - Fraction(1, end + 1),
        end=end,
    )
    if path.makes("difference the wrong way", SIGN):
        path.say("Each term splits: $\\frac{1}{k(k+1)} = \\frac{1}{k+1} - \\frac{1}{k}$.")
        path.say("In the sum all but two of these pieces cancel.")
        path.say(f"What is left is $\\frac{{1}}{{{end + 1}}} - 1 = {format_number(Fraction(1, end + 1) - 1)}$.")
        path.conclude("The sum is", Fraction(1, end + 1) - 1)
        return
    path.say("Each term splits: $\\frac{1}{k(k+1)} = \\frac{1}{k} - \\frac{1}{k+1}$.")
    path.aside("All terms are positive, so the sum is positive.")
    path.say("The second piece of each term cancels the first piece of the next.")
    last = path.value("last piece", end + 1, end, CASE)
    path.say(f"Only the very first piece and the very last one remain: $1 - \\frac{{1}}{{{last}}}$.")
    total = 1 - Fraction(1, last)
    total = path.value("difference", total, 1 - Fraction(2, last), ARITHMETIC)
    path.say(f"This is $1 - \\frac{{1}}{{{last}}} = {format_number(total)}$.")
    path.conclude("The sum is", total)


def collatz(path: Derivation) -> None:
    """Derive a hundred steps, as an example of a long trace."""
    number = path.numbers.choice(LONG_STARTS)
    path.ask(
        f"Begin with ${number}$. Halve an even number; replace an odd number with three times itself plus one. After "
        "how many steps does this reach $1$ for the first time?",
        collatz_steps(number),
        start=number,
    )
    path.say(f"I follow the rule from ${number}$ and count the steps.")
    current, count = number, 0
    while current != 1 and count < 400:
        count += 1
        following = current // 2 if current % 2 == 0 else 3 * current + 1
        if count == 71:
            following = path.value("one step", following, following - 10, ARITHMETIC)
        rule = f"{current} / 2" if current % 2 == 0 else f"3 \\cdot {current} + 1"
        path.say(f"Step {count}: ${current}$ is {'odd' if current % 2 else 'even'}, so ${rule} = {following}$.")
        current = following
    path.conclude("It reaches $1$ for the first time after this many steps:", count)


def collatz_steps(number: int) -> int:
    steps = 0
    while number != 1:
        number, steps = (number // 2 if number % 2 == 0 else 3 * number + 1), steps + 1
    return steps


FAMILIES = tuple(
    ProblemFamily(derive.__name__, "sequences", derive)
    for derive in (arithmetic_sum, geometric_sum, recurrence, telescope)
)
LONG = ProblemFamily("collatz", "sequences", collatz)
