"""The to-do list on the overview: what needs a decision by this member, with a link. Counts stop at 99."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard.traces.page import filter_unresolved_bad_reports
from jobs.models import Job, JobState
from labeling.models import FirstErrorReport, Project, Rater, Trace
from labeling.models.rater import RaterStage
from labeling.quality.adjudication import list_contested
from people import roles
from people.models import MemberMessage, Membership
from people.roles import Action

MAX_COUNT = 99


@dataclass(frozen=True)
class TodoItem:
    key: str
    count: str
    label: str
    url: str
    hint: str


def load_todo(actor: Membership, *, is_new: bool = False, n_flagged: int = 0) -> list[TodoItem]:
    """Return the items this member may act on, most urgent first. `is_new`: the project has no submission yet."""
    slug, project = actor.project.slug, actor.project
    items = []
    for key, action, rows, describe, page, query in _list_queries(project):
        if roles.membership_may(actor, action) and (n := rows[: MAX_COUNT + 1].count()):
            items.append(_build_item(key, n, describe, reverse(f"dashboard:{page}", args=[slug]) + query))
    if n_flagged and roles.membership_may(actor, Action.PAUSE):
        url = reverse("dashboard:annotators", args=[slug]) + "?choice=flagged"
        items.append(_build_item("flagged", n_flagged, _describe_flagged, url))
    if is_new:
        items += _list_first_steps(actor)
    if project.guideline_id is None and roles.membership_may(actor, Action.GUIDE):
        hint = _("annotators have no instructions until then")
        url = reverse("dashboard:guideline", args=[slug])
        items.append(TodoItem("guideline", "", _("Publish a guideline"), url, hint))
    return items


_Describe = Callable[[int], tuple[str, str]]  # the label and the hint for a count


def _list_queries(project: Project) -> Iterator[tuple[str, Action, QuerySet[Any], _Describe, str, str]]:
    """Yield the key, the required action, the rows, the description, and the page with its query."""
    contested = list_contested(project_id=project.pk).order_by()
    yield "contested", Action.ADJUDICATE, contested, _describe_contested, "adjudication", ""
    members = Rater.objects.members().active().filter(project=project)
    paused = members.filter(paused_at__isnull=False)
    yield "paused", Action.PAUSE, paused, _describe_paused, "annotators", "?choice=paused"
    answers = MemberMessage.objects.with_new_answer(project.pk)
    yield "answers", Action.WRITE, answers, _describe_answers, "messages", ""
    failed = Job.objects.filter(subject=f"project:{project.pk}", state=JobState.FAILED)
    yield "failed_jobs", Action.READ, failed, _describe_failed_jobs, "jobs", ""
    bad_reports = filter_unresolved_bad_reports(FirstErrorReport.objects.filter(project=project))
    bad_traces = bad_reports.values("trace").distinct()
    yield "bad_problems", Action.BRING_IN, bad_traces, _describe_bad_problems, "traces", "?state=bad_problem"
    if project.guideline_id is not None:
        unread = members.filter(stage=RaterStage.WORKING).exclude(read_guideline=project.guideline_id)
        describe = partial(_describe_unread_guideline, project)
        yield "unread_guideline", Action.PAUSE, unread, describe, "annotators", "?choice=unread"


def _list_first_steps(actor: Membership) -> Iterator[TodoItem]:
    slug, project = actor.project.slug, actor.project
    if roles.membership_may(actor, Action.BRING_IN) and not Trace.objects.filter(project=project).exists():
        hint, url = _("from a file, with a preview"), reverse("dashboard:imports", args=[slug])
        yield TodoItem("import", "", _("Import traces"), url, hint)
    annotators = Rater.objects.members().active().filter(project=project)
    if roles.membership_may(actor, Action.INVITE) and not annotators.exists():
        hint, url = _("by a link for one person or many"), reverse("dashboard:members", args=[slug])
        yield TodoItem("invite", "", _("Invite annotators"), url, hint)


def _build_item(key: str, n: int, describe: _Describe, url: str) -> TodoItem:
    label, hint = describe(n)
    return TodoItem(key, f"{MAX_COUNT}+" if n > MAX_COUNT else str(n), label, url, hint)


def _describe_contested(n: int) -> tuple[str, str]:
    return ngettext("Contested trace", "Contested traces", n), _("annotators disagree; decide the first error")


def _describe_paused(n: int) -> tuple[str, str]:
    return ngettext("Paused annotator", "Paused annotators", n), _("review their work, then resume or retrain them")


def _describe_flagged(n: int) -> tuple[str, str]:
    return ngettext("Flagged annotator", "Flagged annotators", n), _("review their work; a flag never pauses anyone")


def _describe_answers(n: int) -> tuple[str, str]:
    return ngettext("New answer", "New answers", n), _("annotators answered your messages")


def _describe_bad_problems(n: int) -> tuple[str, str]:
    label = ngettext("Trace whose problem was reported as bad", "Traces whose problem was reported as bad", n)
    return label, _("withdraw the trace if the report is right")


def _describe_unread_guideline(project: Project, n: int) -> tuple[str, str]:
    version = project.guideline.version if project.guideline else 0
    label = ngettext("Annotator has not read guideline %(n)d", "Annotators have not read guideline %(n)d", n)
    return label % {"n": version}, _("they must read it before their next trace")


def _describe_failed_jobs(n: int) -> tuple[str, str]:
    return ngettext("Failed job", "Failed jobs", n), _("read the reason, then retry")
