"""Stepmark's own format: a problem, and either steps or a text to split into steps. See docs/formats/native.md."""

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from formats import records, segmenters, strict_json
from formats.record_reader import RecordReader
from formats.records import (
    JudgmentRecord,
    OptionRecord,
    ProblemRecord,
    ProvenanceRecord,
    RecordName,
    StepRecord,
    SubmissionRecord,
    TraceRecord,
    TurnRecord,
)

_Kind = Literal["system", "user", "reasoning", "action", "observation", "answer"]


class NativeStep(Struct, gc=False, forbid_unknown_fields=True):
    text: str
    alternatives: Annotated[list[str], Meta(max_length=1000)] = []
    kind: _Kind = "reasoning"
    rateable: bool = True


class NativeItem(Struct, gc=False, forbid_unknown_fields=True):
    problem: str
    answer: str | UnsetType | None = UNSET
    solution: str | UnsetType | None = UNSET
    domain: Annotated[str, Meta(max_length=100)] = ""
    ref: RecordName = ""
    steps: list[str | NativeStep] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    segmenter: str = ""
    final_answer: str | None = None
    is_right: bool | None = None
    base_model: RecordName = ""
    policy: RecordName = ""
    sampler: dict[str, object] = {}
    scaffold: RecordName = ""
    labels: list[Annotated[float, Meta(ge=-1, le=1)] | None] | UnsetType = UNSET
    labeler: Annotated[str, Meta(max_length=100)] | None = None


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and "problem" in record and bool({"steps", "text"} & record.keys())


def parse_traces(item: NativeItem, segmenter: str = "") -> Iterator[TraceRecord]:
    steps, segmenter = _make_steps(item, segmenter)
    submissions = []
    if item.labels is not UNSET:
        if len(item.labels) > len(steps):
            raise strict_json.RecordMisfit(("labels",), f"{len(item.labels)} labels for {len(steps)} steps")
        submissions = [SubmissionRecord(_make_turns(steps, item.labels), labeler=item.labeler)]
    yield TraceRecord(
        problem=ProblemRecord(item.problem, answer=item.answer, solution=item.solution, domain=item.domain),
        steps=steps,
        ref=item.ref,
        answer=item.final_answer,
        is_right=item.is_right,
        provenance=ProvenanceRecord(item.base_model, item.policy, item.sampler, item.scaffold, segmenter),
        submissions=submissions,
    )


def _make_turns(steps: list[StepRecord], labels: list[float | None]) -> list[TurnRecord]:
    """Make ratings of -1, 0 and 1, or values of all labels if one of them is a number in between."""
    texts = [step.options[0].text for step in steps]
    if all(label is None or label.is_integer() for label in labels):
        return records.make_turns(texts, [label if label is None else int(label) for label in labels])
    for index, label in enumerate(labels):
        if label is not None and label < 0:
            raise strict_json.RecordMisfit(("labels", index), "soft labels are probabilities: none may be negative")
    return [
        TurnRecord(position, shown=[JudgmentRecord(texts[position], value=label)])
        for position, label in enumerate(labels)
    ]


def _make_steps(item: NativeItem, chosen: str) -> tuple[list[StepRecord], str]:
    if (item.steps is UNSET) == (item.text is UNSET):
        raise strict_json.RecordMisfit((), 'a record needs either "steps" or "text", not both')
    if item.steps is not UNSET:
        return [_make_step(step) for step in item.steps], ""
    text = item.text or ""
    segmenter = chosen or item.segmenter or segmenters.choose_segmenter(text)
    if segmenter not in segmenters.SEGMENTER_NAMES:
        raise strict_json.RecordMisfit(
            ("segmenter",), f'unknown segmenter "{segmenter}": choose one of {", ".join(segmenters.SEGMENTER_NAMES)}'
        )
    return records.cut_steps(text, segmenter=segmenter), segmenter


def _make_step(step: str | NativeStep) -> StepRecord:
    if isinstance(step, str):
        return StepRecord([OptionRecord(step)])
    options = [OptionRecord(text) for text in (step.text, *step.alternatives)]
    return StepRecord(options, kind=step.kind, is_rateable=step.rateable)


read = RecordReader(NativeItem, parse_traces, looks_like=looks_like, takes_segmenter=True)
