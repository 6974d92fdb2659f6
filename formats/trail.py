"""TRAIL: agents' traces as trees of spans, with the errors that experts found in them and scores of the whole trace.

The replies of models and the calls of tools are the steps; other spans only group them. A step keeps the id of its
span, by which errors name it. D. Deshpande et al. (2025), "TRAIL: trace reasoning and agentic issue localization",
arXiv:2505.08638.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from formats import native, strict_json
from formats.examples import LabelRule, OutputRow, RowTally, TraceExample
from formats.record_reader import RecordReader
from formats.records import (
    EvidenceRecord,
    JudgmentRecord,
    OptionRecord,
    OriginalRecord,
    PartRecord,
    ProblemRecord,
    ProvenanceRecord,
    RecordName,
    StepRecord,
    SubmissionRecord,
    TraceRecord,
    TurnRecord,
    keep_original,
    load_original,
)

SEGMENTER = "trail spans 1"
ANNOTATORS = "TRAIL annotators"
CATEGORIES = (
    *("Language-only", "Tool-related", "Poor Information Retrieval", "Incorrect Memory Usage"),
    *("Tool Output Misinterpretation", "Incorrect Problem Identification", "Tool Selection Errors"),
    *("Formatting Errors", "Instruction Non-compliance", "Tool Definition Issues", "Environment Setup Errors"),
    *("Rate Limiting", "Authentication Errors", "Service Errors", "Resource Not Found", "Resource Exhaustion"),
    *("Timeout Issues", "Context Handling Failures", "Resource Abuse", "Goal Deviation", "Task Orchestration"),
)
Impact = Literal["LOW", "MEDIUM", "HIGH"]
_IMPACTS: tuple[Impact, ...] = get_args(Impact)  # severities 1 to 3
_RATED = ("reliability", "security", "instruction_adherence", "plan_opt")
_SCORES = (*(f"{name}_{what}" for name in _RATED for what in ("score", "reasoning")), "overall")
_UNLOCATED = "unlocated_errors"  # the answer with errors of spans that are no steps, as JSON
_MAX_DEPTH = 100  # of nested spans
_MAX_REF = 200
_OUTPUT = re.compile(
    r"llm\.output_messages\.(\d+)\.message\.(content|tool_calls\.(\d+)\.tool_call\.function\.(?:name|arguments))"
)


class TrailSpan(Struct, gc=False):
    span_id: RecordName
    span_name: str = ""
    span_attributes: dict[str, object] = {}
    child_spans: list["TrailSpan"] = []

    def read(self, name: str) -> str:
        value = self.span_attributes.get(name)
        if value is None:
            return ""
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    @property
    def kind(self) -> str:
        return self.read("openinference.span.kind")


class TrailTrace(Struct, gc=False):
    trace_id: RecordName
    spans: list[TrailSpan]


class TrailError(Struct, gc=False, forbid_unknown_fields=True):
    category: Annotated[str, Meta(max_length=100)] = ""
    location: str = ""
    evidence: str = ""
    description: str | UnsetType = UNSET
    impact: Impact | UnsetType = UNSET


class TrailLabels(Struct, gc=False, forbid_unknown_fields=True):
    errors: list[TrailError] = []
    scores: Annotated[list[dict[str, str | int | float]], Meta(max_length=1)] = []
    trace_id: str = ""
    # Written by ourselves.
    rater: RecordName | None = None
    rater_kind: str | None = None
    rater_name: RecordName | None = None
    label_source: str | None = None
    is_blind: bool | None = None
    exposure: str | None = None
    machine: dict[str, object] | None = None
    trace_answers: dict[native.AnswerCode, str | int] | None = None


class TrailItem(Struct, gc=False):
    trace: TrailTrace | str  # text is JSON
    labels: TrailLabels | str | None = None


Content = TypeVar("Content")


class LocatedStep(NamedTuple):
    step: StepRecord
    span_id: str = ""


def looks_like(record: object) -> bool:
    trace = record.get("trace") if isinstance(record, dict) else None
    return "spans" in trace if isinstance(trace, dict) else isinstance(trace, str) and '"spans"' in trace


def parse_traces(item: TrailItem) -> Iterator[TraceRecord]:
    trace = _decode(item.trace, TrailTrace, "trace")
    spans = list(_walk_spans(trace.spans))
    located = [*_read_opening(spans), *_list_steps(trace.spans)]
    if not any(each.step.is_rateable for each in located):
        raise strict_json.RecordMisfit(("trace",), "the trace has no span of a model or a tool")
    labels = None if item.labels is None else _decode(item.labels, TrailLabels, "labels")
    model = next((span.read("llm.model_name") for span in spans if span.kind == "LLM"), "")
    yield TraceRecord(
        problem=ProblemRecord(_find_task(spans) or trace.trace_id),
        steps=[each.step for each in located],
        ref=trace.trace_id,
        provenance=ProvenanceRecord(policy=model[:_MAX_REF], segmenter=SEGMENTER),
        submissions=[] if labels is None else [_make_submission(labels, located)],
    )


def _decode(value: Any, content: type[Content], key: str) -> Content:
    if isinstance(value, content):
        return value
    try:
        return strict_json.decode(value.encode(), msgspec.json.Decoder(content))
    except strict_json.JsonRefused as error:
        raise strict_json.RecordMisfit((key,), f"not the JSON of TRAIL: {error}") from error


# --- spans -----------------------------------------------------------------------------------------------------------


def _walk_spans(spans: Sequence[TrailSpan], depth: int = 0) -> Iterator[TrailSpan]:
    if depth > _MAX_DEPTH:
        raise strict_json.RecordMisfit(("trace", "spans"), f"spans are nested more than {_MAX_DEPTH} times")
    for span in spans:
        yield span
        yield from _walk_spans(span.child_spans, depth + 1)


def _find_task(spans: Sequence[TrailSpan]) -> str:
    """Return the task of the first agent, or what the user wrote first."""
    for span in spans:
        try:
            given = msgspec.json.decode(span.read("input.value") or "null") if span.kind == "AGENT" else None
        except (msgspec.DecodeError, RecursionError):
            given = None
        if isinstance(given, dict) and isinstance(given.get("task"), str) and given["task"]:
            return str(given["task"])
    return next((each.step.options[0].text for each in _read_opening(spans) if each.step.kind == "user"), "")


def _read_opening(spans: Sequence[TrailSpan]) -> Iterator[LocatedStep]:
    """Yield what the first model was told, as context."""
    first = next((span for span in spans if span.kind == "LLM"), None)
    for number in range(len(first.span_attributes) if first else 0):
        prefix = f"llm.input_messages.{number}.message"
        role = first.read(f"{prefix}.role") if first else ""
        if first is None or role not in ("system", "user"):
            return
        yield LocatedStep(StepRecord([OptionRecord(first.read(f"{prefix}.content"))], kind=role, is_rateable=False))


def _list_steps(spans: Sequence[TrailSpan], agents: tuple[str, ...] = ()) -> Iterator[LocatedStep]:
    """Yield the steps in the order of the spans. The output of a group of spans follows them as context. Agents that
    another agent started are subagents."""
    for span in spans:
        if span.kind in ("LLM", "TOOL"):
            make = _make_reply if span.kind == "LLM" else _make_call
            yield LocatedStep(make(span, "/".join(agents[1:])[:_MAX_REF]), span.span_id)
        inner = (*agents, span.span_name.partition(".")[0]) if span.kind == "AGENT" else agents
        yield from _list_steps(span.child_spans, inner)
        output = span.read("output.value") if span.kind == "CHAIN" else ""
        if output:
            part = PartRecord("result", output)
            agent = "/".join(agents[1:])[:_MAX_REF]
            step = StepRecord([OptionRecord(output, parts=(part,))], kind="observation", is_rateable=False, agent=agent)
            yield LocatedStep(step)


def _make_reply(span: TrailSpan, agent: str) -> StepRecord:
    texts, calls = [], defaultdict[str, dict[str, str]](dict)
    for name in span.span_attributes:
        if found := _OUTPUT.fullmatch(name):
            if found[2] == "content":
                texts.append(span.read(name))
            else:
                calls[f"{found[1]}.{found[3]}"][name.rpartition(".")[2]] = span.read(name)
    text = "\n".join(filter(None, texts)) or ("" if calls else span.read("output.value"))
    parts = [PartRecord("text", text, call_ref=span.span_id)]
    parts += [
        PartRecord("call", call.get("arguments", ""), name=call.get("name", "")[:_MAX_REF], call_ref=span.span_id)
        for call in calls.values()
    ]
    return _make_step(parts, "action" if calls else "reasoning", agent)


def _make_call(span: TrailSpan, agent: str) -> StepRecord:
    name = (span.read("tool.name") or span.span_name)[:_MAX_REF]
    parts = [PartRecord("call", span.read("input.value"), name=name, call_ref=span.span_id)]
    if output := span.read("output.value"):
        parts.append(PartRecord("result", output, name=name, call_ref=span.span_id))
    return _make_step(parts, "action", agent)


def _make_step(parts: Sequence[PartRecord], kind: str, agent: str) -> StepRecord:
    shown = (f"{part.name}({part.text})" if part.kind == "call" else part.text for part in parts)
    return StepRecord([OptionRecord("\n".join(filter(None, shown)), parts=tuple(parts))], kind=kind, agent=agent)


# --- labels ----------------------------------------------------------------------------------------------------------


def _make_submission(labels: TrailLabels, located: Sequence[LocatedStep]) -> SubmissionRecord:
    """Rate every step: negative if it has an error, otherwise positive."""
    by_span = defaultdict[str, list[tuple[int, TrailError]]](list)
    for number, error in enumerate(labels.errors):
        by_span[error.location].append((number, error))
    turns = [
        _make_turn(position, each.step.options[0].text, by_span.pop(each.span_id, ()))
        for position, each in enumerate(located)
        if each.step.is_rateable
    ]
    answers = {name: str(value) for name, value in (labels.scores[0] if labels.scores else {}).items()}
    if unknown := next((name for name in answers if name not in _SCORES), None):
        raise strict_json.RecordMisfit(("labels", "scores", 0, unknown), f'unknown score "{unknown[:40]}"')
    answers |= {question: str(answer) for question, answer in (labels.trace_answers or {}).items()}
    if by_span:
        errors = [[number, error] for each in by_span.values() for number, error in each]
        answers[_UNLOCATED] = msgspec.json.encode(errors).decode()
    machine = labels.rater_name or "" if labels.rater_kind == "machine" else ""
    return SubmissionRecord(
        turns,
        labeler=None if machine else labels.rater or ANNOTATORS,
        machine=machine,
        finish_reason="solution",
        protocol="every_step",
        answers=answers,
    )


def _make_turn(position: int, text: str, errors: Sequence[tuple[int, TrailError]]) -> TurnRecord:
    if not errors:
        return TurnRecord(position, shown=[JudgmentRecord(text, 1)], chosen=0)
    severities = [_IMPACTS.index(error.impact) + 1 for _, error in errors if error.impact is not UNSET]
    judgment = JudgmentRecord(
        text,
        -1,
        category=" ".join(dict.fromkeys(code for _, error in errors if (code := encode_category(error.category)))),
        reason="\n".join(error.description for _, error in errors if error.description),
        severity=max(severities, default=None),
        evidence=[_make_evidence(text, number, error) for number, error in errors],
    )
    return TurnRecord(position, shown=[judgment], chosen=None)


def _make_evidence(text: str, number: int, error: TrailError) -> EvidenceRecord:
    start = text.find(error.evidence) if error.evidence else -1
    return EvidenceRecord(
        error.evidence,
        start=None if start < 0 else start,
        end=None if start < 0 else start + len(error.evidence),
        kind=error.category,
        severity=None if error.impact is UNSET else _IMPACTS.index(error.impact) + 1,
        reason=error.description or "",
        number=number,
    )


def encode_category(category: str) -> str:
    """Return the code of a category, as projects have codes of kinds."""
    return re.sub(r"[^a-z0-9]+", "-", category.lower()).strip("-")[:40]


_NAMES = {encode_category(category): category for category in CATEGORIES}


def keep_item(members: dict[str, Any], _trace: TraceRecord) -> OriginalRecord:
    return keep_original("trail", members, labels=("labels",))


read = RecordReader(TrailItem, parse_traces, looks_like=looks_like, keep=keep_item)


# --- writing ---------------------------------------------------------------------------------------------------------


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    """Yield the trace with the labels of each submission, or of the consensus. A trace from a TRAIL file has its spans
    as in the file, others have a span for each step."""
    for facts, record in example.labeled_records(rule, tally):
        submission = record.submissions[0]
        answers = {} if example.is_consensus else dict(submission.answers)
        errors = [
            (number, error)
            for turn in submission.turns
            for number, error in _list_errors(turn, _find_span(record.steps, turn.position))
        ]
        errors += msgspec.json.decode(answers.pop(_UNLOCATED, "[]"), type=list[tuple[int | None, TrailError]])
        errors.sort(key=lambda each: (each[0] is None, each[0] or 0))
        scores = {name: _parse_score(name, answers.pop(name)) for name in _SCORES if name in answers}
        labels = {
            "trace_id": record.ref,
            "errors": [msgspec.to_builtins(error) for _, error in errors],
            "scores": [scores] if scores else [],
            **({"trace_answers": answers} if answers else {}),
            **example.describe_rater(facts),
        }
        members = load_original(record, "trail") or {"trace": _write_trace(record)}
        is_text = isinstance(members["trace"], str)
        yield {**members, "labels": json.dumps(labels, ensure_ascii=False) if is_text else labels}


def _write_trace(record: TraceRecord) -> OutputRow:
    """Write a trace of another format: a span of an agent with a span for each step."""
    first = next((place for place, step in enumerate(record.steps) if step.is_rateable), 0)
    opening = [step for step in record.steps[:first] if step.kind in ("system", "user") and step.options]
    told = {}
    for number, step in enumerate(opening):
        told[f"llm.input_messages.{number}.message.role"] = step.kind
        told[f"llm.input_messages.{number}.message.content"] = step.options[0].text
    spans = [
        _write_span(step, _find_span(record.steps, place), told if place == first else {})
        for place, step in enumerate(record.steps)
        if step.options and step not in opening
    ]
    task = json.dumps({"task": record.problem.text}, ensure_ascii=False)
    attributes = {"openinference.span.kind": "AGENT", "input.value": task}
    agent = {"span_id": "agent", "span_name": "Agent.run", "span_attributes": attributes, "child_spans": spans}
    return {"trace_id": record.ref, "spans": [agent]}


def _write_span(step: StepRecord, span_id: str, told: Mapping[str, str]) -> OutputRow:
    option = step.options[0]
    if not step.is_rateable:
        name, attributes = step.kind, {"openinference.span.kind": "CHAIN", "output.value": option.text}
    else:
        name, attributes = "model", {"openinference.span.kind": "LLM", **told}
        texts = [part.text for part in option.parts if part.kind == "text"] if option.parts else [option.text]
        attributes["llm.output_messages.0.message.content"] = "\n".join(texts)
        calls = [part for part in option.parts if part.kind == "call"]
        for number, call in enumerate(calls):
            prefix = f"llm.output_messages.0.message.tool_calls.{number}.tool_call.function"
            attributes |= {f"{prefix}.name": call.name, f"{prefix}.arguments": call.text}
    return {"span_id": span_id, "span_name": name, "span_attributes": attributes, "child_spans": []}


def _find_span(steps: Sequence[StepRecord], position: int) -> str:
    """Return the id of the span that a step comes from. Steps of other formats are named by number."""
    parts = steps[position].options[0].parts if position < len(steps) and steps[position].options else ()
    return next((part.call_ref for part in parts if part.call_ref), str(position))


def _list_errors(turn: TurnRecord, location: str) -> Iterator[tuple[int | None, TrailError]]:
    """Yield the errors of a step with their numbers in the file. If the rater did not say which quote shows which kind
    of error, each kind has all quotes."""
    taken = turn.shown[turn.chosen or 0] if turn.shown else None
    if taken is None or taken.rating != -1:
        return
    listed = [quote for quote in taken.evidence if quote.number is not None or quote.kind]
    for quote in listed:
        impact = _write_impact(quote.severity)
        yield quote.number, TrailError(quote.kind, location, quote.text, quote.reason or UNSET, impact)
    if not listed:
        quotes = "\n".join(quote.text for quote in taken.evidence)
        for code in taken.category.split(" "):
            impact = _write_impact(taken.severity)
            yield None, TrailError(_NAMES.get(code, code), location, quotes, taken.reason or UNSET, impact)


def _write_impact(severity: int | None) -> Impact | UnsetType:
    return UNSET if severity is None else _IMPACTS[severity - 1]


def _parse_score(name: str, value: str) -> str | int | float:
    if name.endswith("_reasoning"):
        return value
    try:
        number: object = msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value
    return number if isinstance(number, int | float) else value
