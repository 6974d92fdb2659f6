"""What makes two records speak of the same problem, trace or submission. Pure.

Digests are made from named fields in a fixed order and never from whole structs, so that a field added to a record
tomorrow does not make everything that was imported yesterday new.
"""

import hashlib
from collections import defaultdict

import msgspec
from msgspec import UNSET

from formats.records import LIVE, OptionRecord, ProblemRecord, TraceRecord


def digest_problem(problem: ProblemRecord) -> str:
    """Text, answer and solution, and which of them the file left out."""
    answer = None if problem.answer is UNSET else [problem.answer]
    solution = None if problem.solution is UNSET else [problem.solution]
    return _digest([problem.text, answer, solution])


def digest_trace(record: TraceRecord, *, problem: str, occurrence: int) -> str:
    """A live trace is its record; one that was generated before is what was generated, whoever labelled it."""
    if record.kind == LIVE:
        return _digest(["live", record.digest, occurrence])
    steps = [[step.kind, [_option_fields(option) for option in step.options]] for step in record.steps]
    segmenter = record.provenance.segmenter if record.provenance else ""
    return _digest([problem, steps, record.answer, record.verifier_score, segmenter])


def digest_submission(record: TraceRecord, number: int) -> str:
    """The record's own digest; where one record holds several submissions, with their number in it."""
    return record.digest if number == 0 else _digest([record.digest, number])


def is_reserve(normal_digest: str, share: float) -> bool:
    """Whether a problem is set aside for evaluation. The same for the same text, in every project and on every day."""
    return int(normal_digest[:16], 16) < share * 2.0**64


class OccurrenceCounter:
    """How often each record has come in a file so far. Eight bytes of a digest stand for it: a file of a million
    records has two alike by chance once in thirty million files."""

    def __init__(self) -> None:
        self._counts: defaultdict[int, int] = defaultdict(int)

    def next_of(self, digest: str) -> int:
        if not digest:
            return 0  # of no file: what it says is all that it is
        key = int(digest[:16], 16)
        count = self._counts[key]
        self._counts[key] = count + 1
        return count


def match_options(texts: list[str], known: list[str]) -> list[int]:
    """Where each text stands among the options of a step; texts not there yet are appended to `known`.

    The second time a text comes it is the second option with that text: duplicates are never merged.
    """
    if texts == known[: len(texts)]:
        return list(range(len(texts)))
    free: defaultdict[str, list[int]] = defaultdict(list)
    for place in range(len(known) - 1, -1, -1):
        free[known[place]].append(place)
    return [_take_place(text, free[text], known) for text in texts]


def _take_place(text: str, free: list[int], known: list[str]) -> int:
    if free:
        return free.pop()
    known.append(text)
    return len(known) - 1


def _option_fields(option: OptionRecord) -> list[object]:
    parts = [[part.kind, part.text, part.name, part.call_ref, part.media_type, part.data] for part in option.parts]
    return [option.text, parts]


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()
