"""A project in which raters see only the reasoning or only the actions of some traces."""

from labeling.models import (
    Option,
    OptionPart,
    PairedTrace,
    Project,
    Rater,
    Step,
    Trace,
    TraceAnswer,
    VisibilityDraw,
    VisibilityPlan,
)
from labeling.projects import trace_questions, visibility
from labeling.projects.trace_questions import QuestionChoice, TraceQuestion
from labeling.queue import exposures
from tests import factories
from tests.factories import NOW

KINDS = ("user", "reasoning", "action", "observation", "reasoning")
QUESTION = TraceQuestion("hint", "Used the hint?", choices=(QuestionChoice("yes", "Yes"), QuestionChoice("no", "No")))


def start(project: Project, *, reasoning: float = 0.3, actions: float = 0.3, seed: str = "seed") -> VisibilityPlan:
    return visibility.start_visibility(
        project=project, reasoning_share=reasoning, actions_share=actions, by=None, now=NOW, seed=seed
    )


def make_agent_trace(project: Project) -> Trace:
    """Create a trace whose texts name their kind. Its action is a thought beside a call, with a picture."""
    trace = factories.make_trace(project, [f"text-{kind}-{place}" for place, kind in enumerate(KINDS)])
    for place, kind in enumerate(KINDS):
        rateable = kind in ("reasoning", "action")
        Step.objects.filter(trace=trace, position=place).update(kind=kind, is_rateable=rateable)
    action = Option.objects.get(step__trace=trace, step__kind="action")
    parts = [("text", "part-thought"), ("call", "part-call")]
    OptionPart.objects.bulk_create(
        OptionPart(option=action, position=place, kind=kind, text=text) for place, (kind, text) in enumerate(parts)
    )
    factories.make_image_part(action, position=2)
    return trace


def find_rater(project: Project, trace: Trace, condition: str, *, seed: str = "seed") -> Rater:
    """Return a new rater to whom this condition is drawn for the trace, with the shares of `start`."""
    while True:
        rater = factories.make_rater(project)
        number = exposures.draw_number(seed, rater.pk, trace.pk)
        if condition == ("reasoning" if number < 0.3 else "actions" if number < 0.6 else "both"):
            return rater


def make_project(project: Project | None = None) -> Project:
    """Return a project that asks for a verdict."""
    project = project or factories.make_project()
    project.trace_questions = trace_questions.store_questions([QUESTION])
    project.save(update_fields=["trace_questions"])
    return project


def make_pairs(project: Project, number: int) -> list[Trace]:
    """Create pairs of traces, those with the intervention first."""
    traces = [factories.make_trace(project, is_right=place < number, outcome_by="file") for place in range(2 * number)]
    PairedTrace.objects.bulk_create(
        PairedTrace(
            trace=trace, project=project, pair=str(place % number), half="with" if place < number else "without"
        )
        for place, trace in enumerate(traces)
    )
    return traces


def answer(rater: Rater, trace: Trace, value: str, condition: str = "") -> None:
    """Store a verdict, under a condition of the active plan."""
    assignment = factories.make_submitted(rater, trace)
    TraceAnswer.objects.create(assignment=assignment, question=QUESTION.code, value=value)
    if condition:
        plan = VisibilityPlan.objects.get(project=trace.project, ended_at=None)
        VisibilityDraw.objects.create(
            assignment=assignment, plan=plan, condition=condition, probability=0.3, drawn_at=NOW
        )
