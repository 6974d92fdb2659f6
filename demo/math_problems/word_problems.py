"""Prices, work, speed, mixtures, ages. Pure."""

from fractions import Fraction

from demo.math_problems.derivation import ARITHMETIC, FORMULA, MISREAD, SIGN, Derivation, ProblemFamily, format_number

GOODS = ("a bicycle", "a coat", "a lamp", "a tent", "a printer", "a guitar")
NAMES = ("Ada", "Bela", "Chinua", "Dunya", "Emeka", "Farid", "Greta", "Hana", "Ines", "Jonas")


def discount(path: Derivation) -> None:
    thing, price = path.numbers.choice(GOODS), 20 * path.numbers.randint(8, 40)
    off, tax = path.numbers.choice([10, 15, 20, 25, 30]), path.numbers.choice([5, 10, 20])
    final = Fraction(price * (100 - off) * (100 + tax), 10000)
    path.ask(
        f"In a sale, {thing} with a price of ${price}$ euros is ${off}$ percent cheaper. Then ${tax}$ percent tax is "
        "added to the reduced price. What is the final price, in euros?",
        format_price(final),
        sale=(price, off, tax),
    )
    reduction = Fraction(price * off, 100)
    reduction = path.value("reduction", reduction, reduction + 10, ARITHMETIC)
    path.say(f"The discount is ${price} \\cdot {off} / 100 = {format_price(reduction)}$ euros.")
    reduced = price - reduction
    path.say(f"The reduced price is ${price} - {format_price(reduction)} = {format_price(reduced)}$ euros.")
    path.aside(f"Before the sale it would have cost ${price}$ euros plus tax.")
    base = path.value("tax on the old price", reduced, Fraction(price), MISREAD)
    added = base * tax / 100
    path.say(f"The tax is ${format_price(base)} \\cdot {tax} / 100 = {format_price(added)}$ euros.")
    total = path.value("tax subtracted", reduced + added, reduced - added, SIGN)
    sign = "+" if total == reduced + added else "-"
    path.say(
        "With the tax the price is "
        f"${format_price(reduced)} {sign} {format_price(added)} = {format_price(total)}$ euros."
    )
    path.conclude("The final price in euros is", format_price(total))


def format_price(value: Fraction) -> str:
    """Format a price, with two decimal places if it has cents."""
    return str(value) if value.denominator == 1 else f"{float(value):.2f}"


def together(path: Derivation) -> None:
    one, two = path.numbers.sample(NAMES, 2)
    fast, slow = path.numbers.choice([(2, 3), (3, 6), (4, 12), (6, 10), (5, 20), (6, 12), (4, 6), (10, 15), (12, 20)])
    path.ask(
        f"{one} paints a fence in ${fast}$ hours, {two} needs ${slow}$ hours. How many hours do they need together?",
        Fraction(fast * slow, fast + slow),
        hours=(fast, slow),
    )
    path.aside(f"Together they must be faster than {one} without help.")
    path.say(f"In one hour {one} paints $\\frac{{1}}{{{fast}}}$ of the fence.")
    path.say(f"In one hour {two} paints $\\frac{{1}}{{{slow}}}$ of the fence.")
    if path.makes("mean of the times", FORMULA):
        path.say("Working together, they need the mean of their two times.")
        path.say(f"The mean is $\\frac{{{fast} + {slow}}}{{2}} = {format_number(Fraction(fast + slow, 2))}$.")
        path.conclude("Together they need, in hours,", Fraction(fast + slow, 2))
        return
    rate = Fraction(1, fast) + Fraction(1, slow)
    rate = path.value("adding denominators", rate, Fraction(2, fast + slow), ARITHMETIC)
    path.say(
        f"Together they paint $\\frac{{1}}{{{fast}}} + \\frac{{1}}{{{slow}}} = {format_number(rate)}$ of it per hour."
    )
    if path.makes("rate for time", MISREAD):
        path.conclude("So together they need, in hours,", rate)
        return
    path.say(f"The whole fence takes $1 / {format_number(rate)} = {format_number(1 / rate)}$ hours.")
    path.conclude("Together they need, in hours,", 1 / rate)


