"""Stepmark's own format: a problem, and either steps or a text to split into steps. See docs/formats/native.md."""

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from formats import examples, images, records, segmenters, strict_json
from formats.examples import (
    CITATION_COLUMNS,
    EVIDENCE_COLUMNS,
    MACHINE_COLUMNS,
    Columns,
    LabelRule,
    OutputRow,
    RowTally,
    TraceExample,
    get_taken_rating,
    write_citations,
    write_evidence,
)
from formats.images import ImageReference
from formats.label_sets import LabelingProtocol
from formats.record_reader import RecordReader
from formats.records import (
    CitationRecord,
    EvidenceRecord,
    ImageRecord,
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

MAX_METADATA = 100_000  # characters of JSON per record
_SIMILAR = 0.83  # `anwser` and `answer`, `label` and `labels`; less similar names are probably not typing errors
COLUMNS: Columns = {
    "problem": "string",
    "answer": "string",
    "solution": "string",
    "domain": "string",
    "ref": "string",
    "images": [images.COLUMNS],
    "steps": [
        {
            "text": "string",
            "images": [images.COLUMNS],
            "alternatives": ["string"],
            "kind": "string",
            "rateable": "bool",
            "agent": "string",
        }
    ],
    "segmenter": "string",
    "final_answer": "string",
    "verifier_score": "float64",
    "is_right": "bool",
    "base_model": "string",
    "policy": "string",
    "scaffold": "string",
    "reasoning": "string",
    "reasoning_by": "string",
    "pair": "string",
    "pair_half": "string",
    "labels": ["float64"],
    "labeling_protocol": "string",
    "error_links": ["string"],
    "error_categories": ["string"],
    "error_severities": ["int64"],
    "error_reasons": ["string"],
    "error_evidence": [{"step": "int64", **EVIDENCE_COLUMNS}],
    "clause_citations": [{"step": "int64", **CITATION_COLUMNS}],
    "omissions": ["string"],
    "trace_answers": "string",
    "labeler": "string",
    **MACHINE_COLUMNS,
    "metadata": "string",
}
# The attribute of a judgment, and its value if there is nothing to say, by the list that has it.
_EXPLANATIONS: dict[str, tuple[str, str | None]] = {
    "error_links": ("error_link", ""),
    "error_categories": ("category", ""),
    "error_severities": ("severity", None),
    "error_reasons": ("reason", ""),
}
AnswerCode = Annotated[str, Meta(max_length=40)]  # of a question on the whole trace
_Kind = Literal["system", "user", "reasoning", "action", "observation", "answer"]


class NativeStep(Struct, gc=False, forbid_unknown_fields=True):
    text: str
    alternatives: Annotated[list[str], Meta(max_length=1000)] = []
    kind: _Kind = "reasoning"
    rateable: bool = True
    agent: RecordName = ""
    images: list[str | ImageReference] | None = None


class NativeQuote(EvidenceRecord, gc=False, kw_only=True, forbid_unknown_fields=True):
    step: int


class NativeCitation(Struct, gc=False, forbid_unknown_fields=True):
    step: int
    clause: Annotated[str, Meta(min_length=1, max_length=40)]
    digest: Annotated[str, Meta(max_length=64)] | None = ""
    version: Annotated[str, Meta(max_length=40)] | None = ""


class NativeItem(Struct, gc=False):
    problem: str
    answer: str | UnsetType | None = UNSET
    solution: str | UnsetType | None = UNSET
    domain: Annotated[str, Meta(max_length=100)] = ""
    ref: RecordName = ""
    images: list[str | ImageReference] | None = None  # of the problem
    steps: list[str | NativeStep] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    segmenter: Annotated[str, Meta(max_length=100)] = ""
    final_answer: str | None = None
    verifier_score: float | None = None
    is_right: bool | None = None
    base_model: RecordName = ""
    policy: RecordName = ""
    sampler: dict[str, object] = {}
    scaffold: RecordName = ""
    reasoning: Literal["", "raw", "summarised", "partly_hidden", "none"] = ""
    reasoning_by: RecordName = ""
    pair: RecordName | None = None
    pair_half: Literal["with", "without"] | None = None
    labels: list[Annotated[float, Meta(ge=-1, le=1)] | None] | UnsetType = UNSET
    labeling_protocol: LabelingProtocol | None = None
    error_links: list[Literal["", "recovers", "independent"] | None] | None = None
    error_categories: list[Annotated[str, Meta(max_length=500)] | None] | None = None
    error_severities: list[Annotated[int, Meta(ge=1, le=3)] | None] | None = None
    error_reasons: list[Annotated[str, Meta(max_length=20_000)] | None] | None = None
    error_evidence: list[NativeQuote] | None = None
    clause_citations: list[NativeCitation] | None = None
    omissions: list[Annotated[str, Meta(max_length=20_000)] | None] | None = None  # after each labeled step
    trace_answers: dict[AnswerCode, str | int] | str | None = None  # text is JSON, for Parquet and CSV
    labeler: Annotated[str, Meta(max_length=100)] | None = None
    rater_kind: str | None = None
    rater_name: Annotated[str, Meta(max_length=160)] | None = None
    label_source: str | None = None
    is_blind: bool | None = None
    exposure: str | None = None
    machine: dict[str, object] | str | None = None  # only written
    metadata: dict[str, object] | str | None = None  # text is JSON, for Parquet and CSV


_KEYS = [field.name for field in msgspec.structs.fields(NativeItem)]


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and "problem" in record and bool({"steps", "text"} & record.keys())


def parse_traces(
    item: NativeItem, segmenter: str = "", extras: Mapping[str, object] | None = None
) -> Iterator[TraceRecord]:
    """Make the trace of an item. `extras` are members that the format does not define: they become metadata."""
    if bool(item.pair) != bool(item.pair_half):
        raise strict_json.RecordMisfit(("pair",), '"pair" and "pair_half" belong together: add the missing one')
    steps, segmenter = _make_steps(item, segmenter)
    submissions = []
    if item.labels is not UNSET:
        if len(item.labels) > len(steps):
            raise strict_json.RecordMisfit(("labels",), f"{len(item.labels)} labels for {len(steps)} steps")
        machine = item.rater_name or "" if item.rater_kind == "machine" else ""
        labeler = None if machine else item.labeler
        turns = _make_turns(steps, item.labels)
        _add_explanations(item, turns)
        submissions = [
            SubmissionRecord(
                turns,
                labeler=labeler,
                machine=machine,
                protocol=item.labeling_protocol or "",
                answers=_parse_answers(item.trace_answers),
            )
        ]
    problem, shown = item.problem, tuple[ImageRecord, ...]()
    if item.images:
        problem, shown = images.place_images(problem, images.parse_references(item.images, ("images",)))
    yield TraceRecord(
        problem=ProblemRecord(problem, answer=item.answer, solution=item.solution, domain=item.domain, images=shown),
        steps=steps,
        ref=item.ref,
        answer=item.final_answer,
        verifier_score=item.verifier_score,
        is_right=item.is_right,
        provenance=ProvenanceRecord(
            *(item.base_model, item.policy, item.sampler, item.scaffold, segmenter),
            reasoning=item.reasoning,
            reasoning_by=item.reasoning_by,
        ),
        pair=item.pair or "",
        pair_half=item.pair_half or "",
        metadata=_make_metadata(item, extras or {}),
        submissions=submissions,
    )


def _make_metadata(item: NativeItem, extras: Mapping[str, object]) -> dict[str, object]:
    """Join the metadata and the unknown members of an item. A name that differs little from a field of the format is
    refused."""
    for key in extras:
        if similar := difflib.get_close_matches(key, _KEYS, n=1, cutoff=_SIMILAR):
            reason = f'unknown field "{key}": did you mean "{similar[0]}"? Rename it; any other name becomes metadata'
            raise strict_json.RecordMisfit((key,), reason)
    metadata = item.metadata or {}
    if isinstance(metadata, str):
        try:
            metadata = msgspec.json.decode(metadata, type=dict[str, object])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise strict_json.RecordMisfit(("metadata",), f"not a JSON object: {error}") from error
    if twice := next((key for key in extras if key in metadata), None):
        raise strict_json.RecordMisfit((twice,), f'the metadata already has a field "{twice}": rename one of the two')
    metadata = {**metadata, **extras}
    if metadata and len(msgspec.json.encode(metadata)) > MAX_METADATA:
        reason = f"the metadata is longer than {MAX_METADATA:,} bytes: leave out a field"
        raise strict_json.RecordMisfit((), reason)
    return metadata


def _parse_answers(value: dict[str, str | int] | str | None) -> dict[str, str]:
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value or "{}", type=dict[AnswerCode, str | int])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise strict_json.RecordMisfit(("trace_answers",), f"not answers by question: {error}") from error
    return {question: str(answer) for question, answer in (value or {}).items()}


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


