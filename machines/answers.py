"""Find the final answer in a solution, and compare it with the reference answer.

    number        equal as numbers: 1,200 and 1200.0, 3/4 and 0.75, $5 and 5
    expression    equal as expressions, tuples, intervals or sets (`machines.expressions`)
    choice        the same letter: (B), B. and \\text{B}
    exact         equal after whitespace is collapsed
    regex         as `exact` or `number`, for what the last match of a pattern captures

The final answer is in the last `\\boxed{}`, after the last `####` (GSM8K), or after the last "answer is". A text
without one of these has no answer, which is neither right nor wrong.
"""

import re
from enum import StrEnum
from fractions import Fraction
from importlib import import_module
from typing import Any

from machines.expressions import is_same_expression

# The only way to see what a pattern can cost.
_constants: Any = import_module("re._constants")
_parser: Any = import_module("re._parser")


class CheckerKind(StrEnum):
    NUMBER = "number"
    EXPRESSION = "expression"
    CHOICE = "choice"
    EXACT = "exact"
    REGEX = "regex"
    HTTP = "http"  # another program decides: `machines.remote_checker`


class InvalidPattern(ValueError):
    """The pattern cannot be used. The message is for the person who wrote it."""


_BOX = re.compile(r"\\boxed\s*\{")
_HASHES = re.compile(r"####[ \t]*([^\n]+)")
_PHRASE = re.compile(r"\banswer\s*(?:is|:|=)\s*:?[ \t]*([^\n]+)", re.I)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,2})?(?:\s*/\s*\d+(?:\.\d+)?)?", re.ASCII)
_FRACTION = re.compile(r"\\[dt]?frac\s*\{\s*([-+]?\d+)\s*\}\s*\{\s*(\d+)\s*\}", re.ASCII)
_THOUSANDS = re.compile(r"(?<=\d)(?:,|\{,\}|\\,)(?=\d{3}(?!\d))", re.ASCII)
_WRAPPED = re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox)\s*\{([^{}]*)\}")
_LETTER = re.compile(r"\(?\s*([A-Ja-j])\s*(?:[).:,].*)?", re.S)
_MAX_ANSWER_CHARACTERS = 500
_MAX_NUMBER_DIGITS = 60
_TOLERANCE = Fraction(1, 1_000_000)
_MAX_PATTERN_CHARACTERS = 200
_MAX_REPEATS = 2
_SEARCHED_CHARACTERS = 500  # the end of a text, where a pattern is searched


def find_answer(kind: str, text: str, pattern: str = "") -> str | None:
    """Return the final answer of a solution, or None if it states none."""
    if kind == CheckerKind.REGEX:
        matches = list(re.finditer(pattern, text[-_SEARCHED_CHARACTERS:]))
        return matches[-1][1] if matches else None
    found = _find_box(text) or _find_last(_HASHES, text) or _find_last(_PHRASE, text)
    found = (found or "").strip()[:_MAX_ANSWER_CHARACTERS]
    return found or None


def is_same_answer(kind: str, answer: str, reference: str) -> bool:
    answer, reference = _strip_answer(answer), _strip_answer(reference)
    if kind == CheckerKind.NUMBER:
        return _is_near(_parse_number(answer), _parse_number(reference))
    if kind == CheckerKind.CHOICE:
        letters = _parse_letter(answer), _parse_letter(reference)
        return letters[0] != "" and letters[0] == letters[1]
    if kind == CheckerKind.EXPRESSION:
        return is_same_expression(answer, reference)
    is_same_text = " ".join(answer.split()) == " ".join(reference.split())
    return is_same_text or (kind == CheckerKind.REGEX and _is_near(_parse_number(answer), _parse_number(reference)))


def has_readable_answer(kind: str, answer: str) -> bool:
    """Return whether an answer that was found can be compared at all."""
    answer = _strip_answer(answer)
    if kind == CheckerKind.NUMBER:
        return _parse_number(answer) is not None
    return _parse_letter(answer) != "" if kind == CheckerKind.CHOICE else bool(answer)


