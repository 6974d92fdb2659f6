"""Find private data in texts and records: email addresses, telephone numbers, keys.

A match of a pattern is not proof. Matches are counted; records are masked or refused only if the lead asks for it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import msgspec

from formats.records import OriginalRecord, TraceRecord

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
_KIND_LABELS = {"email": "an email address", "phone": "a telephone number", "key": "a key"}
# A fast check that almost every text fails. Every match of a pattern contains one of these, which are ordered by a
# character of theirs: a character is found a hundred times as fast as a word.
_HINTS = {
    "@": ("@",),
    "_": ("gh", "hf_"),
    "-": ("sk-", "xox", "glpat-"),
    "A": ("AKIA", "AIza"),
    "Y": ("PRIVATE KEY",),
}
# Two patterns, because `re` jumps to the next occurrence of a first character only if all matches begin with it.
_NUMBERS = re.compile(r"\+\d[\d .(-]{7}"), re.compile(r"-\d{3}")

PrivacyMode = Literal["count", "mask", "refuse"]
PRIVACY_MODES: tuple[PrivacyMode, ...] = get_args(PrivacyMode)


def count_private(texts: Sequence[str]) -> Counter[str]:
    """Count the matches of each kind in some texts. One fast check of all of them is enough in most cases."""
    counts: Counter[str] = Counter()
    if _may_match("\n".join(texts)):
        for kind, pattern in _PATTERNS.items():
            counts[kind] = sum(1 for text in texts for _ in pattern.finditer(text))
    return +counts  # without zeros


def count_private_in(record: TraceRecord) -> Counter[str]:
    """Count the matches of each kind in a record."""
    return count_private(record_texts(record)) if _may_match(_join_texts(record)) else Counter()


def _join_texts(record: TraceRecord) -> str:
    """Return all texts of a record as one, fast for a record without ratings and parts."""
    if record.submissions or record.metadata or record.original:
        return "\n".join(record_texts(record))
    options = [option for step in record.steps for option in step.options]
    if any([option.parts for option in options]):  # noqa: C419  a generator takes twice as long
        return "\n".join(record_texts(record))
    problem = record.problem
    others = [each for each in (problem.answer, problem.solution, record.answer) if isinstance(each, str)]
    return "\n".join([problem.text, *others, *[option.text for option in options]])


def _may_match(text: str) -> bool:
    for character, hints in _HINTS.items():
        if character in text and any(hint in text for hint in hints):
            return True
    return any(number.search(text) for number in _NUMBERS)


def mask_text(text: str) -> str:
    """Replace every match by a placeholder."""
    if not _may_match(text):
        return text
    for kind, pattern in _PATTERNS.items():
        text = pattern.sub(_MASKS[kind], text)
    return text


def record_texts(record: TraceRecord) -> list[str]:
    """Return every different text of a record."""
    if record.submissions or any(option.parts for step in record.steps for option in step.options):
        values = [getattr(owner, name) for owner, name in _text_fields(record)]
    else:  # the same for most records, without a generator
        values = [record.problem.text, record.problem.answer, record.problem.solution, record.answer]
        values += [option.text for step in record.steps for option in step.options]
    others = [record.metadata, *(submission.answers for submission in record.submissions)]
    texts = [value for value in dict.fromkeys(values) if isinstance(value, str)] + list(_find_texts(others))
    if record.original is not None:
        texts += {*_find_texts(_unpack_texts(json.loads(record.original.content)))} - {*texts}
    return texts


def _text_fields(record: TraceRecord) -> Iterator[tuple[msgspec.Struct, str]]:
    """Yield every text of a record as its owner and the name of its field."""
    yield from ((record.problem, name) for name in ("text", "answer", "solution"))
    yield record, "answer"
    yield from ((image, "description") for image in record.problem.images)
    for step in record.steps:
        for option in step.options:
            yield option, "text"
            yield from ((part, "text") for part in option.parts)
    for submission in record.submissions:
        yield submission, "finish_note"
        for turn in submission.turns:
            yield turn, "comment"
            yield turn, "missing"
            if turn.written is not None:
                yield turn.written, "text"
            for judgment in turn.shown or ():
                yield judgment, "text"
                yield judgment, "reason"
                for quote in judgment.evidence:
                    yield quote, "text"
                    yield quote, "reason"


def _find_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _find_texts(item)


def _mask_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _mask_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mask_texts(item) for item in value]
    return mask_text(value) if isinstance(value, str) else value


def _unpack_texts(value: Any) -> Any:
    """Return a value in which each text that is a JSON object or array is this value. In the text itself, escapes hide
    some private data, and a mask would break others."""
    if isinstance(value, dict):
        return {key: _unpack_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unpack_texts(item) for item in value]
    inner = _parse_nested(value) if isinstance(value, str) else None
    return value if inner is None else _unpack_texts(inner)


def _parse_nested(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _mask_original(value: Any) -> Any:
    """Mask the texts of a value, also those inside of texts that are JSON."""
    if isinstance(value, dict):
        return {key: _mask_original(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mask_original(item) for item in value]
    inner = _parse_nested(value) if isinstance(value, str) else None
    if inner is None:
        return _mask_texts(value)
    masked = _mask_original(inner)
    return value if masked == inner else json.dumps(masked)


def describe_private(record: TraceRecord) -> str:
    """Name the kinds of private data in a record. The text is empty if nothing was found."""
    return ", ".join(_KIND_LABELS[kind] for kind in count_private(record_texts(record)))


def mask_record(record: TraceRecord) -> TraceRecord:
    """Mask a record in place. Options and their ratings are masked alike, so they still match."""
    for owner, name in _text_fields(record):
        if isinstance(text := getattr(owner, name), str):
            msgspec.structs.force_setattr(owner, name, mask_text(text))  # some owners are frozen
    record.metadata = _mask_texts(record.metadata)
    for submission in record.submissions:
        submission.answers = _mask_texts(submission.answers)
    if record.original is not None:
        masked = json.dumps(_mask_original(json.loads(record.original.content)), ensure_ascii=False).encode()
        record.original = OriginalRecord(record.original.format, masked)
    record.residue = None  # the original bytes contain the private data
    return record
