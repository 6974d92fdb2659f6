"""One contested trace with its submissions side by side. A fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard import majority, trace_steps
from dashboard.rater_opinions import RaterOpinions, StepOpinion, load_rater_opinions
from dashboard.trace_steps import StepWithTexts
from labeling.models import Gold, Guideline, Settlement, Trace
from people.models import Membership

MAX_QUEUED = 25  # traces in the list beside the case
NO_OPINION = StepOpinion(rating=None)


@dataclass(frozen=True)
class AdjudicationStep:
    step: StepWithTexts
    opinions: Sequence[tuple[RaterOpinions, StepOpinion]]

    @property
    def is_split(self) -> bool:
        ratings = {opinion.rating for _rater, opinion in self.opinions}
        return len(ratings - {None}) > 1

    @property
    def is_open(self) -> bool:
        """Return whether the step needs a decision: ratings differ, or one is negative."""
        return self.is_split or any(opinion.rating == -1 for _rater, opinion in self.opinions)

    @property
    def comments(self) -> list[tuple[RaterOpinions, StepOpinion]]:
        return [(rater, opinion) for rater, opinion in self.opinions if opinion.has_words]


@dataclass(frozen=True)
class AdjudicationCase:
    trace: Trace
    settlement: Settlement
    raters: Sequence[RaterOpinions]
    steps: Sequence[AdjudicationStep]
    guideline: Guideline | None
    has_gold: bool
    majority: str


def load_case(settlement: Settlement, actor: Membership, *, with_names: bool) -> AdjudicationCase:
    trace = settlement.trace
    raters = load_rater_opinions(trace, actor, with_names=with_names)
    return AdjudicationCase(
        trace=trace,
        settlement=settlement,
        raters=raters,
        steps=[
            AdjudicationStep(step, [(rater, rater.by_step.get(step.position, NO_OPINION)) for rater in raters])
            for step in trace_steps.load_steps(trace)
        ],
        guideline=actor.project.guideline,
        has_gold=Gold.objects.active().filter(trace=trace).exists(),
        majority=majority.describe_majority(trace, raters),
    )