def _add_explanations(item: NativeItem, turns: list[TurnRecord]) -> None:
    """Add what raters said about a step besides its rating. Each list has one value for each label, or fewer."""
    for name, (attribute, empty) in _EXPLANATIONS.items():
        values = getattr(item, name) or []
        if len(values) > len(turns):
            raise strict_json.RecordMisfit((name,), f"{len(values)} values for {len(turns)} labels")
        for turn, value in zip(turns, values, strict=False):
            for judgment in turn.shown or ():
                setattr(judgment, attribute, empty if value is None else value)
    _add_evidence(item, turns)
    _add_citations(item, turns)


def _add_citations(item: NativeItem, turns: list[TurnRecord]) -> None:
    for number, cited in enumerate(item.clause_citations or []):
        if not 0 <= cited.step < len(turns):
            raise strict_json.RecordMisfit(("clause_citations", number, "step"), f"there are {len(turns)} labels")
        for judgment in turns[cited.step].shown or ():
            citation = CitationRecord(cited.clause, cited.digest or "", cited.version or "")
            judgment.citations = [*judgment.citations, citation]


def _add_evidence(item: NativeItem, turns: list[TurnRecord]) -> None:
    """Add quotes of steps, and what is missing after them."""
    omissions = item.omissions or []
    if len(omissions) > len(turns):
        raise strict_json.RecordMisfit(("omissions",), f"{len(omissions)} values for {len(turns)} labels")
    for turn, missing in zip(turns, omissions, strict=False):
        turn.missing = missing or ""
    for number, quote in enumerate(item.error_evidence or []):
        if not 0 <= quote.step < len(turns):
            raise strict_json.RecordMisfit(("error_evidence", number, "step"), f"there are {len(turns)} labels")
        shown = turns[quote.step].shown or ()
        fields = {name: getattr(quote, name) for name in EVIDENCE_COLUMNS}
        for judgment in shown:
            judgment.evidence = [*judgment.evidence, EvidenceRecord(**fields)]


