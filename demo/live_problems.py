"""Shopping problems for live labeling, which the example program can solve. Pure."""

from demo import generated_content
from formats.records import ProblemRecord

PROBLEMS = 12
_NAMES = ("Ida", "Jonas", "Leyla", "Marek", "Noor", "Olga", "Pavel", "Rosa")
_SHOPS = (
    ("notebooks", "pens", "folders", "erasers"),
    ("tomatoes", "lemons", "melons", "cabbages"),
    ("candles", "napkins", "balloons", "lanterns"),
    ("screws", "hinges", "brackets", "hooks"),
)
_NOTES = (50, 100, 200)


def generate_problems(*, seed: str) -> list[ProblemRecord]:
    """Generate the problems. Every second one also asks for the change."""
    return [_make_problem(seed, number) for number in range(PROBLEMS)]


def _make_problem(seed: str, number: int) -> ProblemRecord:
    dice = generated_content.seeded_random(seed, "live", number)
    items = dice.sample(_SHOPS[number % len(_SHOPS)], 3)
    counts, prices = [dice.randint(2, 6) for _ in items], [dice.randint(2, 9) for _ in items]
    texts = [f"{n} {name} for {price} euros each" for n, name, price in zip(counts, items, prices, strict=True)]
    total = sum(n * price for n, price in zip(counts, prices, strict=True))
    bought = f"{dice.choice(_NAMES)} buys {texts[0]}, {texts[1]} and {texts[2]}"
    if number % 2:
        note = next(each for each in _NOTES if each > total)
        question, answer = f"and pays with a {note}-euro note. How many euros is the change?", note - total
    else:
        question, answer = "for a class trip. How many euros is that together?", total
    return ProblemRecord(f"{bought} {question}", str(answer), ref=f"shopping-{number}", domain="shopping")
