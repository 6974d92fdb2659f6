"""Questions with two answers that a tool can decide. Pure."""

import json
import random
from typing import NamedTuple

_TITLES = ("Winter Ferries", "The Salt Road", "A House of Maps", "Seven Quiet Rooms", "The Orchard Ledger", "Low Water")
_LAKES = ("Aarsee", "Lough Fenn", "Lago Trino", "Vesijarvi", "Blue Tarn", "Jezero Mir")


class QuizCall(NamedTuple):
    tool: str
    arguments: dict[str, str]
    result: str

    @property
    def arguments_json(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False)

    @property
    def text(self) -> str:
        return f"{self.tool}({self.arguments_json})"


class QuizQuestion(NamedTuple):
    """A question with the answers A and B, and a call for each of them. A comparison of the results decides."""

    text: str
    domain: str
    options: tuple[str, str]
    calls: tuple[QuizCall, QuizCall]
    plan: str
    finding: str
    right: str  # the letter

    @property
    def wrong(self) -> str:
        return "B" if self.right == "A" else "A"

    def call_of(self, letter: str) -> QuizCall:
        return self.calls["AB".index(letter)]


def ask_product(dice: random.Random) -> QuizQuestion:
    base = dice.randint(17, 45)
    pairs = [(base - 3, base + 3), (base - 1, base)]
    dice.shuffle(pairs)
    options = [f"{first} · {second}" for first, second in pairs]
    values = [first * second for first, second in pairs]
    return _make_question(
        f"Which product is larger, {options[0]} (A) or {options[1]} (B)?",
        "arithmetic",
        options,
        [QuizCall("calculate", {"expression": f"{first} * {second}"}, str(first * second)) for first, second in pairs],
        "I compute both products and compare them.",
        f"{max(values)} is more than {min(values)}",
        values[0] > values[1],
    )


def ask_year(dice: random.Random) -> QuizQuestion:
    titles, first = dice.sample(_TITLES, 2), dice.randint(1921, 1960)
    years = [first, first + dice.randint(1, 6)]
    dice.shuffle(years)
    return _make_question(
        f"Which novel appeared first, “{titles[0]}” (A) or “{titles[1]}” (B)?",
        "library",
        titles,
        [
            QuizCall("look_up", {"title": each}, json.dumps({"year": year}))
            for each, year in zip(titles, years, strict=True)
        ],
        "The catalog has the year of each novel.",
        f"{min(years)} is before {max(years)}",
        years[0] < years[1],
    )


def ask_depth(dice: random.Random) -> QuizQuestion:
    lakes, shallow = dice.sample(_LAKES, 2), dice.randint(20, 140)
    depths = [shallow, shallow + dice.randint(2, 15)]
    dice.shuffle(depths)
    return _make_question(
        f"Which lake is deeper, {lakes[0]} (A) or {lakes[1]} (B)?",
        "geography",
        lakes,
        [
            QuizCall("look_up", {"lake": each}, json.dumps({"depth_m": d}))
            for each, d in zip(lakes, depths, strict=True)
        ],
        "I look up the depth of both lakes.",
        f"{max(depths)} meters are more than {min(depths)}",
        depths[0] > depths[1],
    )


def _make_question(
    text: str,
    domain: str,
    options: list[str],
    calls: list[QuizCall],
    plan: str,
    finding: str,
    is_first_right: bool,
) -> QuizQuestion:
    right = "A" if is_first_right else "B"
    return QuizQuestion(text, domain, (options[0], options[1]), (calls[0], calls[1]), plan, finding, right)


FAMILIES = {"product": ask_product, "year": ask_year, "depth": ask_depth}
