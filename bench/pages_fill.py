"""Fill a database for `bench.pages`: a project with a lead and many traces, most of them settled, the rest open."""

import datetime as dt
from typing import Any, NamedTuple

from django.db import connection
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from bench import queue_fill
from labeling.models import Assignment, Project, Rater
from labeling.models.rater import RaterKind
from labeling.quality import project_stats
from people import members
from people.models import Role

DAYS = 30


class FilledPages(NamedTuple):
    lead: Any
    addresses: dict[str, str]


def fill_database(n_traces: int) -> FilledPages:
    made = queue_fill.fill_database(n_traces)
    project = Project.objects.get(pk=made.project_id)
    now = timezone.now()
    lead = User.objects.create_user("lead")
    members.add_member(project=project, user=lead, role=Role.LEAD, now=now)
    Rater.objects.filter(project=project).update(
        kind=RaterKind.MEMBER
    )  # pages show annotators, but not imported raters
    _run(_TEXTS, [])
    _run(_SETTLEMENTS, [connection.ops.adapt_datetimefield_value(now - dt.timedelta(days=DAYS))])
    _run(_CONSENSUS, [connection.ops.adapt_datetimefield_value(now)])
    _run(_STANDS, [])
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    project_stats.compute_project_stats(project_id=project.pk, now=now)
    return FilledPages(lead, _addresses(project))


def _addresses(project: Project) -> dict[str, str]:
    trace = project.traces.order_by("-pk").values_list("pk", flat=True)[:1].get()
    read, rater = (
        Assignment.objects.filter(project=project).order_by("pk").values_list("trace_id", "rater_id")[:1].get()
    )
    traces = reverse("dashboard:traces", args=[project.slug])
    pages = (
        "overview",
        "annotators",
        "messages",
        "agreement",
        "adjudication",
        "gold",
        "screening_set",
        "settings",
        "guideline",
        "lifecycle",
        "jobs",
        "members",
        "generations",
        "snapshots",
        "imports",
    )
    return {
        **{name: reverse(f"dashboard:{name}", args=[project.slug]) for name in pages},
        "overview, 4 weeks": reverse("dashboard:overview", args=[project.slug]) + "?weeks=4",
        "annotator": reverse("dashboard:annotator", args=[project.slug, rater]),
        "traces": traces,
        "traces, in the middle": f"{traces}?before={trace // 2}",
        "traces, contested": f"{traces}?state=contested",
        "traces, no such word": f"{traces}?q=nowhere",
        "traces, one number": f"{traces}?q={trace}",
        "traces, withdrawn": f"{traces}?state=withdrawn",
        "traces, unread": f"{traces}?state=unread",
        "traces, reported as bad": f"{traces}?state=bad_problem",
        "trace": reverse("dashboard:trace", args=[project.slug, read]),
    }


def _run(sql: str, parameters: list[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)


# Every thousandth trace has steps, for the page of one trace.
_TEXTS = """
INSERT INTO labeling_step (trace_id, position, kind, is_rateable, separator, agent)
SELECT t.id, p.id - 1, 'reasoning', true, '', '' FROM labeling_trace t JOIN labeling_trace p ON p.id <= 8
WHERE t.id = 1 OR t.id %% 1000 = 0"""

_SETTLEMENTS = """
INSERT INTO labeling_settlement (trace_id, project_id, state, reason, n_readings, n_votes, consensus_revision,
  changed_at, is_due)
SELECT id, project_id,
  CASE WHEN id %% 50 = 0 THEN 'contested' WHEN id %% 3 = 0 THEN 'reading' ELSE 'settled' END,
  CASE WHEN id %% 50 = 0 THEN 'differ_at_limit' WHEN id %% 3 = 0 THEN 'first_readings' ELSE 'all_agree' END,
  2, 2, 0, %s, false
FROM labeling_trace"""

# The traces with the highest ids have a consensus of three raters, so that a screening set can be drawn.
_CONSENSUS = """
INSERT INTO labeling_consensus (trace_id, project_id, revision, first_error, source, confidence, n_votes, labels,
  assisted_votes, note, made_at)
SELECT s.trace_id, s.project_id, 1, CASE WHEN s.trace_id %% 4 > 0 THEN s.trace_id %% 4 END, 'raters', 1.0, 3, '[]',
  '[]', '', %s
FROM labeling_settlement s WHERE s.state = 'settled' ORDER BY s.trace_id DESC LIMIT 5000"""
_STANDS = """
UPDATE labeling_settlement SET n_votes = 3, consensus_revision = 1
WHERE trace_id IN (SELECT trace_id FROM labeling_consensus)"""
