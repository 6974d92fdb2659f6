"""The screening set: proposing one, and adopting it."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard import render, trace_steps
from dashboard.access import post_view, safe_view
from formats import integers
from labeling import gold_sets, step_numbers
from labeling.gold_sets import (
    DECIDED,
    DEFAULT_SET_SIZE,
    HIDDEN,
    IN_SET,
    MAX_SET_SIZE,
    ScreeningCandidate,
    ScreeningProposal,
)
from labeling.models import Project, Trace
from labeling.quality.gold import InvalidGold
from labeling.step_numbers import StepNumbers
from people.models import Membership
from people.roles import Action
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


def load_screening_set(project: Project, query: QueryDict) -> dict[str, Any]:
    """Load the proposal that the query asks for, by a fixed number of queries."""
    wanted, round = _parse_wanted(query), _parse_number(query, "round") or 1
    proposal = gold_sets.propose_screening_set(project=project, wanted=wanted, round=round)
    redraw_query = QueryDict(mutable=True)
    redraw_query.update({key: str(n) for key, n in wanted.items()} | {"round": str(round + 1)})
    n_hidden = sum(gold_sets.count_hidden_gold_places(project).values())
    n_hidden_drawn = sum(each.known.tier == HIDDEN for each in proposal.chosen)
    return {
        "rows": _build_rows(proposal),
        "strata": [
            ScreeningStratum(key, name, wanted[key], proposal.n_of(key), proposal.available.get(key, 0))
            for key, name in STRATUM_LABELS.items()
        ],
        "mix": proposal.mix,
        "n": sum(wanted.values()),
        "is_short": proposal.mix.n_traces < sum(wanted.values()),
        "round": round,
        "redraw_url": f"{reverse('dashboard:screening_set', args=[project.slug])}?{redraw_query.urlencode()}",
        "n_hidden": n_hidden,
        "n_hidden_drawn": n_hidden_drawn,
        "n_hidden_left": n_hidden - n_hidden_drawn,
    }


def count_hidden_gold(project: Project) -> list[tuple[str | Promise, int]]:
    """Count hidden gold by stratum; an empty list if the project has none."""
    counts = gold_sets.count_hidden_gold_places(project)
    return [(name, counts[key]) for key, name in STRATUM_LABELS.items()] if counts else []


def _parse_wanted(query: QueryDict) -> dict[str, int]:
    """Return the wanted number per stratum, or equal parts of `n`, within the size limit."""
    wanted = {key: _parse_number(query, key) for key in strata.STRATA}
    if all(n is None for n in wanted.values()):
        return strata.equal_quotas(min(_parse_number(query, "n") or DEFAULT_SET_SIZE, MAX_SET_SIZE))
    return {key: min(n or 0, MAX_SET_SIZE // len(strata.STRATA)) for key, n in wanted.items()}


def _parse_number(query: QueryDict, name: str) -> int | None:
    return integers.parse_integer(query.get(name), digits=4)


def _build_rows(proposal: ScreeningProposal) -> list[ScreeningCandidateRow]:
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
    accepted = trace_steps.describe_error_places(candidate.accepted, partial(numbers.at, trace.pk))
    return ScreeningCandidateRow(trace, STRATUM_LABELS[candidate.known.place], accepted, origin, is_chosen)


@safe_view(Action.MAKE_GOLD)
def show_screening_set(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_screening_set(request, actor)


@post_view(Action.MAKE_GOLD)
def adopt_screening_set(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Make the selected traces the screening set. Unselected traces leave it."""
    values = (integers.parse_integer(value, digits=18) for value in request.POST.getlist("trace"))
    trace_ids = [value for value in values if value is not None]
    try:
        change = gold_sets.replace_screening_set(
            project=actor.project, trace_ids=trace_ids, by=actor.user, now=timezone.now()
        )
    except InvalidGold as error:
        return _render_screening_set(request, actor, status=422, problem=str(error))
    text = _("Saved. The screening set has %(n)d traces: %(added)d added, %(removed)d removed.")
    messages.success(request, text % {"n": change.n, "added": change.n_new, "removed": change.n_retired})
    return redirect("dashboard:gold", actor.project.slug)


def _render_screening_set(
    request: HttpRequest, actor: Membership, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    proposal = load_screening_set(actor.project, request.GET)
    return render.project_page(
        request, actor, "dashboard/screening_set.html", here="gold", status=status, proposal=proposal, problem=problem
    )
