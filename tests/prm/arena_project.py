"""A project with an open arena: settled traces with an error, and a PRM that some words fool."""

from typing import Any

from labeling.models import Project, Rater, Trace
from prm import arena, registry
from prm.models import ArenaCheck
from tests import factories
from tests.machines import machine_labels
from tests.prm import canary_project


def open_arena(project: Project, address: str = "http://127.0.0.1:1") -> None:
    """Open the arena with a new current PRM, by default one whose server is not running."""
    prm = canary_project.register_scorer(project, address)
    registry.make_current(prm=prm, by=None, now=factories.NOW)
    arena.open_arena(project=project, by=None, now=factories.NOW)


def make_control(rater: Rater) -> ArenaCheck:
    """Serve a control to a rater, without an edit to check."""
    trace = factories.make_trace(rater.project)
    return ArenaCheck.objects.create(
        project=rater.project, rater=rater, trace=trace, position=1, is_wrong=True, served_at=factories.NOW
    )


def make_settled(project: Project, n: int = 3) -> list[Trace]:
    """Create traces that people settled with an error in the second step."""
    people = [factories.make_rater(project) for _ in range(2)]
    traces = []
    for number in range(n):
        texts = [
            f"There are {number + 20} apples.",
            f"Each of them costs {number + 3} euros in total.",
            "So we pay that.",
        ]
        trace = factories.make_trace(project, texts)
        machine_labels.settle(people, trace, 1)
        traces.append(trace)
    return traces


def score_by_words(prompt: str) -> list[Any]:
    """Believe a step that says “clearly”; the second step is wrong otherwise."""
    steps = prompt.split("<extra_0>")[:-1]
    return [[0.1, 0.9] if "clearly" in step or not place else [0.9, 0.1] for place, step in enumerate(steps)]
