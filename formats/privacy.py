"""Find private data in texts and records: email addresses, telephone numbers, keys.

A match of a pattern is not proof. Matches are counted; records are masked or refused only if the lead asks for it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from formats.records import OptionRecord, SubmissionRecord, TraceRecord

_EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*\.[A-Za-z]{2,24}\b")
# International, or grouped: a run of digits without groups is usually arithmetic.
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
_KIND_LABELS = {"email": "an email address", "phone": "a telephone number", "key": "a key"}
# A fast check that almost every text fails. Every match of a pattern contains one of these.
_HINTS = ("@", "sk-", "gh", "AKIA", "AIza", "hf_", "xox", "glpat-", "PRIVATE KEY")
_NUMBER = re.compile(r"\+\d[\d .(-]{7}|-\d{3}")

PrivacyMode = Literal["count", "mask", "refuse"]
PRIVACY_MODES: tuple[PrivacyMode, ...] = ("count", "mask", "refuse")


def count_private(text: str) -> Counter[str]:
    """Count the matches of each kind in a text."""
    if not _may_match(text):
        return Counter()
    return Counter({kind: n for kind, pattern in _PATTERNS.items() if (n := sum(1 for _ in pattern.finditer(text)))})


def count_private_in(texts: Iterable[str]) -> Counter[str]:
    """Count the matches in many texts. One fast check of all of them is enough in most cases."""
    all_texts = list(texts)
    counts: Counter[str] = Counter()
    if _may_match("\n".join(all_texts)):
        for text in all_texts:
            counts.update(count_private(text))
    return counts


def _may_match(text: str) -> bool:
    return any(hint in text for hint in _HINTS) or _NUMBER.search(text) is not None


def mask_text(text: str) -> str:
    """Replace every match by a placeholder."""
    if not _may_match(text):
        return text
    for kind, pattern in _PATTERNS.items():
        text = pattern.sub(_MASKS[kind], text)
    return text


def record_texts(record: TraceRecord) -> Iterator[str]:
    """Yield every text of a record. The text of an option is not repeated for its ratings."""
    problem = record.problem
    yield problem.text
    yield from (text for text in (problem.answer, problem.solution, record.answer) if isinstance(text, str))
    option_texts: set[str] = set()
    for step in record.steps:
        for option in step.options:
            option_texts.add(option.text)
            yield option.text
            yield from (part.text for part in option.parts if part.text != option.text)
    for submission in record.submissions:
        yield from _submission_texts(submission, option_texts)


def _submission_texts(submission: SubmissionRecord, option_texts: set[str]) -> Iterator[str]:
    yield submission.finish_note
    for turn in submission.turns:
        yield turn.comment
        if turn.written is not None:
            yield turn.written.text
        for judgment in turn.shown or ():
            yield judgment.reason
            if judgment.text not in option_texts:
                yield judgment.text


def describe_private(record: TraceRecord) -> str:
    """Name the kinds of private data in a record. The text is empty if nothing was found."""
    return ", ".join(_KIND_LABELS[kind] for kind in count_private_in(record_texts(record)))


def mask_record(record: TraceRecord) -> TraceRecord:
    """Mask a record in place. Options and their ratings are masked alike, so they still match."""
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
    record.residue = None  # the original bytes contain the private data
    return record


def _mask_option(option: OptionRecord) -> OptionRecord:
    parts = tuple(msgspec.structs.replace(part, text=mask_text(part.text)) for part in option.parts)
    return msgspec.structs.replace(option, text=mask_text(option.text), parts=parts)


def _mask_submission(submission: SubmissionRecord) -> None:
    submission.finish_note = mask_text(submission.finish_note)
    for turn in submission.turns:
        turn.comment = mask_text(turn.comment)
        if turn.written is not None:
            turn.written.text = mask_text(turn.written.text)
        for judgment in turn.shown or ():
            judgment.text, judgment.reason = mask_text(judgment.text), mask_text(judgment.reason)
