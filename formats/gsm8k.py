"""GSM8K's example solutions: a problem with solutions of several models, each right or wrong, without step labels."""

import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from formats import records, strict_json
from formats.record_reader import RecordReader
from formats.records import ProblemRecord, ProvenanceRecord, TraceRecord

SEGMENTER = "lines 2"
_ANSWER = re.compile(r"(?:^|\n)(?:A:|####)\s*(.+?)\s*$")


class Gsm8kSolution(Struct, gc=False):
    solution: str
    is_correct: bool | None = None


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and "question" in record and bool(list(_solutions(record)))


def parse_traces(record: dict[str, object], segmenter: str = SEGMENTER) -> Iterator[TraceRecord]:
    try:
        question = msgspec.convert(record.get("question"), str)
        truth = msgspec.convert(record.get("ground_truth"), str | None)
        solutions = {model: msgspec.convert(given, Gsm8kSolution) for model, given in _solutions(record)}
    except msgspec.ValidationError as error:
        raise strict_json.misfit_from_error(error) from error
    if long := next((model for model in solutions if len(model) > 200), None):
        raise strict_json.RecordMisfit((long,), "the name of a model is longer than 200 characters")
    if not solutions:
        raise strict_json.RecordMisfit((), "the record has no solution of a model")
    problem = ProblemRecord(question, answer=_answer(truth or ""), solution=truth)
    for model, solution in solutions.items():
        yield TraceRecord(
            problem=problem,
            steps=records.cut_steps(solution.solution, segmenter=segmenter),
            answer=_answer(solution.solution),
            is_right=solution.is_correct,
            provenance=ProvenanceRecord(policy=model, segmenter=segmenter),
        )


def _solutions(record: dict[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in record.items():
        if isinstance(value, dict) and "solution" in value:
            yield key, value


def _answer(text: str) -> str | None:
    match = _ANSWER.search(text)
    return match and match.group(1)


read = RecordReader(dict[str, object], parse_traces, looks_like=looks_like, takes_segmenter=True)
