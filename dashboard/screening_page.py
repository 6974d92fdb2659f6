"""A screening set as it is proposed: what it would be made of, and what of it is right without reading. Reads alone,
in a fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard import reading
from labeling import admission, numbering
from labeling.admission import Mix
from labeling.admission.candidates import DECIDED, HIDDEN, IN_SET, Candidate
from labeling.admission.drawing import MOST, N
from labeling.agreement import strata
from labeling.models import Project, Trace
from labeling.numbering import Numbers
from labeling.texts import numbers as texts

PLACES: dict[str, str | Promise] = {
    strata.NONE: gettext_lazy("no error"),
    strata.EARLY: gettext_lazy("error in the first third"),
    strata.MIDDLE: gettext_lazy("error in the middle"),
    strata.LATE: gettext_lazy("error in the last third"),
}
_WHENCE: dict[int, str | Promise] = {
    IN_SET: gettext_lazy("in the set now"),
    HIDDEN: gettext_lazy("hidden gold"),
    DECIDED: gettext_lazy("decided by a person"),
}


@dataclass(frozen=True)
class Row:
    trace: Trace
    place: str | Promise
    accepted: str
    whence: str | Promise
    is_chosen: bool


@dataclass(frozen=True)
class Stratum:
    """One place: how many are wanted, chosen, and could be had."""

    key: str
    name: str | Promise
    wanted: int
    chosen: int
    there: int


@dataclass(frozen=True)
class Shown:
    rows: Sequence[Row]
    strata: Sequence[Stratum]
    mix: Mix
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


def of(project: Project, asked: QueryDict) -> Shown:
    wanted, round = _wanted(asked), _number(asked, "round") or 1
    found = admission.propose(project=project, wanted=wanted, round=round)
    return Shown(
        rows=_rows(found),
        strata=[
            Stratum(key, name, wanted[key], found.n_of(key), found.there.get(key, 0)) for key, name in PLACES.items()
        ],
        mix=found.mix,
        n=sum(wanted.values()),
        round=round,
        others=_address(project, wanted, round + 1),
        n_hidden=sum(admission.places_of_hidden(project).values()),
        n_hidden_drawn=sum(each.known.tier == HIDDEN for each in found.chosen),
    )


def hidden(project: Project) -> list[tuple[str | Promise, int]]:
    """How much hidden gold there is of each place; nothing where there is none."""
    counted = admission.places_of_hidden(project)
    return [(name, counted[place]) for place, name in PLACES.items()] if counted else []


def _wanted(asked: QueryDict) -> dict[str, int]:
    """So many of each place, or of all in equal parts; no more than a set can have."""
    told = {place: _number(asked, place) for place in strata.PLACES}
    if all(each is None for each in told.values()):
        return strata.shares(min(_number(asked, "n") or N, MOST))
    return {place: min(n or 0, MOST // len(strata.PLACES)) for place, n in told.items()}


def _number(asked: QueryDict, name: str) -> int | None:
    return texts.whole(asked.get(name), digits=4)


def _address(project: Project, wanted: dict[str, int], round: int) -> str:
    asked = QueryDict(mutable=True)
    asked.update({place: str(n) for place, n in wanted.items()} | {"round": str(round)})
    return f"{reverse('dashboard:screening_set', args=[project.slug])}?{asked.urlencode()}"


def _rows(found: admission.Proposal) -> list[Row]:
    every = [*((each, True) for each in found.chosen), *((each, False) for each in found.leaving)]
    traces = Trace.objects.select_related("problem").in_bulk([each.known.trace for each, _chosen in every])
    numbers = numbering.of(trace_ids=set(traces))
    return [_row(each, traces[each.known.trace], numbers, is_chosen) for each, is_chosen in every]


def _row(one: Candidate, trace: Trace, numbers: Numbers, is_chosen: bool) -> Row:
    whence = _WHENCE.get(one.known.tier) or _("%(n)d of %(of)d raters") % {"n": one.n_for, "of": one.n_votes}
    accepted = reading.places(trace.pk, one.accepted, numbers)
    return Row(trace, PLACES[one.known.place], accepted, whence, is_chosen)
