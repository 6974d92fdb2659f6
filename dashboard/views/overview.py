"""The overview of a project: progress, forecast, cost, agreement, and what this member should do next."""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy

from dashboard import money, overview_charts, render, statistics
from dashboard.access import safe_view
from dashboard.annotator_summaries import count_flagged_annotators
from dashboard.overview_charts import OverviewDay
from dashboard.trace_search import filter_unresolved_bad_reports
from jobs.models import Job, JobState
from labeling.models import FirstErrorReport, Project, Rater, Trace
from labeling.models.rater import RaterStage
from labeling.quality import pay
from labeling.quality.adjudication import list_contested
from labeling.quality.project_stats import await_stats, choose_headline, list_daily_stats, load_project_stats
from people import roles
from people.models import MemberMessage, Membership
from people.roles import Action

RECENT_WEEKS = 4  # the shorter period of the charts
MAX_COUNT = 99  # of an item on the to-do list


def load_overview(project: Project, now: dt.datetime, *, weeks: int | None = None) -> dict[str, Any] | None:
    """Return None before the first submission. `weeks` shortens the charts; the figures cover the whole project.

    Reads stored figures, so its cost does not depend on the number of traces.
    """
    stats = load_project_stats(project_id=project.pk)
    if stats is None:
        return None
    content, today = stats.content, now.astimezone(dt.UTC).date()
    days = _list_days(content, pay.sum_by_day(project), today)
    settled, total = content["settled"]["traces"], content["settled"].get("of", 0)
    pace = [day.settled for day in days][-overview_charts.PACE_DAYS :]
    end = overview_charts.forecast_completion(pace, remaining=total - settled, today=today)
    headline, is_imported = choose_headline(content)
    cost = None if project.pay_per_hour is None else sum((day.cost for day in days), Decimal(0))
    n_steps = content["settled"]["steps"]
    return {
        "stats": stats,
        "settled": settled,
        "total": total,
        "end": end,
        "pace": sum(pace) / max(len(pace), 1),
        "alpha": statistics.build_estimate("alpha_nominal", headline["steps"].get("alpha_nominal")),
        "exact": statistics.build_estimate("exact", headline["first_error"].get("exact")),
        "step_cost": money.format_amount(project, cost / n_steps if cost is not None and n_steps else None, 3),
        "total_cost": money.format_amount(project, cost),
        "n_steps": n_steps,
        "is_imported": is_imported,
        "charts": overview_charts.build_overview_charts(
            project, days, end, total, list(list_daily_stats(project_id=project.pk)), weeks
        ),
    }


def _list_days(content: dict[str, Any], costs: Mapping[dt.date, Decimal], today: dt.date) -> list[OverviewDay]:
    """Return every day from the first one to today: idle days count in the pace."""
    settled = {row["day"]: row for row in content.get("settled_days", ())}
    known = sorted({*settled, *(day.isoformat() for day in costs)})
    first = min(dt.date.fromisoformat(known[0]), today) if known else today
    days = []
    for n in range((today - first).days + 1):
        day = first + dt.timedelta(days=n)
        row = settled.get(day.isoformat(), {})
        ended, contested, steps = (row.get(name, 0) for name in ("settled", "contested", "steps"))
        days.append(OverviewDay(day, ended, contested, steps, cost=costs.get(day, Decimal(0))))
    return days


@dataclass(frozen=True)
class TodoItem:
    """What needs a decision by this member, the page to open, and the number if it is counted."""

    key: str
    label: str
    hint: str
    url: str
    n: int | None = None

    @property
    def count(self) -> str:
        if self.n is None:
            return ""
        return f"{MAX_COUNT}+" if self.n > MAX_COUNT else str(self.n)


def load_todo(actor: Membership, *, is_new: bool = False, n_flagged: int = 0, n_contested: int = 0) -> list[TodoItem]:
    """Return the items this member may act on, most urgent first. `is_new`: the project has no submission yet."""
    slug, project = actor.project.slug, actor.project
    items = []
    if n_contested and roles.membership_may(actor, Action.ADJUDICATE):
        label = ngettext("Contested trace", "Contested traces", n_contested)
        hint = _("annotators disagree; decide the first error")
        items.append(TodoItem("contested", label, hint, _build_url(slug, "adjudication"), n_contested))
    for key, action, rows, label, hint, page in _list_counted_items(project):
        if roles.membership_may(actor, action) and (n := rows[: MAX_COUNT + 1].count()):
            items.append(TodoItem(key, label % n, hint, _build_url(slug, page), n))
    if n_flagged and roles.membership_may(actor, Action.PAUSE):
        label = ngettext("Flagged annotator", "Flagged annotators", n_flagged)
        hint = _("review their work; a flag never pauses anyone")
        items.append(TodoItem("flagged", label, hint, _build_url(slug, "annotators?choice=flagged"), n_flagged))
    if is_new:
        items += _list_first_steps(actor)
    if project.guideline_id is None and roles.membership_may(actor, Action.GUIDE):
        hint = _("annotators have no instructions until then")
        items.append(TodoItem("guideline", _("Publish a guideline"), hint, _build_url(slug, "guideline")))
    return items


