"""Requests by programs about many traces: choose traces by ids or by their properties, and steer who labels them.

The API and `manage.py steer_traces` share this module. Requests give the name of a person or group, not an id.
"""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _
from msgspec import Struct

from accounts.models import User
from labeling import queue, trace_actions
from labeling.models import Project, Rater, RaterGroup, Trace, TraceTag
from labeling.models.trace import TraceQuerySet
from labeling.quality.adjudication import withdraw_traces
from labeling.quality.adjudicators import assign_adjudication
from labeling.trace_actions import ActionOutcome
from labeling.traces import tags
from people import roles
from people.models import Membership
from people.roles import Action

SteeringVerb = Literal["tag", "untag", "first", "back", "label", "requeue", "reviewer", "withdraw"]
REQUIRED_ACTIONS: dict[SteeringVerb, Action] = {
    "tag": Action.BRING_IN,
    "untag": Action.BRING_IN,
    "first": Action.PAUSE,
    "back": Action.PAUSE,
    "label": Action.ADJUDICATE,
    "requeue": Action.ADJUDICATE,
    "reviewer": Action.PAUSE,
    "withdraw": Action.BRING_IN,
}


class InvalidSteering(Exception):
    """The request cannot be carried out. The message is meant for users."""


class TraceChoice(Struct, forbid_unknown_fields=True):
    """Traces that meet all of these conditions. At least one condition is required."""

    traces: list[int] | None = None
    refs: list[str] | None = None  # the names in their files
    domain: str = ""
    tag: str = ""
    source: str = ""  # a part of the name of the imported file
    metadata: dict[str, Any] | None = None  # fields that the metadata has with these values

    def select(self, project: Project) -> TraceQuerySet:
        conditions = [
            (self.traces is not None, Q(pk__in=self.traces or [])),
            (self.refs is not None, Q(ref__in=self.refs or [])),
            (bool(self.domain), Q(problem__domain__iexact=self.domain)),
            (bool(self.tag), Exists(TraceTag.objects.filter(trace=OuterRef("pk"), name=self.tag))),
            (bool(self.source), Q(source__name__icontains=self.source)),
            (bool(self.metadata), Q(metadata__contains=self.metadata or {})),
        ]
        given = [condition for is_given, condition in conditions if is_given]
        if not given:
            raise InvalidSteering(_("Select traces with at least one of: traces, refs, domain, tag, source, metadata."))
        return Trace.objects.filter(*given, project=project)


class SteeringOrder(Struct, forbid_unknown_fields=True):
    """The action on the chosen traces. Without a group or a rater, traces come first for everyone."""

    action: SteeringVerb
    tag: str = ""
    group: str = ""
    rater: str = ""  # a user name or a pseudonym
    reviewer: str = ""  # a user name; empty: assign to no one
    reason: str = ""


def steer_traces(
    *, project: Project, choice: TraceChoice, order: SteeringOrder, by: User | None, now: dt.datetime, limit: int = 0
) -> ActionOutcome:
    """Do one action on the chosen traces. Raises `InvalidSteering` if there are more than the limit."""
    ids = list(choice.select(project).order_by("pk").values_list("pk", flat=True)[: limit + 1 if limit else None])
    if limit and len(ids) > limit:
        raise InvalidSteering(_("More than %(n)d traces match. Narrow the selection.") % {"n": limit})
    return _CHANGES[order.action](_Run(project, ids, order, by, now))


def find_raters(project: Project, names: Sequence[str]) -> list[Rater]:
    """Return the active members with these user names or pseudonyms."""
    raters = Rater.objects.active().members().filter(project=project)
    found = list(raters.filter(Q(user__username__in=names) | Q(labeler__in=names)).select_related("user"))
    known = {name for rater in found for name in (rater.labeler, rater.user.username if rater.user else None)}
    if unknown := sorted(set(names) - known):
        raise InvalidSteering(_("There is no annotator %(name)s.") % {"name": ", ".join(unknown)[:200]})
    return found


