"""TRL's stepwise supervision: a prompt, completions, and a truth value for each. The file does not say who judged."""

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Struct

from labeling.importing.readers import labelled, strictjson
from labeling.importing.records import ProblemRecord, SubmissionRecord, TraceRecord


class Item(Struct, gc=False):
    prompt: str
    completions: list[str]
    labels: list[bool | Literal[0, 1]]


decoder = msgspec.json.Decoder(Item)


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and {"prompt", "completions", "labels"} <= record.keys()


def traces(item: Item) -> Iterator[TraceRecord]:
    if len(item.labels) > len(item.completions):
        raise strictjson.Misfit(("labels",), f"{len(item.labels)} labels for {len(item.completions)} completions")
    ratings = [1 if label else -1 for label in item.labels]
    yield TraceRecord(
        problem=ProblemRecord(item.prompt),
        steps=labelled.steps(item.completions),
        submissions=[SubmissionRecord(labelled.turns(item.completions, ratings))],
    )