def _make_steps(item: NativeItem, chosen: str) -> tuple[list[StepRecord], str]:
    if (item.steps is UNSET) == (item.text is UNSET):
        raise strict_json.RecordMisfit((), 'a record needs "steps" or "text", but not both')
    if item.steps is not UNSET:
        return [_make_step(step, ("steps", number)) for number, step in enumerate(item.steps)], item.segmenter
    text = item.text or ""
    segmenter = chosen or item.segmenter
    try:
        segmenters.check_segmenter(segmenter)
    except segmenters.UnknownSegmenter as error:
        raise strict_json.RecordMisfit(("segmenter",), str(error)) from None
    if segmenter in ("", segmenters.BEST_FIT):
        segmenter = segmenters.choose_segmenter(text)
    return records.cut_steps(text, segmenter=segmenter), segmenter


def _make_step(step: str | NativeStep, path: tuple[str | int, ...]) -> StepRecord:
    if isinstance(step, str):
        return StepRecord([OptionRecord(step)])
    text, shown = step.text, tuple[ImageRecord, ...]()
    if step.images:
        text, shown = images.place_images(text, images.parse_references(step.images, (*path, "images")))
    options = [OptionRecord(text, parts=images.make_parts(text, shown))]
    options += [OptionRecord(text) for text in step.alternatives]
    return StepRecord(options, kind=step.kind, is_rateable=step.rateable, agent=step.agent)


