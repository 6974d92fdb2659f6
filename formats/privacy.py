"""Patterns of what may be somebody's own: e-mail addresses, telephone numbers, keys.

A pattern is a suspicion, no proof: what it finds is counted, and masked or refused only where the lead asks for it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from formats.records import OptionRecord, PartRecord, SubmissionRecord, TraceRecord

_EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*\.[A-Za-z]{2,24}\b")
# International, or grouped as people write them: a bare row of digits is arithmetic.
_PHONE = re.compile(
    r"(?<![\w.$^{}()+*/=-])(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{2,4}(?:[ .-]?\d{2,4}){2,3}"
    r"|\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4})(?![\w.-]\d|\w)"
)
_KEY = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{40,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}"
    r"|hf_[A-Za-z0-9]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}|glpat-[A-Za-z0-9_-]{20,})"
    r"|-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"
)
_PATTERNS = {"email": _EMAIL, "phone": _PHONE, "key": _KEY}
_MASKS = {"email": "[e-mail]", "phone": "[telephone]", "key": "[key]"}
PRIVATE_KINDS = tuple(_MASKS)
# Nearly every text has none of these. Each look begins with characters that are found fast.
_HINTS = ("@", "sk-", "gh", "AKIA", "AIza", "hf_", "xox", "glpat-", "PRIVATE KEY")
_NUMBER = re.compile(r"\+\d[\d .(-]{7}|-\d{3}")


def count_private(text: str) -> Counter[str]:
    """How many of each kind the text seems to hold."""
    if not _may_hold(text):
        return Counter()
    return Counter({kind: n for kind, pattern in _PATTERNS.items() if (n := sum(1 for _ in pattern.finditer(text)))})


def count_private_in(texts: Iterable[str]) -> Counter[str]:
    """The same of many texts together: one look decides for nearly all of them."""
    whole = list(texts)
    counts: Counter[str] = Counter()
    if _may_hold("\n".join(whole)):
        for text in whole:
            counts.update(count_private(text))
    return counts


def _may_hold(text: str) -> bool:
    return any(hint in text for hint in _HINTS) or _NUMBER.search(text) is not None


def mask_text(text: str) -> str:
    """The text with a word for each of them."""
    if not _may_hold(text):
        return text
    for kind, pattern in _PATTERNS.items():
        text = pattern.sub(_MASKS[kind], text)
    return text


# The texts of a record, and the record with what may be somebody's own masked in each of them. Pure.


PrivacyMode = Literal["count", "mask", "refuse"]
PRIVACY_MODES: tuple[PrivacyMode, ...] = ("count", "mask", "refuse")
_KIND_LABELS = dict(zip(PRIVATE_KINDS, ("an e-mail address", "a telephone number", "a key"), strict=True))


def record_texts(record: TraceRecord) -> Iterator[str]:
    """Every text that people or programs wrote; what a rating repeats of a step is told once."""
    problem = record.problem
    yield problem.text
    yield from (text for text in (problem.answer, problem.solution, record.answer) if isinstance(text, str))
    seen: set[str] = set()
    for step in record.steps:
        for option in step.options:
            seen.add(option.text)
            yield option.text
            yield from (part.text for part in option.parts if part.text != option.text)
    for submission in record.submissions:
        yield from _submission_texts(submission, seen)


def _submission_texts(submission: SubmissionRecord, seen: set[str]) -> Iterator[str]:
    yield submission.finish_note
    for turn in submission.turns:
        yield turn.comment
        if turn.written is not None:
            yield turn.written.text
        for judgment in turn.shown or ():
            yield judgment.reason
            if judgment.text not in seen:
                yield judgment.text


def describe_private(record: TraceRecord) -> str:
    """Why a record is refused; empty where nothing was found."""
    return ", ".join(_KIND_LABELS[kind] for kind in count_private_in(record_texts(record)))


def mask_record(record: TraceRecord) -> TraceRecord:
    """A step and the ratings that repeat its text are masked alike, so they still belong together."""
    problem = record.problem
    record.problem = msgspec.structs.replace(
        problem,
        text=mask_text(problem.text),
        answer=mask_text(problem.answer) if isinstance(problem.answer, str) else problem.answer,
        solution=mask_text(problem.solution) if isinstance(problem.solution, str) else problem.solution,
    )
    record.answer = mask_text(record.answer) if record.answer else record.answer
    for step in record.steps:
        step.options = [_mask_option(option) for option in step.options]
    for submission in record.submissions:
        _mask_submission(submission)
    record.residue = None  # the bytes of the file hold it still
    return record


def _mask_option(option: OptionRecord) -> OptionRecord:
    parts = tuple(_mask_part(part) for part in option.parts)
    return msgspec.structs.replace(option, text=mask_text(option.text), parts=parts)


def _mask_part(part: PartRecord) -> PartRecord:
    return msgspec.structs.replace(part, text=mask_text(part.text))


def _mask_submission(submission: SubmissionRecord) -> None:
    submission.finish_note = mask_text(submission.finish_note)
    for turn in submission.turns:
        turn.comment = mask_text(turn.comment)
        if turn.written is not None:
            turn.written.text = mask_text(turn.written.text)
        for judgment in turn.shown or ():
            judgment.text, judgment.reason = mask_text(judgment.text), mask_text(judgment.reason)
