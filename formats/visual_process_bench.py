"""VisualProcessBench: solutions of problems with images, in which people rated every step.

A record names the files of its images, which are beside it. Each step is 1 (right), 0 (neutral) or -1 (wrong). W. Wang
et al. (2025), "VisualPRM: an effective process reward model for multimodal reasoning", arXiv:2503.10291.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Literal

import msgspec
from msgspec import Struct

from formats import examples, images, records, strict_json
from formats.examples import Columns, LabelRule, OutputRow, RowTally, TraceExample, get_taken_rating
from formats.record_reader import RecordReader
from formats.records import LIVE, ProblemRecord, ProvenanceRecord, RecordName, SubmissionRecord, TraceRecord

ANNOTATORS = "VisualProcessBench annotators"
COLUMNS: Columns = {
    "image": ["string"],
    "question": "string",
    "answer": "string",
    "response": {"steps": ["string"], "process_correctness": ["int64"]},
    "policy_model": "string",
    "data_source": "string",
    **examples.MACHINE_COLUMNS,  # only in rows of machines and of people who saw their labels
}


class VisualResponse(Struct, gc=False):
    steps: list[str]
    process_correctness: list[Literal[-1, 0, 1]]


class VisualItem(Struct, gc=False):
    image: str | list[str]
    question: str
    response: VisualResponse | str  # text is JSON
    answer: str | None = None
    policy_model: RecordName | None = ""
    data_source: RecordName | None = ""


def parse_traces(item: VisualItem) -> Iterator[TraceRecord]:
    response = item.response if isinstance(item.response, VisualResponse) else _parse_response(item.response)
    n_steps, n_labels = len(response.steps), len(response.process_correctness)
    if n_steps != n_labels:
        raise strict_json.RecordMisfit(("response",), f"{n_labels} labels for {n_steps} steps")
    names = [item.image] if isinstance(item.image, str) else item.image
    text, shown = images.place_images(item.question, images.parse_references(names, ("image",)))
    yield TraceRecord(
        problem=ProblemRecord(text, answer=item.answer, domain=(item.data_source or "")[:100], images=shown),
        steps=records.make_steps(response.steps),
        provenance=ProvenanceRecord(policy=item.policy_model or ""),
        submissions=[
            SubmissionRecord(
                records.make_turns(response.steps, response.process_correctness),
                labeler=ANNOTATORS,
                finish_reason="solution",
                protocol="every_step",
            )
        ],
    )


def _parse_response(text: str) -> VisualResponse:
    try:
        return msgspec.json.decode(text, type=VisualResponse)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise strict_json.RecordMisfit(("response",), f"not steps and their labels: {error}") from error


read = RecordReader(VisualItem, parse_traces)


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    """Yield a row for each submission, or for the consensus. It ends before the first step without a rating."""
    for facts, record in example.labeled_records(rule, tally):
        by_position = {turn.position: get_taken_rating(turn) for turn in record.submissions[0].turns}
        ratings = map(by_position.get, range(len(record.steps)))
        labels = list(takewhile(lambda rating: rating is not None, ratings))
        if example.is_consensus and -1 in labels:  # it ends at the first error, as in every format
            labels = labels[: labels.index(-1) + 1]
        if record.kind == LIVE or not labels:
            tally.leave_out(examples.NOT_RATED)
            continue
        steps = [step.options[0].text for step in record.steps[: len(labels)]]
        problem = record.problem
        yield {
            "image": [images.write_path(image) for image in problem.images],
            "question": images.remove_last_placeholders(problem.text, problem.images),
            "answer": problem.answer if isinstance(problem.answer, str) else None,
            "response": {"steps": steps, "process_correctness": labels},
            "policy_model": record.provenance.policy if record.provenance else "",
            "data_source": problem.domain,
            **({} if example.is_consensus else examples.describe_machine(facts)),
        }
