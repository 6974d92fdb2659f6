"""GSM8K's example solutions: a problem with several models' solutions, each right or wrong. No step has a label."""

import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from labeling.importing import segmenters
from labeling.importing.readers import labelled, strictjson
from labeling.importing.records import ProblemRecord, ProvenanceRecord, TraceRecord

SEGMENTER = "lines 2"
_ANSWER = re.compile(r"(?:^|\n)(?:A:|####)\s*(.+?)\s*$")


class Attempt(Struct, gc=False):
    solution: str
    is_correct: bool | None = None


decoder = msgspec.json.Decoder(dict[str, object])


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and "question" in record and bool(list(_solutions(record)))


def traces(record: dict[str, object], segmenter: str = SEGMENTER) -> Iterator[TraceRecord]:
    try:
        question = msgspec.convert(record.get("question"), str)
        truth = msgspec.convert(record.get("ground_truth"), str | None)
        solutions = {model: msgspec.convert(given, Attempt) for model, given in _solutions(record)}
    except msgspec.ValidationError as error:
        raise strictjson.misfit(error) from error
    if long := next((model for model in solutions if len(model) > 200), None):
        raise strictjson.Misfit((long,), "a model's name has 200 characters at most")
    if not solutions:
        raise strictjson.Misfit((), "no model's solution in this record")
    problem = ProblemRecord(question, answer=_answer(truth or ""), solution=truth)
    for model, solution in solutions.items():
        yield TraceRecord(
            problem=problem,
            steps=labelled.cut_steps(segmenters.cut(solution.solution, segmenter=segmenter)),
            answer=_answer(solution.solution),
            is_right=solution.is_correct,
            outcome_by="" if solution.is_correct is None else "file",
            provenance=ProvenanceRecord(policy=model, segmenter=segmenter),
        )


def _solutions(record: dict[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in record.items():
        if isinstance(value, dict) and "solution" in value:
            yield key, value


def _answer(text: str) -> str | None:
    found = _ANSWER.search(text)
    return found and found.group(1)
