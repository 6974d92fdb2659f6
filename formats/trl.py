"""TRL's stepwise supervision: a prompt, completions, and a truth value for each. The file does not say who judged."""

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Struct

from formats import labeled_steps, strict_json
from formats.records import ProblemRecord, SubmissionRecord, TraceRecord


class TrlItem(Struct, gc=False):
    prompt: str
    completions: list[str]
    labels: list[bool | Literal[0, 1]]


decoder = msgspec.json.Decoder(TrlItem)


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and {"prompt", "completions", "labels"} <= record.keys()


def parse_traces(item: TrlItem) -> Iterator[TraceRecord]:
    if len(item.labels) > len(item.completions):
        raise strict_json.RecordMisfit(
            ("labels",), f"{len(item.labels)} labels for {len(item.completions)} completions"
        )
    ratings = [1 if label else -1 for label in item.labels]
    yield TraceRecord(
        problem=ProblemRecord(item.prompt),
        steps=labeled_steps.make_steps(item.completions),
        submissions=[SubmissionRecord(labeled_steps.make_turns(item.completions, ratings))],
    )
