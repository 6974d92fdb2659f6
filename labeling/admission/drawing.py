"""A screening set in which no way of not reading is right: drawn, shown, and taken as a lead has adjusted it.

Everybody meets the whole set. It is drawn by where the first error lies and by domain, and by the hash of the project's
number, of a round and of the trace: the same project shows the same draw until something is added to it.
"""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from events import log
from labeling import quality, queue
from labeling.admission import candidates, screening
from labeling.admission.candidates import HIDDEN, IN_SET, Candidate
from labeling.admission.mixing import Mix
from labeling.agreement import strata
from labeling.models import Gold, Project, Trace
from labeling.models.quality import GoldUse
from labeling.models.queue import Arm

N = 30  # traces of a set, as PRM800K had it
MOST = 200


@dataclass(frozen=True)
class Proposal:
    chosen: Sequence[Candidate]  # in the order in which they would be met
    leaving: Sequence[Candidate]  # stand in the set and were not chosen
    wanted: Mapping[str, int]
    there: Mapping[str, int]  # how many could be had of each place
    mix: Mix  # of those that were chosen

    def n_of(self, place: str) -> int:
        return sum(each.known.place == place for each in self.chosen)


class Taken(NamedTuple):
    """What became of a set."""

    n: int
    n_new: int
    n_left: int


def propose(*, project: Project, wanted: Mapping[str, int], round: int = 1) -> Proposal:
    found = candidates.of_project(project.pk)
    known = [each.known for each in found.values()]
    drawn = strata.draw(known, wanted, seed=f"project {project.pk} screening {round}")
    chosen = [found[each.trace] for each in drawn]
    taken = {each.trace for each in drawn}
    leaving = [each for each in found.values() if each.known.tier == IN_SET and each.known.trace not in taken]
    return Proposal(chosen, leaving, wanted, Counter(each.place for each in known), mix_of(project, chosen))


def mix_of(project: Project, chosen: Collection[Candidate]) -> Mix:
    sound = sum(each.known.place == strata.NONE for each in chosen)
    return Mix(len(chosen), sound, screening.needed(len(chosen), project.screening_pass_share))


def take(*, project: Project, trace_ids: Sequence[int], by: User, now: dt.datetime) -> Taken:
    """These traces are the screening set from now on, in this order, and no others: what stood in it besides is
    retired, hidden gold is hidden no more, a consensus becomes gold. Who is at the set meets what is left and new of
    it; who is past it stays so. Raises NotKnowable where one of them cannot be in it (any more)."""
    wanted = list(dict.fromkeys(trace_ids))
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        found = candidates.of_project(project.pk, only=wanted)
        _refuse(wanted, found)
        left = _retire_others(project, wanted, by, now)
        new = [each for each in wanted if found[each].known.tier != IN_SET]
        for trace in new:
            _make(found[trace], by, now)
        quality.hand_out(project_id=project.pk, use=GoldUse.SCREENING, trace_ids=wanted, now=now)
        queue.arrange(project_id=project.pk, arm=Arm.SCREENING, trace_ids=wanted, now=now)
        _say(project, [found[each] for each in wanted], len(new), left, by, now)
    return Taken(len(wanted), len(new), left)


def _refuse(wanted: Sequence[int], found: Collection[int]) -> None:
    if not wanted:
        raise quality.NotKnowable(_("Choose the traces of the set."))
    if len(wanted) > MOST:
        raise quality.NotKnowable(_("A set has %(n)d traces at most.") % {"n": MOST})
    if gone := sorted(set(wanted) - set(found)):
        told = ", ".join(str(each) for each in gone[:10])
        raise quality.NotKnowable(_("No longer to be had for a screening: trace %(traces)s.") % {"traces": told})


def _retire_others(project: Project, wanted: Collection[int], by: User, now: dt.datetime) -> int:
    golds = Gold.objects.active().filter(trace__project=project, use=GoldUse.SCREENING)
    others = golds.exclude(trace__in=wanted).select_related("trace").order_by("trace_id")
    return sum(quality.retire_gold(gold=gold, by=by, now=now) for gold in others)


def _make(one: Candidate, by: User, now: dt.datetime) -> None:
    if one.known.tier == HIDDEN:
        hidden = Gold.objects.active().select_related("trace").get(trace=one.known.trace, use=GoldUse.HIDDEN)
        quality.move_gold(gold=hidden, use=GoldUse.SCREENING, by=by, now=now)
    else:
        trace = Trace.objects.get(pk=one.known.trace)
        quality.promote(trace=trace, use=GoldUse.SCREENING, by=by, now=now)


def _say(project: Project, chosen: Sequence[Candidate], n_new: int, n_left: int, by: User, now: dt.datetime) -> None:
    places = Counter(each.known.place for each in chosen)
    detail = {"traces": len(chosen), "new": n_new, "left": n_left, **places}
    subject = f"project:{project.pk}"
    log.append(what="screening.set_taken", by=by, now=now, project=project.pk, subject=subject, detail=detail)
