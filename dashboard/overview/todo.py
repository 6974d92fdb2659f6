"""What waits for the person who looks at the overview: things that somebody must act on, each with its place. Counts no
further than a hundred."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard.traces import page as traces_page
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
    count: str
    what: str
    address: str
    why: str


def load_todo(actor: Membership, *, is_new: bool = False, n_flagged: int = 0) -> list[TodoItem]:
    """In the order in which they cost the project most; in a project without a submission, what comes first. Who is
    flagged was found among the figures."""
    slug, project = actor.project.slug, actor.project
    found = [
        TodoItem(_format_count(n), what(n)[0], reverse(f"dashboard:{page}", args=[slug]) + asked, what(n)[1])
        for action, rows, what, page, asked in _list_queries(project)
        if roles.membership_may(actor, action) and (n := _count_capped(rows))
    ]
    if n_flagged and roles.membership_may(actor, Action.PAUSE):
        address = reverse("dashboard:annotators", args=[slug]) + "?choice=flagged"
        found.append(
            TodoItem(_format_count(n_flagged), _label_flagged(n_flagged)[0], address, _label_flagged(n_flagged)[1])
        )
    if is_new:
        found += _list_first_steps(actor)
    if project.guideline_id is None and roles.membership_may(actor, Action.GUIDE):
        why = _("raters are told nothing until one is published")
        found.append(TodoItem("", _("Publish a guideline"), reverse("dashboard:guideline", args=[slug]), why))
    return found


_TodoQuery = tuple[Action, QuerySet[Any], Callable[[int], tuple[str, str]], str, str]


def _list_queries(project: Project) -> Iterator[_TodoQuery]:
    """Who may act, upon what, how it is called, on which page it stands and under which of its choices."""
    yield (
        Action.ADJUDICATE,
        list_contested(project_id=project.pk).order_by(),
        _label_contested,
        "adjudication",
        "",
    )
    members = Rater.objects.members().active().filter(project=project)
    yield Action.PAUSE, members.filter(paused_at__isnull=False), _label_paused, "annotators", "?choice=paused"
    yield Action.WRITE, MemberMessage.objects.with_new_answer(project.pk), _label_answers, "messages", ""
    failed = Job.objects.filter(subject=f"project:{project.pk}", state=JobState.FAILED)
    yield Action.READ, failed, _label_failed_jobs, "jobs", ""
    bad = (
        traces_page.filter_unresolved_bad_reports(FirstErrorReport.objects.filter(project=project))
        .values("trace")
        .distinct()
    )
    yield Action.BRING_IN, bad, _label_bad_problems, "traces", "?state=bad_problem"
    if project.guideline_id is not None:
        unread = members.filter(stage=RaterStage.WORKING).exclude(read_guideline=project.guideline_id)
        yield Action.PAUSE, unread, partial(_label_unread_guideline, project), "annotators", "?choice=unread"


def _list_first_steps(actor: Membership) -> list[TodoItem]:
    slug, project = actor.project.slug, actor.project
    found = []
    if roles.membership_may(actor, Action.BRING_IN) and not Trace.objects.filter(project=project).exists():
        why = _("from a file; you see how it would come in before it does")
        found.append(TodoItem("", _("Bring traces in"), reverse("dashboard:imports", args=[slug]), why))
    if (
        roles.membership_may(actor, Action.INVITE)
        and not Rater.objects.members().active().filter(project=project).exists()
    ):
        why = _("by a link for one person or for many")
        found.append(TodoItem("", _("Invite annotators"), reverse("dashboard:members", args=[slug]), why))
    return found


def _count_capped(rows: QuerySet[Any]) -> int:
    return rows[: MAX_COUNT + 1].count()


def _format_count(n: int) -> str:
    return f"{MAX_COUNT}+" if n > MAX_COUNT else str(n)


def _label_contested(n: int) -> tuple[str, str]:
    return ngettext("Contested trace", "Contested traces", n), _("raters differ; a person decides")


def _label_paused(n: int) -> tuple[str, str]:
    return ngettext("Annotator paused", "Annotators paused", n), _("read what they did, then let them go on")


def _label_flagged(n: int) -> tuple[str, str]:
    return ngettext("Annotator flagged", "Annotators flagged", n), _("look at what they did; a flag never pauses")


def _label_answers(n: int) -> tuple[str, str]:
    return ngettext("New answer", "New answers", n), _("annotators answered what was written to them")


def _label_bad_problems(n: int) -> tuple[str, str]:
    what = ngettext("Trace with a problem reported as bad", "Traces with a problem reported as bad", n)
    return what, _("withdraw it if they are right")


def _label_unread_guideline(project: Project, n: int) -> tuple[str, str]:
    version = project.guideline.version if project.guideline else 0
    told = ngettext("Annotator has not read guideline %(n)d", "Annotators have not read guideline %(n)d", n)
    return told % {"n": version}, _("they are asked before their next trace")


def _label_failed_jobs(n: int) -> tuple[str, str]:
    return ngettext("Job failed", "Jobs failed", n), _("each says why; a retry goes on where it stopped")