def _find_box(text: str) -> str | None:
    """Return the content of the last box, with its inner braces."""
    openings = list(_BOX.finditer(text))
    if not openings:
        return None
    start = openings[-1].end()
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return text[start:at]
    return None


def _find_last(pattern: re.Pattern[str], text: str) -> str | None:
    matches = pattern.findall(text)
    return matches[-1] if matches else None


def _strip_answer(answer: str) -> str:
    answer = _WRAPPED.sub(r"\1", answer.strip()).rstrip(".").strip()
    for opening, closing in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**")):
        if len(answer) > len(opening + closing) and answer.startswith(opening) and answer.endswith(closing):
            answer = answer[len(opening) : -len(closing)].strip()
    return answer


def _parse_number(text: str) -> Fraction | None:
    """Return the only number of a text such as "12 apples"; None if it has none, or several."""
    text = text.replace("−", "-").replace("\\$", "$")
    text = _THOUSANDS.sub("", _FRACTION.sub(r"\1/\2", text))
    found = _NUMBER.findall(text)
    if len(found) != 1 or len(found[0]) > _MAX_NUMBER_DIGITS:
        return None
    above, _, below = found[0].partition("/")
    try:
        number = Fraction(above.strip()) / Fraction(below.strip() or "1")
    except (ValueError, ZeroDivisionError):
        return None
    is_negated = re.match(r"\s*-\s*[$€£(]", text) is not None
    return -number if is_negated else number


def _is_near(answer: Fraction | None, reference: Fraction | None) -> bool:
    if answer is None or reference is None:
        return False
    return abs(answer - reference) <= _TOLERANCE * max(abs(reference), Fraction(1))


def _parse_letter(text: str) -> str:
    match = _LETTER.fullmatch(text.strip())
    return match[1].upper() if match else ""


# --- patterns ---------------------------------------------------------------------------------------------------------


def validate_pattern(pattern: str) -> str:
    """Return the pattern, or raise InvalidPattern. Patterns whose search can take exponential time are refused: a
    repetition may contain neither another one nor an alternative, and there are at most two."""
    if len(pattern) > _MAX_PATTERN_CHARACTERS:
        raise InvalidPattern(f"The pattern has {len(pattern)} characters; {_MAX_PATTERN_CHARACTERS} are allowed.")
    try:
        parsed, compiled = _parser.parse(pattern), re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidPattern(f"The pattern is not a regular expression: {error}.") from None
    if compiled.groups != 1:
        raise InvalidPattern("The pattern needs one pair of parentheses around the answer.")
    if _count_repeats(parsed, is_repeated=False) > _MAX_REPEATS:
        raise InvalidPattern(f"The pattern has more than {_MAX_REPEATS} repetitions. Use fewer of * and +.")
    return pattern


_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
_SIMPLE = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN, _constants.AT)


def _count_repeats(parsed: Any, *, is_repeated: bool) -> int:
    n = 0
    for operation, argument in parsed:
        if operation in _REPEATS:
            low, high, body = argument
            is_real = high > 1 and low != high
            if is_repeated and high > 1:
                raise InvalidPattern("A repetition of the pattern contains another one. Remove one of them.")
            n += is_real + _count_repeats(body, is_repeated=is_repeated or high > 1)
        elif operation == _constants.SUBPATTERN:
            n += _count_repeats(argument[3], is_repeated=is_repeated)
        elif operation == _constants.BRANCH:
            if is_repeated:
                raise InvalidPattern("A repetition of the pattern contains an alternative. Use a set such as [ab].")
            n += sum(_count_repeats(branch, is_repeated=False) for branch in argument[1])
        elif operation not in _SIMPLE:
            raise InvalidPattern("The pattern uses references or lookarounds, which are not supported.")
    return n
