"""Our own simple form: a problem and either steps or a text to cut into steps. docs/formats/native.md has it all."""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from formats import labeled_steps, segmenters, strict_json
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


decoder = msgspec.json.Decoder(NativeItem)


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and "problem" in record and bool({"steps", "text"} & record.keys())


def parse_traces(item: NativeItem, segmenter: str = "") -> Iterator[TraceRecord]:
    steps, segmenter = _steps(item, segmenter)
    yield TraceRecord(
        problem=ProblemRecord(item.problem, answer=item.answer, solution=item.solution, domain=item.domain),
        steps=steps,
        ref=item.ref,
        answer=item.final_answer,
        is_right=item.is_right,
        outcome_by="" if item.is_right is None else "file",
        provenance=ProvenanceRecord(item.base_model, item.policy, item.sampler, item.scaffold, segmenter),
        submissions=[] if item.labels is UNSET else [_submission(item, item.labels, steps)],
    )


def _steps(item: NativeItem, chosen: str) -> tuple[list[StepRecord], str]:
    if (item.steps is UNSET) == (item.text is UNSET):
        raise strict_json.RecordMisfit((), 'a record has either "steps" or "text"')
    if item.steps is not UNSET:
        return [_step(step) for step in item.steps], ""
    text = item.text or ""
    segmenter = chosen or item.segmenter or segmenters.choose_segmenter(text)
    if segmenter not in segmenters.SEGMENTER_NAMES:
        raise strict_json.RecordMisfit(
            ("segmenter",), f'no segmenter is called "{segmenter}": there are {", ".join(segmenters.SEGMENTER_NAMES)}'
        )
    return labeled_steps.make_cut_steps(segmenters.cut_text(text, segmenter=segmenter)), segmenter


def _step(given: str | NativeStep) -> StepRecord:
    if isinstance(given, str):
        return StepRecord([OptionRecord(given)])
    options = [OptionRecord(text) for text in (given.text, *given.alternatives)]
    return StepRecord(options, kind=given.kind, is_rateable=given.rateable)


def _submission(item: NativeItem, labels: list[Literal[-1, 0, 1] | None], steps: list[StepRecord]) -> SubmissionRecord:
    if len(labels) > len(steps):
        raise strict_json.RecordMisfit(("labels",), f"{len(labels)} labels for {len(steps)} steps")
    turns = labeled_steps.make_turns([step.options[0].text for step in steps], labels)
    return SubmissionRecord(turns, labeler=item.labeler)
