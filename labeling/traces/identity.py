"""Decide whether two records are the same problem, trace or submission.

Digests use named fields in a fixed order, never whole structs, so that a new field of a record does not change the
identity of what is already imported.
"""

import hashlib
from collections import defaultdict

import msgspec
from msgspec import UNSET

from formats.records import LIVE, OptionRecord, ProblemRecord, TraceRecord


def digest_problem(problem: ProblemRecord) -> str:
    """Digest text, answer and solution. An absent value differs from null."""
    answer = None if problem.answer is UNSET else [problem.answer]
    solution = None if problem.solution is UNSET else [problem.solution]
    return _digest([problem.text, answer, solution])


def digest_trace(record: TraceRecord, *, problem: str, occurrence: int) -> str:
    """Digest a trace. A live trace is identified by its record, any other by its content without the labels."""
    if record.kind == LIVE:
        return _digest(["live", record.digest, occurrence])
    steps = [[step.kind, [_option_fields(option) for option in step.options]] for step in record.steps]
    segmenter = record.provenance.segmenter if record.provenance else ""
    return _digest([problem, steps, record.answer, record.verifier_score, segmenter])


def digest_submission(record: TraceRecord, number: int) -> str:
    """Digest a submission. If a record has several, all but the first include their number."""
    return record.digest if number == 0 else _digest([record.digest, number])


def is_reserve(normal_digest: str, share: float) -> bool:
    """Tell whether a problem belongs to the held-out set. Depends only on its text and the share."""
    return int(normal_digest[:16], 16) < share * 2.0**64


class OccurrenceCounter:
    """Count the earlier occurrences of each record in a file.

    Records are compared by eight bytes of their digest: a collision happens in one of thirty million files with a
    million records.
    """

    def __init__(self) -> None:
        self._counts: defaultdict[int, int] = defaultdict(int)

    def next_of(self, digest: str) -> int:
        if not digest:
            return 0  # not from a file: the content alone identifies it
        key = int(digest[:16], 16)
        count = self._counts[key]
        self._counts[key] = count + 1
        return count


def match_options(texts: list[str], known: list[str]) -> list[int]:
    """Return the position of each text among the options of a step. New texts are appended to `known`.

    The n-th occurrence of a text is the n-th option with that text: duplicates are never merged.
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
