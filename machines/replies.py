"""Read the answers of judges. Unreadable answers are counted by reason and never become labels.

`first error`: the last `\\boxed{}` contains the number of the step, or -1 for no error. `step labels` and `agent
rubric`: the last JSON object. A step without a label stays unlabeled, and an answer that labels no step as wrong must
label every step: otherwise it does not say that there is no error. `policy clauses`: as step labels; a step labeled -1
must name the clause that it breaks. `yes or no`: lines such as “Step 3: No”; the last one about a step counts. Where
the answer states the log probabilities of its tokens, each step also has P(Yes). Every step up to the first No needs a
line.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from machines import token_probabilities
from machines.prompts import JudgeContract


class ReplyState(StrEnum):
    PARSED = "parsed"
    EMPTY = "empty"  # no text
    TRUNCATED = "truncated"  # it reached the token limit, or never finished thinking
    UNPARSED = "unparsed"  # text without a readable answer
    OUT_OF_RANGE = "out_of_range"  # it names a step that cannot be labeled
    REFUSED = "refused"  # the endpoint refused this request
    UNCHECKED = "unchecked"  # a rollout whose checker did not respond; checked again, not asked again
    FAILED = "failed"  # the endpoint answered on no attempt; asked again by the next run


@dataclass(frozen=True)
class ParsedReply:
    """The reading of one answer. `first_error` is a position, or None for no error."""

    state: ReplyState
    first_error: int | None = None
    ratings: Mapping[int, int] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
    clauses: Mapping[int, str] = field(default_factory=dict)  # of a policy, by step
    yes_shares: Mapping[int, float] = field(default_factory=dict)  # of yes or no: P(step right), by step
    is_right: bool | None = None  # of a rollout


_BOX = re.compile(r"\\boxed\s*\{([^{}]*)\}")
_NUMBER = re.compile(r"[-−]?\d{1,9}", re.ASCII)
_BLOCK = re.compile(r"```(?:json)?[ \t]*\r?\n(.*?)```", re.S | re.I)
# The line contains nothing after the word: “Step 3: No mistake” is not a No.
# Possessive, because a model can write many blanks.
_YES_NO_LINE = re.compile(r"^[^\w\n]*+(?:step)?[ \t_]*+(\d{1,9})[^\w\n]++(yes|no)[^\w\n]*+$", re.I | re.M | re.ASCII)
_THOUGHTS_END = "</think>"
_THOUGHTS_START = "<think>"
_MAX_BLOCKS = 50
MAX_REASON_CHARACTERS = 2_000
_MAX_CLAUSE_CHARACTERS = 40


def parse_reply(
    contract: str, text: str, rateable: Sequence[int], *, is_complete: bool = True, body: bytes = b""
) -> ParsedReply:
    """Read one answer. An answer that was cut off is not read, because its result may not be final. `body` is the whole
    response, which may state log probabilities."""
    answer = read_answer(text, is_complete=is_complete)
    if isinstance(answer, ParsedReply):
        return answer
    if contract == JudgeContract.CRITIC:
        return _parse_critic(answer, rateable)
    if contract == JudgeContract.YES_NO:
        return _parse_yes_no(answer.strip(), rateable, body)
    return _parse_labels(contract, answer, rateable)


def read_answer(text: str, *, is_complete: bool) -> str | ParsedReply:
    """Return the text after the thoughts, or the reason why it is not read."""
    answer = text.rpartition(_THOUGHTS_END)[2]
    if not is_complete or _THOUGHTS_START in answer:
        return ParsedReply(ReplyState.TRUNCATED)
    return answer if answer.strip() else ParsedReply(ReplyState.EMPTY)


def _parse_critic(answer: str, rateable: Sequence[int]) -> ParsedReply:
    boxes = _BOX.findall(answer)
    content = boxes[-1].strip().strip("$").strip() if boxes else ""
    if not _NUMBER.fullmatch(content):
        return ParsedReply(ReplyState.UNPARSED)
    number = int(content.replace("−", "-"))
    if number == -1:
        return ParsedReply(ReplyState.PARSED, None, dict.fromkeys(rateable, 1))
    if number not in rateable:
        return ParsedReply(ReplyState.OUT_OF_RANGE)
    ratings = {position: -1 if position == number else 1 for position in rateable if position <= number}
    return ParsedReply(ReplyState.PARSED, number, ratings)


def _parse_yes_no(answer: str, rateable: Sequence[int], body: bytes) -> ParsedReply:
    lines = list(_YES_NO_LINE.finditer(answer))
    if not lines:
        return ParsedReply(ReplyState.UNPARSED)
    last = {int(line[1]): line for line in lines}
    if not set(last) <= set(rateable):
        return ParsedReply(ReplyState.OUT_OF_RANGE)
    ratings = {position: 1 if last[position][2].casefold() == "yes" else -1 for position in sorted(last)}
    first_error = min((position for position, rating in ratings.items() if rating == -1), default=None)
    needed = {position for position in rateable if first_error is None or position <= first_error}
    if not needed <= set(ratings):
        return ParsedReply(ReplyState.UNPARSED)
    places = [last[position].start(2) for position in ratings]
    shares = token_probabilities.find_yes_shares(token_probabilities.read_tokens(body), answer, places)
    known = {position: share for position, share in zip(ratings, shares, strict=True) if share is not None}
    return ParsedReply(ReplyState.PARSED, first_error, ratings, yes_shares=known)


def _parse_labels(contract: str, answer: str, rateable: Sequence[int]) -> ParsedReply:
    for text in _list_candidates(answer):
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            continue
        labels = _read_labels(contract, content)
        if labels is not None:
            reply = _check_labels(labels, rateable)
            return _add_clauses(reply, content["steps"]) if contract == JudgeContract.POLICY else reply
    return ParsedReply(ReplyState.UNPARSED)


def _list_candidates(answer: str) -> Iterator[str]:
    """Return what may be the JSON object, the last one first."""
    yield from reversed(_BLOCK.findall(answer)[-_MAX_BLOCKS:])
    start, end = answer.find("{"), answer.rfind("}")
    if 0 <= start < end:
        yield answer[start : end + 1]


_Labels = dict[int, tuple[Any, str]]


def _read_labels(contract: str, content: Any) -> _Labels | None:
    """Return label and reason by step, or None if the object has another shape."""
    if not isinstance(content, dict):
        return None
    if contract in (JudgeContract.STEP_LABELS, JudgeContract.POLICY):
        return _read_step_list(content.get("steps"))
    labels, reasons = content.get("step_labels"), content.get("explanations")
    if not isinstance(labels, dict):
        return None
    reasons = reasons if isinstance(reasons, dict) else {}
    if not all(_is_index(key) for key in labels):
        return None
    return {int(key): (label, _clean_reason(reasons.get(key))) for key, label in labels.items() if label is not None}


def _read_step_list(steps: Any) -> _Labels | None:
    if not isinstance(steps, list):
        return None
    found: _Labels = {}
    for each in steps:
        if not isinstance(each, dict) or not _is_index(each.get("step")):
            return None
        if each.get("label") is not None:
            found[int(each["step"])] = (each["label"], _clean_reason(each.get("reason")))
    return found


def _is_index(value: Any) -> bool:
    return not isinstance(value, bool) and re.fullmatch(r"\d{1,9}", str(value), re.ASCII) is not None


def _clean_reason(reason: Any) -> str:
    """Return a text that the database accepts."""
    text = reason if isinstance(reason, str) else ""
    return text.replace("\0", "").encode("utf-8", "ignore").decode()[:MAX_REASON_CHARACTERS]


def _check_labels(labels: _Labels, rateable: Sequence[int]) -> ParsedReply:
    if any(isinstance(label, bool) or label not in (-1, 0, 1) for label, _ in labels.values()):
        return ParsedReply(ReplyState.UNPARSED)
    if not set(labels) <= set(rateable):
        return ParsedReply(ReplyState.OUT_OF_RANGE)
    wrong = [position for position, (label, _) in labels.items() if label == -1]
    if not wrong and set(labels) != set(rateable):
        return ParsedReply(ReplyState.UNPARSED)
    ratings = {position: int(label) for position, (label, _) in sorted(labels.items())}
    reasons = {position: reason for position, (_, reason) in sorted(labels.items()) if reason}
    return ParsedReply(ReplyState.PARSED, min(wrong, default=None), ratings, reasons)


def _add_clauses(reply: ParsedReply, steps: list[dict[str, Any]]) -> ParsedReply:
    """Add the clauses that the steps name. Without the broken clause, the answer cannot be checked by a person."""
    if reply.state != ReplyState.PARSED:
        return reply
    named = {int(each["step"]): _clean_clause(each.get("clause")) for each in steps}
    clauses = {position: named[position] for position in reply.ratings if named.get(position)}
    if any(rating == -1 and position not in clauses for position, rating in reply.ratings.items()):
        return ParsedReply(ReplyState.UNPARSED)
    return replace(reply, clauses=clauses)


def _clean_clause(clause: Any) -> str:
    """Return the clause as text. Models write numbers such as 2.1 without quotes."""
    is_number = isinstance(clause, (int, float)) and not isinstance(clause, bool)
    return _clean_reason(str(clause) if is_number else clause).strip()[:_MAX_CLAUSE_CHARACTERS]
