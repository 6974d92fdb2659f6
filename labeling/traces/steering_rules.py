"""Rules that put a sample of new traces first: filter, sample, lane. An import applies them to the traces that it adds.

The sample is a hash of rule and trace, so it depends neither on the order of a file nor on its chunks. Held-out traces
are never chosen. Only this module writes SteeringRule rows.
"""

import datetime as dt
import hashlib
from collections.abc import Sequence

from django.db import transaction

from accounts.models import User
from events import audit_log
from labeling import queue
from labeling.models import Project, RaterGroup, SteeringRule, Trace
from labeling.models.trace import TraceQuerySet

MAX_AT_ONCE = 5000  # existing traces, when a rule is made


def make_rule(
    *,
    project: Project,
    domain: str,
    source_name: str,
    share: float,
    group: RaterGroup | None,
    applies_to_existing: bool,
    by: User | None,
    now: dt.datetime,
) -> int:
    """Create a rule. Return how many existing traces it put first, among the newest that are not labeled yet."""
    with transaction.atomic():
        rule = SteeringRule.objects.create(
            project=project, domain=domain, source_name=source_name, share=share, group=group, made_at=now
        )
        detail = {"domain": domain, "source": source_name, "share": share, "group": group.pk if group else None}
        subject = f"rule:{rule.pk}"
        audit_log.log_event(what="rule.made", by=by, now=now, project=project.pk, subject=subject, detail=detail)
    if not applies_to_existing:
        return 0
    unlabeled = Trace.objects.available().filter(project=project, settlement=None).order_by("-pk")
    ids = list(_filter(unlabeled, rule).values_list("pk", flat=True)[:MAX_AT_ONCE])
    return _choose(rule, ids, by, now)


def stop_rule(*, rule: SteeringRule, by: User | None, now: dt.datetime) -> bool:
    """Stop applying a rule. Traces that it has put first stay first."""
    with transaction.atomic():
        stopped = SteeringRule.objects.filter(pk=rule.pk, stopped_at=None).update(stopped_at=now)
        if stopped:
            subject = f"rule:{rule.pk}"
            audit_log.log_event(what="rule.stopped", by=by, now=now, project=rule.project_id, subject=subject)
    return bool(stopped)


def delete_group(*, group: RaterGroup, by: User | None, now: dt.datetime) -> int:
    """Delete a group and stop its rules. Return how many of its traces went back to their usual order."""
    for rule in SteeringRule.objects.filter(group=group, stopped_at=None).order_by("pk"):
        stop_rule(rule=rule, by=by, now=now)
    return queue.delete_group(group=group, by=by, now=now)


def apply_rules(*, project_id: int, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Apply the rules to traces that were just queued. The first rule that samples a trace decides."""
    n_chosen, left = 0, set(trace_ids)
    rules = SteeringRule.objects.filter(project=project_id, stopped_at=None).select_related("group")
    for rule in rules.order_by("pk") if trace_ids else ():
        matches = _filter(Trace.objects.filter(pk__in=left), rule).values_list("pk", flat=True)
        sampled = _sample(rule, list(matches))
        left -= set(sampled)
        n_chosen += _choose(rule, sampled, None, now)
    return n_chosen


def _filter(traces: TraceQuerySet, rule: SteeringRule) -> TraceQuerySet:
    traces = traces.filter(problem__is_reserve=False)
    traces = traces.filter(problem__domain__iexact=rule.domain) if rule.domain else traces
    return traces.filter(source__name__icontains=rule.source_name) if rule.source_name else traces


def _sample(rule: SteeringRule, trace_ids: Sequence[int]) -> list[int]:
    return [trace for trace in trace_ids if _place(rule.pk, trace) < rule.share]


def _place(rule_id: int, trace_id: int) -> float:
    """Return a fixed number from 0 to 1 for a rule and a trace."""
    digest = hashlib.sha256(f"rule {rule_id} trace {trace_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _choose(rule: SteeringRule, trace_ids: Sequence[int], by: User | None, now: dt.datetime) -> int:
    sampled = _sample(rule, trace_ids)
    return queue.choose_traces(project_id=rule.project_id, trace_ids=sampled, group=rule.group, by=by, now=now)