read = RecordReader(NativeItem, parse_traces, looks_like=looks_like, takes_segmenter=True, keeps_extras=True)


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    """Yield a row for each submission, or for the consensus. Absent fields are left out, so that a trace that is
    imported again is the same trace."""
    for facts, record in example.labeled_records(rule, tally):
        rater = example.describe_rater(facts)
        labels = _list_labels(record)
        if example.is_consensus and -1 in labels:  # it ends at the first error, as in every format
            labels = labels[: labels.index(-1) + 1]
        problem, made = record.problem, record.provenance or ProvenanceRecord()
        row: OutputRow = {
            "problem": problem.text,
            "answer": problem.answer,
            "solution": problem.solution,
            "domain": problem.domain,
            "ref": record.ref,
            **({"images": images.write_references(problem.images)} if problem.images else {}),
            "steps": [_write_step(step) for step in record.steps],
            "segmenter": made.segmenter,
            "final_answer": record.answer,
            "verifier_score": record.verifier_score,
            "is_right": record.is_right,
            "base_model": made.base_model,
            "policy": made.policy,
            "scaffold": made.scaffold,
            "reasoning": made.reasoning,
            "reasoning_by": made.reasoning_by,
            "pair": record.pair or None,
            "pair_half": record.pair_half or None,
            "labels": labels,
            "labeling_protocol": None if example.is_consensus else record.submissions[0].protocol or None,
            **_list_explanations(record, len(labels)),
            "trace_answers": examples.write_answers({} if example.is_consensus else record.submissions[0].answers),
            "labeler": rater.pop("rater"),
            **rater,
            "metadata": json.dumps(record.metadata, ensure_ascii=False) if record.metadata else None,
        }
        yield {key: value for key, value in row.items() if value is not UNSET}


def _write_step(step: StepRecord) -> OutputRow:
    text, *alternatives = [option.text for option in step.options] or [""]
    facts = {"kind": step.kind, "rateable": step.is_rateable, "agent": step.agent}
    shown = images.list_images(step.options[0].parts) if step.options and step.options[0].parts else []
    of_text = {"images": images.write_references(shown)} if shown else {}
    return {"text": text, **of_text, "alternatives": alternatives, **facts}


def _list_labels(record: TraceRecord) -> list[float | None]:
    by_position = {turn.position: _find_label(turn) for turn in record.submissions[0].turns}
    n_labels = min(len(record.steps), max(by_position, default=-1) + 1)
    return [by_position.get(position) for position in range(n_labels)]


def _list_explanations(record: TraceRecord, n_labels: int) -> OutputRow:
    """Return the lists of what the rater said about the labeled steps. A list without a value is null."""
    turns = record.submissions[0].turns
    taken = {turn.position: turn.shown[turn.chosen or 0] for turn in turns if turn.shown}
    lists: OutputRow = {}
    for name, (attribute, empty) in _EXPLANATIONS.items():
        values = [getattr(taken[at], attribute) if at in taken else empty for at in range(n_labels)]
        lists[name] = values if any(values) else None
    evidence = [{"step": at, **row} for at, shown in taken.items() for row in write_evidence(shown.evidence)]
    citations = [{"step": at, **row} for at, shown in taken.items() for row in write_citations(shown.citations)]
    missing = {turn.position: turn.missing for turn in turns}
    omissions = [missing.get(at, "") for at in range(n_labels)]
    return {
        **lists,
        "error_evidence": [row for row in evidence if row["step"] < n_labels] or None,
        "clause_citations": [row for row in citations if row["step"] < n_labels] or None,
        "omissions": omissions if any(omissions) else None,
    }


def _find_label(turn: TurnRecord) -> float | None:
    """Return the rating of the step on the path, or its value if it is a soft label."""
    rating = get_taken_rating(turn)
    return turn.shown[turn.chosen or 0].value if rating is None and turn.shown else rating