def _build_url(slug: str, page: str) -> str:
    name, mark, query = page.partition("?")
    return reverse(f"dashboard:{name}", args=[slug]) + mark + query


def _list_counted_items(project: Project) -> Iterator[tuple[str, Action, QuerySet[Any], Any, str, str]]:
    """Yield the key, the required action, the rows, the label by their number, the hint, the page with its query."""
    members = Rater.objects.members().active().filter(project=project)
    label = ngettext_lazy("Paused annotator", "Paused annotators")
    paused, hint = members.filter(paused_at__isnull=False), _("review their work, then resume or retrain them")
    yield "paused", Action.PAUSE, paused, label, hint, "annotators?choice=paused"
    label, hint = ngettext_lazy("New reply", "New replies"), _("annotators replied to your messages")
    answers = MemberMessage.objects.with_new_answer(project.pk)
    yield "answers", Action.WRITE, answers, label, hint, "messages"
    label, hint = ngettext_lazy("Question", "Questions"), _("annotators asked about a trace")
    questions = MemberMessage.objects.open_questions(project.pk)
    yield "questions", Action.WRITE, questions, label, hint, "messages"
    label, hint = ngettext_lazy("Failed job", "Failed jobs"), _("read the reason, then retry")
    failed = Job.objects.filter(subject=f"project:{project.pk}", state=JobState.FAILED)
    yield "failed_jobs", Action.READ, failed, label, hint, "jobs"
    label = ngettext_lazy("Trace whose problem was reported as bad", "Traces whose problem was reported as bad")
    bad_reports = filter_unresolved_bad_reports(FirstErrorReport.objects.filter(project=project))
    bad_traces, hint = bad_reports.values("trace").distinct(), _("withdraw the trace if the report is right")
    yield "bad_problems", Action.BRING_IN, bad_traces, label, hint, "traces?state=bad_problem"
    if project.guideline is not None:
        label = ngettext_lazy("Annotator has not read the guideline", "Annotators have not read the guideline")
        hint = _("they must read version %(n)d before their next trace") % {"n": project.guideline.version}
        unread = members.filter(stage=RaterStage.WORKING).exclude(read_guideline=project.guideline_id)
        yield "unread_guideline", Action.PAUSE, unread, label, hint, "annotators?choice=unread"


def _list_first_steps(actor: Membership) -> Iterator[TodoItem]:
    slug, project = actor.project.slug, actor.project
    if roles.membership_may(actor, Action.BRING_IN) and not Trace.objects.filter(project=project).exists():
        hint = _("from a file, with a preview")
        yield TodoItem("import", _("Import traces"), hint, _build_url(slug, "imports"))
    annotators = Rater.objects.members().active().filter(project=project)
    if roles.membership_may(actor, Action.INVITE) and not annotators.exists():
        hint = _("with a link for one or more people")
        yield TodoItem("invite", _("Invite annotators"), hint, _build_url(slug, "members"))


@safe_view(Action.READ)
def show_overview(request: HttpRequest, actor: Membership) -> HttpResponse:
    weeks = RECENT_WEEKS if request.GET.get("weeks") == str(RECENT_WEEKS) else None
    overview = load_overview(actor.project, timezone.now(), weeks=weeks)
    n_flagged = count_flagged_annotators(actor.project, overview["stats"]) if overview else 0
    n_contested = list_contested(project_id=actor.project_id).order_by().count()
    await_stats(stats=overview["stats"] if overview else None, now=timezone.now())
    return render.project_page(
        request,
        actor,
        "dashboard/overview.html",
        here="overview",
        tables=[chart.table for chart in overview["charts"].values()] if overview else [],
        overview=overview,
        n_contested=n_contested,
        todo=load_todo(actor, is_new=overview is None, n_flagged=n_flagged, n_contested=n_contested),
        weeks=weeks,
    )
