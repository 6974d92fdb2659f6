"""A screening set as it is proposed: what it would be made of, and what of it is right without reading. Reads alone,
in a fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.trace import page
from formats import integers as texts
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

PLACE_LABELS: dict[str, str | Promise] = {
    strata.NONE: gettext_lazy("no error"),
    strata.EARLY: gettext_lazy("error in the first third"),
    strata.MIDDLE: gettext_lazy("error in the middle"),
    strata.LATE: gettext_lazy("error in the last third"),
}
_ORIGIN_LABELS: dict[int, str | Promise] = {
    IN_SET: gettext_lazy("in the set now"),
    HIDDEN: gettext_lazy("hidden gold"),
    DECIDED: gettext_lazy("decided by a person"),
}


@dataclass(frozen=True)
class ScreeningCandidateRow:
    trace: Trace
    place: str | Promise
    accepted: str
    whence: str | Promise
    is_chosen: bool


@dataclass(frozen=True)
class ScreeningStratum:
    """One place: how many are wanted, chosen, and could be had."""

    key: str
    name: str | Promise
    wanted: int
    chosen: int
    there: int


@dataclass(frozen=True)
class ScreeningSetPage:
    rows: Sequence[ScreeningCandidateRow]
    strata: Sequence[ScreeningStratum]
    mix: ScreeningMix
    n: int
    round: int
    others: str  # the address of another draw
    n_hidden: int  # gold that watches raters, and how much of it is drawn
    n_hidden_drawn: int

    @property
    def n_hidden_left(self) -> int:
        return self.n_hidden - self.n_hidden_drawn

    @property
    def is_short(self) -> bool:
        return self.mix.n_traces < self.n


def load_screening_set(project: Project, asked: QueryDict) -> ScreeningSetPage:
    wanted, round = _parse_wanted(asked), _parse_number(asked, "round") or 1
    found = onboarding.propose_screening_set(project=project, wanted=wanted, round=round)
    return ScreeningSetPage(
        rows=_build_rows(found),
        strata=[
            ScreeningStratum(key, name, wanted[key], found.n_of(key), found.available.get(key, 0))
            for key, name in PLACE_LABELS.items()
        ],
        mix=found.mix,
        n=sum(wanted.values()),
        round=round,
        others=_build_address(project, wanted, round + 1),
        n_hidden=sum(onboarding.count_hidden_gold_places(project).values()),
        n_hidden_drawn=sum(each.known.tier == HIDDEN for each in found.chosen),
    )


def count_hidden_gold(project: Project) -> list[tuple[str | Promise, int]]:
    """How much hidden gold there is of each place; nothing where there is none."""
    counted = onboarding.count_hidden_gold_places(project)
    return [(name, counted[place]) for place, name in PLACE_LABELS.items()] if counted else []


def _parse_wanted(asked: QueryDict) -> dict[str, int]:
    """So many of each place, or of all in equal parts; no more than a set can have."""
    told = {place: _parse_number(asked, place) for place in strata.STRATA}
    if all(each is None for each in told.values()):
        return strata.equal_quotas(min(_parse_number(asked, "n") or DEFAULT_SET_SIZE, MAX_SET_SIZE))
    return {place: min(n or 0, MAX_SET_SIZE // len(strata.STRATA)) for place, n in told.items()}


def _parse_number(asked: QueryDict, name: str) -> int | None:
    return texts.parse_integer(asked.get(name), digits=4)


def _build_address(project: Project, wanted: dict[str, int], round: int) -> str:
    asked = QueryDict(mutable=True)
    asked.update({place: str(n) for place, n in wanted.items()} | {"round": str(round)})
    return f"{reverse('dashboard:screening_set', args=[project.slug])}?{asked.urlencode()}"


def _build_rows(found: onboarding.ScreeningProposal) -> list[ScreeningCandidateRow]:
    every = [*((each, True) for each in found.chosen), *((each, False) for each in found.leaving)]
    traces = Trace.objects.select_related("problem").in_bulk([each.known.trace for each, _chosen in every])
    numbers = step_numbers.load_step_numbers(trace_ids=set(traces))
    return [_build_row(each, traces[each.known.trace], numbers, is_chosen) for each, is_chosen in every]


def _build_row(one: ScreeningCandidate, trace: Trace, numbers: StepNumbers, is_chosen: bool) -> ScreeningCandidateRow:
    whence = _ORIGIN_LABELS.get(one.known.tier) or _("%(n)d of %(of)d raters") % {"n": one.n_for, "of": one.n_votes}
    accepted = page.describe_error_places(trace.pk, one.accepted, numbers)
    return ScreeningCandidateRow(trace, PLACE_LABELS[one.known.place], accepted, whence, is_chosen)
