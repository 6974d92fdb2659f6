"""A project whose gold is enough for a set of gaming canaries, and a scorer for it."""

from labeling.models import Project, Trace
from labeling.models.gold import GoldUse
from labeling.quality import gold
from prm import canaries, registry
from prm.models import PRM, CanarySet
from prm.registry import PRMIdentity
from tests import factories


def make_project(n: int = 6) -> Project:
    """Create solutions of sums as gold; two of three have an error in their second step."""
    project = factories.make_project()
    for number in range(n):
        add_solution(project, number, first_error=1 if number % 3 else None)
    return project


def add_solution(project: Project, number: int, *, first_error: int | None) -> Trace:
    start, total = 11 + number, 41 + number + (first_error is not None)
    second = f"Then {start + 20} + 10 = {total}. That is the sum."
    texts = [f"First {start} + 20 = {start + 20}.", second, f"So it is {total}, which we write down."]
    trace = factories.make_trace(project, texts, problem=factories.make_problem(project, f"Sum number {number}?"))
    gold.make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[first_error], by=None, now=factories.NOW)
    return trace


def freeze(project: Project, n: int = 20) -> CanarySet:
    return canaries.freeze_canaries(project=project, by=None, now=factories.NOW, n=n)


def register_scorer(project: Project, address: str) -> PRM:
    identity = PRMIdentity("vllm", "m", address=address, options={"timeout": 20})
    return registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