def find_group(project: Project, name: str) -> RaterGroup:
    group = RaterGroup.objects.named().filter(project=project, name=name).first()
    if group is None:
        raise InvalidSteering(_("There is no group %(name)s.") % {"name": name[:100]})
    return group


def _require(order: SteeringOrder, name: str) -> str:
    value = str(getattr(order, name)).strip()
    if not value:
        raise InvalidSteering(
            _("The action “%(action)s” requires “%(name)s”.") % {"action": order.action, "name": name}
        )
    if name == "tag" and len(value) > tags.MAX_TAG_LENGTH:
        raise InvalidSteering(_("A tag can have up to %(n)d characters.") % {"n": tags.MAX_TAG_LENGTH})
    return value


# The actions


class _Run(NamedTuple):
    project: Project
    ids: list[int]
    order: SteeringOrder
    by: User | None
    now: dt.datetime

    @property
    def common(self) -> dict[str, Any]:
        return {"project_id": self.project.pk, "trace_ids": self.ids, "by": self.by, "now": self.now}


def _add_tag(run: _Run) -> ActionOutcome:
    return _count(tags.add_tag(name=_require(run.order, "tag"), **run.common))


def _remove_tag(run: _Run) -> ActionOutcome:
    return _count(tags.remove_tag(name=_require(run.order, "tag"), **run.common))


def _put_first(run: _Run) -> ActionOutcome:
    return _count(queue.choose_traces(group=_find_group(run), **run.common))


def _put_back(run: _Run) -> ActionOutcome:
    return _count(queue.unchoose_traces(**run.common))


def _request_labels(run: _Run) -> ActionOutcome:
    traces = Trace.objects.filter(pk__in=run.ids).order_by("pk")
    return trace_actions.request_labels(traces=traces, by=run.by, now=run.now)


def _requeue(run: _Run) -> ActionOutcome:
    traces = Trace.objects.filter(pk__in=run.ids).select_related("project").order_by("pk")
    return trace_actions.requeue_traces(traces=traces, by=run.by, now=run.now)


def _assign_reviewer(run: _Run) -> ActionOutcome:
    return _count(assign_adjudication(reviewer=_find_reviewer(run), **run.common))


def _withdraw(run: _Run) -> ActionOutcome:
    reason = _require(run.order, "reason")[:200]
    active = list(Trace.objects.available().filter(pk__in=run.ids).order_by("pk").values_list("pk", flat=True))
    withdraw_traces(project=run.project, trace_ids=active, reason=reason, by=run.by, now=run.now)
    return _count(len(active))


def _find_group(run: _Run) -> RaterGroup | None:
    if run.order.group and run.order.rater:
        raise InvalidSteering(_("Give either a group or an annotator, not both."))
    if run.order.rater:
        return queue.ensure_personal_group(rater=find_raters(run.project, [run.order.rater])[0], now=run.now)
    return find_group(run.project, run.order.group) if run.order.group else None


def _find_reviewer(run: _Run) -> User | None:
    name = run.order.reviewer
    if not name:
        return None
    member = Membership.objects.active().filter(project=run.project, user__username=name).first()
    if member is None or not roles.membership_may(member, Action.ADJUDICATE):
        raise InvalidSteering(
            _("%(name)s does not have permission to adjudicate in this project.") % {"name": name[:100]}
        )
    return member.user


def _count(n: int) -> ActionOutcome:
    return ActionOutcome(n, Counter())


_CHANGES: dict[SteeringVerb, Callable[[_Run], ActionOutcome]] = {
    "tag": _add_tag,
    "untag": _remove_tag,
    "first": _put_first,
    "back": _put_back,
    "label": _request_labels,
    "requeue": _requeue,
    "reviewer": _assign_reviewer,
    "withdraw": _withdraw,
}