def mean_speed(path: Derivation) -> None:
    name = path.numbers.choice(NAMES)
    there, back = path.numbers.choice([(30, 20), (60, 40), (12, 6), (20, 5), (15, 10), (90, 45), (24, 12)])
    distance = 60 * path.numbers.randint(1, 4) * (3 if there > 30 else 1)
    hours = Fraction(distance, there) + Fraction(distance, back)
    path.ask(
        f"{name} travels ${distance}$ km at ${there}$ km/h and returns the same way at ${back}$ km/h. What is the "
        "average speed of the whole journey, in km/h?",
        2 * distance / hours,
        journey=(distance, there, back),
    )
    first = Fraction(distance, there)
    path.say(f"The outward trip takes ${distance} / {there} = {format_number(first)}$ hours.")
    second = Fraction(distance, back)
    second = path.value("time back", second, second + 1, ARITHMETIC)
    path.say(f"The return trip takes ${distance} / {back} = {format_number(second)}$ hours.")
    path.aside("The slower trip takes longer, as it should.")
    if path.makes("mean of the speeds", FORMULA):
        path.say("The average speed is the mean of the two speeds, because both trips are equally long.")
        path.say(f"So it is $\\frac{{{there} + {back}}}{{2}} = {format_number(Fraction(there + back, 2))}$ km/h.")
        path.conclude("The average speed in km/h is", Fraction(there + back, 2))
        return
    path.say("The average speed is the total distance divided by the total time.")
    whole = path.value("one way only", 2 * distance, distance, MISREAD)
    path.say(f"The total distance is ${whole}$ km.")
    both = first + second
    path.say(f"The total time is ${format_number(first)} + {format_number(second)} = {format_number(both)}$ hours.")
    path.say(f"So the average speed is ${whole} / {format_number(both)} = {format_number(whole / both)}$ km/h.")
    path.conclude("The average speed in km/h is", whole / both)


def mixture(path: Derivation) -> None:
    weak, strong = path.numbers.choice([(10, 40), (20, 50), (15, 60), (5, 30), (10, 70)])
    litres, extra = path.numbers.choice([4, 6, 8, 10]), path.numbers.choice([2, 3, 5, 6])
    share = Fraction(weak * litres + strong * extra, litres + extra)
    path.ask(
        f"${litres}$ liters of a solution with ${weak}$ percent acid are mixed with ${extra}$ liters of a solution "
        f"with ${strong}$ percent acid. What percentage of the mixture is acid?",
        share,
        mixture=(litres, weak, extra, strong),
    )
    path.aside(f"The result must be between ${weak}$ and ${strong}$ percent.")
    one = Fraction(litres * weak, 100)
    path.say(
        f"The first solution contains ${litres} \\cdot \\frac{{{weak}}}{{100}} = {format_number(one)}$ liters of acid."
    )
    two = Fraction(extra * strong, 100)
    two = path.value("acid of the second", two, two + Fraction(1, 2), ARITHMETIC)
    path.say(f"The second contains ${extra} \\cdot \\frac{{{strong}}}{{100}} = {format_number(two)}$ liters of acid.")
    if path.makes("mean of the shares", FORMULA):
        path.say(
            f"The mixture has the mean of both: $\\frac{{{weak} + {strong}}}{{2}} "
            f"= {format_number(Fraction(weak + strong, 2))}$."
        )
        path.conclude("The share of acid in percent is", Fraction(weak + strong, 2))
        return
    acid = one + two
    path.say(f"Together that is ${format_number(one)} + {format_number(two)} = {format_number(acid)}$ liters of acid.")
    volume = path.value("volume", litres + extra, litres, MISREAD)
    path.say(f"The mixture has ${volume}$ liters in total.")
    result = acid / volume * 100
    path.say(f"In percent this is ${format_number(acid)} / {volume} \\cdot 100 = {format_number(result)}$.")
    path.conclude("The share of acid in percent is", result)


def ages(path: Derivation) -> None:
    older, younger = path.numbers.sample(NAMES, 2)
    age, times, years = path.numbers.randint(4, 12), path.numbers.choice([3, 4, 5]), path.numbers.randint(3, 9)
    old = times * age
    later = old + age + 2 * years
    path.ask(
        f"{older} is ${times}$ times as old as {younger}. In ${years}$ years their ages will add up to "
        f"${later}$. How old is {older} now?",
        old,
        ages=(times, years, later),
    )
    path.say(f"Let $x$ be the age of {younger} now. Then {older} is ${times}x$ years old.")
    grown = path.value("years for one only", 2 * years, years, MISREAD)
    path.say(f"In ${years}$ years their ages add up to $x + {times}x + {grown}$.")
    path.say(f"This is ${later}$, so ${times + 1}x + {grown} = {later}$.")
    rest = path.value("sign when moving", later - grown, later + grown, SIGN)
    path.say(f"Moving ${grown}$ to the other side: ${times + 1}x = {rest}$.")
    path.aside("An age need not be a whole number, but here I expect one.")
    x = Fraction(rest, times + 1)
    x = path.value("division", x, x + 1, ARITHMETIC)
    path.say(f"Dividing by ${times + 1}$: $x = {format_number(x)}$.")
    path.say(f"So {older} is ${times} \\cdot {format_number(x)} = {format_number(times * x)}$ years old.")
    path.conclude(f"The age of {older} is", times * x)


FAMILIES = tuple(
    ProblemFamily(derive.__name__, "word problems", derive)
    for derive in (discount, together, mean_speed, mixture, ages)
)
