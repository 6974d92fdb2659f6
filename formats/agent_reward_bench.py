"""AgentRewardBench: traces of web agents, with the verdicts of annotators on the whole trace.

A record is a trajectory as the benchmark publishes it; its key `annotations` has the rows of `annotations.csv` that
belong to it. Those rows are also what is written. X. H. Lù et al. (2025), "AgentRewardBench: evaluating automatic
evaluations of web agent trajectories", arXiv:2504.08942.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from formats import examples, messages, strict_json
from formats.examples import Columns, LabelRule, OutputRow, RowTally, TraceExample
from formats.record_reader import RecordReader
from formats.records import (
    OptionRecord,
    OriginalRecord,
    PartRecord,
    ProblemRecord,
    ProvenanceRecord,
    RecordName,
    ShortRecordName,
    StepRecord,
    SubmissionRecord,
    TraceRecord,
    keep_original,
)

SEGMENTER = "agent turns 1"
NO_VERDICT = "no verdict on the whole trace"
_PLACE = ("benchmark", "task_id", "model_name", "exp_name")  # name the trajectory
# The column of each question, and its values by the code of the answer. Other values, such as "Unsure", stay.
_VERDICTS: dict[str, tuple[str, Mapping[str, str]]] = {
    "final_label": ("trajectory_success", {"1": "Successful", "-1": "Unsuccessful"}),
    "side_effect": ("trajectory_side_effect", {"yes": "Yes", "no": "No"}),
    "optimality": (
        "trajectory_optimality",
        {"1": "1. Complete Failure", "2": "2. Suboptimal", "3": "3. Somewhat Optimal", "4": "4. Completely Optimal"},
    ),
    "looping": ("trajectory_looping", {"yes": "Yes", "no": "No"}),
}
COLUMNS: Columns = {
    "annotator_name": "string",
    **dict.fromkeys(_PLACE, "string"),
    **{column: "string" for column, _ in _VERDICTS.values()},
    **examples.MACHINE_COLUMNS,  # only in rows of machines
}


class RewardStep(Struct, gc=False):
    action: str | None = None
    reasoning: str | None = None
    url: str | None = None
    axtree_pruned: str | None = None
    axtree: str | None = None
    last_action_error: str | None = None


class RewardAnnotation(Struct, gc=False, forbid_unknown_fields=True):
    annotator_name: ShortRecordName
    benchmark: RecordName = ""
    task_id: RecordName = ""
    model_name: RecordName = ""
    exp_name: RecordName = ""
    trajectory_success: RecordName = ""
    trajectory_side_effect: RecordName = ""
    trajectory_optimality: RecordName = ""
    trajectory_looping: RecordName = ""
    rater_kind: str | None = None
    rater_name: RecordName | None = None
    label_source: str | None = None
    is_blind: bool | None = None
    exposure: str | None = None
    machine: dict[str, object] | None = None


class RewardItem(Struct, gc=False):
    benchmark: RecordName
    goal: str
    steps: list[RewardStep]
    agent: RecordName = ""
    model: RecordName = ""
    experiment: RecordName = ""
    task_id: RecordName = ""
    annotations: list[RewardAnnotation] = []


def parse_traces(item: RewardItem, segmenter: str = "") -> Iterator[TraceRecord]:
    place, used = _find_place(item), ""
    steps = [made for number, step in enumerate(item.steps) for made in _make_steps(number, step)]
    if segmenter:
        steps, used = messages.split_messages(steps, segmenter)
    segmenters = messages.name_segmenters(SEGMENTER, used)
    yield TraceRecord(
        problem=ProblemRecord(item.goal, domain=item.benchmark[:100]),
        steps=steps,
        ref=" ".join(filter(None, (place["task_id"], place["model_name"])))[:200],
        provenance=ProvenanceRecord(policy=item.model, scaffold=item.agent, segmenter=segmenters),
        metadata={name: value for name, value in place.items() if value},
        submissions=[_make_submission(annotation) for annotation in item.annotations],
    )


def _find_place(item: RewardItem) -> dict[str, str]:
    """Return what names the trajectory in `annotations.csv`. All its annotations must name the same one."""
    places = [{name: getattr(each, name) for name in _PLACE} for each in item.annotations]
    if other := next((number for number, place in enumerate(places) if place != places[0]), None):
        raise strict_json.RecordMisfit(("annotations", other), "the annotation is about another trajectory")
    own = {"benchmark": item.benchmark, "task_id": item.task_id, "model_name": item.agent, "exp_name": item.experiment}
    return places[0] if places else own


def _make_steps(number: int, step: RewardStep) -> Iterator[StepRecord]:
    """Yield the page that the agent saw, as context, then what it thought and did."""
    page = "\n".join(filter(None, (step.url, step.last_action_error, step.axtree_pruned or step.axtree)))
    if page:
        option = OptionRecord(page, parts=(PartRecord("result", page),))
        yield StepRecord([option], kind="observation", is_rateable=False, source_position=number)
    parts = [PartRecord("text", step.reasoning)] if step.reasoning else []
    parts += [PartRecord("call", step.action, name="action")] if step.action else []
    text = "\n".join(filter(None, (step.reasoning, step.action)))
    kind = "action" if step.action else "reasoning"
    yield StepRecord([OptionRecord(text, parts=tuple(parts))], kind=kind, source_position=number)


def _make_submission(annotation: RewardAnnotation) -> SubmissionRecord:
    answers = {}
    for question, (column, values) in _VERDICTS.items():
        if given := getattr(annotation, column):
            answers[question] = next((code for code, value in values.items() if value == given), given)
    machine = annotation.rater_name or "" if annotation.rater_kind == "machine" else ""
    return SubmissionRecord(
        [], labeler=None if machine else annotation.annotator_name, machine=machine, answers=answers
    )


def keep_item(members: dict[str, Any], _trace: TraceRecord) -> OriginalRecord:
    return keep_original("agent_reward_bench", members, labels=("annotations",))


read = RecordReader(RewardItem, parse_traces, takes_segmenter=True, keep=keep_item)


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    """Yield a row of `annotations.csv` for each submission with a verdict on the whole trace."""
    for facts, record in example.labeled_records(rule, tally):
        answers = {} if example.is_consensus else record.submissions[0].answers
        if not answers.keys() & _VERDICTS.keys():
            tally.leave_out(NO_VERDICT)
            continue
        verdicts = {
            column: values.get(answers[question], answers[question]) if question in answers else ""
            for question, (column, values) in _VERDICTS.items()
        }
        place = {name: str(record.metadata.get(name, "")) for name in _PLACE}
        rater = examples.describe_machine(facts)
        yield {"annotator_name": facts.labeler or facts.machine or "", **place, **verdicts, **rater}
