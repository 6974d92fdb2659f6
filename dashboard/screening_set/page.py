"""The proposal for a screening set. A fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard import trace_steps
from formats import integers
from labeling import onboarding, step_numbers
from labeling.models import Project, Trace
from labeling.onboarding import ScreeningMix
from labeling.onboarding.screening_set import (
    DECIDED,
    DEFAULT_SET_SIZE,
    HIDDEN,
    IN_SET,
    MAX_SET_SIZE,
    ScreeningCandidate,
)
from labeling.step_numbers import StepNumbers
from stats import strata

STRATUM_LABELS: dict[str, str | Promise] = {
    strata.NONE: gettext_lazy("no error"),
    strata.EARLY: gettext_lazy("error in the first third"),
    strata.MIDDLE: gettext_lazy("error in the middle third"),
    strata.LATE: gettext_lazy("error in the last third"),
}
ORIGIN_LABELS: dict[int, str | Promise] = {
    IN_SET: gettext_lazy("current set"),
    HIDDEN: gettext_lazy("hidden gold"),
    DECIDED: gettext_lazy("adjudication"),
}


@dataclass(frozen=True)
class ScreeningCandidateRow:
    trace: Trace
    stratum: str | Promise
    accepted: str
    origin: str | Promise
    is_chosen: bool


@dataclass(frozen=True)
class ScreeningStratum:
    key: str
    name: str | Promise
    wanted: int
    chosen: int
    available: int


@dataclass(frozen=True)
class ScreeningSetPage:
    rows: Sequence[ScreeningCandidateRow]
    strata: Sequence[ScreeningStratum]
    mix: ScreeningMix
    n: int
    round: int
    redraw_url: str
    n_hidden: int
    n_hidden_drawn: int

    @property
    def n_hidden_left(self) -> int:
        return self.n_hidden - self.n_hidden_drawn

    @property
    def is_short(self) -> bool:
        return self.mix.n_traces < self.n


def load_screening_set(project: Project, query: QueryDict) -> ScreeningSetPage:
    wanted, round = _parse_wanted(query), _parse_number(query, "round") or 1
    proposal = onboarding.propose_screening_set(project=project, wanted=wanted, round=round)
    redraw_query = QueryDict(mutable=True)
    redraw_query.update({key: str(n) for key, n in wanted.items()} | {"round": str(round + 1)})
    return ScreeningSetPage(
        rows=_build_rows(proposal),
        strata=[
            ScreeningStratum(key, name, wanted[key], proposal.n_of(key), proposal.available.get(key, 0))
            for key, name in STRATUM_LABELS.items()
        ],
        mix=proposal.mix,
        n=sum(wanted.values()),
        round=round,
        redraw_url=f"{reverse('dashboard:screening_set', args=[project.slug])}?{redraw_query.urlencode()}",
        n_hidden=sum(onboarding.count_hidden_gold_places(project).values()),
        n_hidden_drawn=sum(each.known.tier == HIDDEN for each in proposal.chosen),
    )


def count_hidden_gold(project: Project) -> list[tuple[str | Promise, int]]:
    """Count hidden gold by stratum; an empty list if the project has none."""
    counts = onboarding.count_hidden_gold_places(project)
    return [(name, counts[key]) for key, name in STRATUM_LABELS.items()] if counts else []


def _parse_wanted(query: QueryDict) -> dict[str, int]:
    """Return the wanted number per stratum, or equal parts of `n`, within the size limit."""
    wanted = {key: _parse_number(query, key) for key in strata.STRATA}
    if all(n is None for n in wanted.values()):
        return strata.equal_quotas(min(_parse_number(query, "n") or DEFAULT_SET_SIZE, MAX_SET_SIZE))
    return {key: min(n or 0, MAX_SET_SIZE // len(strata.STRATA)) for key, n in wanted.items()}


def _parse_number(query: QueryDict, name: str) -> int | None:
    return integers.parse_integer(query.get(name), digits=4)


def _build_rows(proposal: onboarding.ScreeningProposal) -> list[ScreeningCandidateRow]:
    candidates = [*((each, True) for each in proposal.chosen), *((each, False) for each in proposal.leaving)]
    traces = Trace.objects.select_related("problem").in_bulk([each.known.trace for each, _is_chosen in candidates])
    numbers = step_numbers.load_step_numbers(trace_ids=set(traces))
    return [_build_row(each, traces[each.known.trace], numbers, is_chosen) for each, is_chosen in candidates]


def _build_row(
    candidate: ScreeningCandidate, trace: Trace, numbers: StepNumbers, is_chosen: bool
) -> ScreeningCandidateRow:
    origin = ORIGIN_LABELS.get(candidate.known.tier) or _("%(n)d of %(total)d annotators") % {
        "n": candidate.n_for,
        "total": candidate.n_votes,
    }
    accepted = trace_steps.describe_error_places(trace.pk, candidate.accepted, numbers)
    return ScreeningCandidateRow(trace, STRATUM_LABELS[candidate.known.place], accepted, origin, is_chosen)
