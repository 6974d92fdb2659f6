"""Stepmark's own format: a problem, and either steps or a text to split into steps. See docs/formats/native.md."""

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from formats import labeled_steps, segmenters, strict_json
from formats.record_reader import RecordReader
from formats.records import OptionRecord, ProblemRecord, ProvenanceRecord, StepRecord, SubmissionRecord, TraceRecord

_Name = Annotated[str, Meta(max_length=200)]
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
    ref: _Name = ""
    steps: list[str | NativeStep] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    segmenter: str = ""
    final_answer: str | None = None
    is_right: bool | None = None
    base_model: _Name = ""
    policy: _Name = ""
    sampler: dict[str, object] = {}
    scaffold: _Name = ""
    labels: list[Literal[-1, 0, 1] | None] | UnsetType = UNSET
    labeler: Annotated[str, Meta(max_length=100)] | None = None


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and "problem" in record and bool({"steps", "text"} & record.keys())


def parse_traces(item: NativeItem, segmenter: str = "") -> Iterator[TraceRecord]:
    steps, segmenter = _make_steps(item, segmenter)
    yield TraceRecord(
        problem=ProblemRecord(item.problem, answer=item.answer, solution=item.solution, domain=item.domain),
        steps=steps,
        ref=item.ref,
        answer=item.final_answer,
        is_right=item.is_right,
        outcome_by="" if item.is_right is None else "file",
        provenance=ProvenanceRecord(item.base_model, item.policy, item.sampler, item.scaffold, segmenter),
        submissions=[] if item.labels is UNSET else [_make_submission(item, item.labels, steps)],
    )


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
    return labeled_steps.make_cut_steps(segmenters.cut_text(text, segmenter=segmenter)), segmenter


def _make_step(step: str | NativeStep) -> StepRecord:
    if isinstance(step, str):
        return StepRecord([OptionRecord(step)])
    options = [OptionRecord(text) for text in (step.text, *step.alternatives)]
    return StepRecord(options, kind=step.kind, is_rateable=step.rateable)


def _make_submission(
    item: NativeItem, labels: list[Literal[-1, 0, 1] | None], steps: list[StepRecord]
) -> SubmissionRecord:
    if len(labels) > len(steps):
        raise strict_json.RecordMisfit(("labels",), f"{len(labels)} labels for {len(steps)} steps")
    turns = labeled_steps.make_turns([step.options[0].text for step in steps], labels)
    return SubmissionRecord(turns, labeler=item.labeler)


read = RecordReader(NativeItem, parse_traces, takes_segmenter=True)
