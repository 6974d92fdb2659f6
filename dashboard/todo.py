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

from dashboard import search
from jobs.models import Job, JobState
from labeling import quality
from labeling.models import Project, Rater, Report, Trace
from labeling.models.rater import RaterStage
from people import roles
from people.models import Membership, Message
from people.roles import Action

MOST = 99


@dataclass(frozen=True)
class Waiting:
    count: str
    what: str
    address: str
    why: str


def of(actor: Membership, *, is_new: bool = False, n_flagged: int = 0) -> list[Waiting]:
    """In the order in which they cost the project most; in a project without a submission, what comes first. Who is
    flagged was found among the figures."""
    slug, project = actor.project.slug, actor.project
    found = [
        Waiting(_told(n), what(n)[0], reverse(f"dashboard:{page}", args=[slug]) + asked, what(n)[1])
        for action, rows, what, page, asked in _asked(project)
        if roles.does(actor, action) and (n := _count(rows))
    ]
    if n_flagged and roles.does(actor, Action.PAUSE):
        address = reverse("dashboard:annotators", args=[slug]) + "?choice=flagged"
        found.append(Waiting(_told(n_flagged), _flagged(n_flagged)[0], address, _flagged(n_flagged)[1]))
    if is_new:
        found += _beginnings(actor)
    if project.guideline_id is None and roles.does(actor, Action.GUIDE):
        why = _("raters are told nothing until one is published")
        found.append(Waiting("", _("Publish a guideline"), reverse("dashboard:guideline", args=[slug]), why))
    return found


_Asked = tuple[Action, QuerySet[Any], Callable[[int], tuple[str, str]], str, str]


def _asked(project: Project) -> Iterator[_Asked]:
    """Who may act, upon what, how it is called, on which page it stands and under which of its choices."""
    yield Action.ADJUDICATE, quality.contested(project_id=project.pk).order_by(), _contested, "adjudicate", ""
    members = Rater.objects.members().active().filter(project=project)
    yield Action.PAUSE, members.filter(paused_at__isnull=False), _paused, "annotators", "?choice=paused"
    yield Action.WRITE, Message.objects.with_new_answer(project.pk), _answers, "messages", ""
    failed = Job.objects.filter(subject=f"project:{project.pk}", state=JobState.FAILED)
    yield Action.READ, failed, _failed, "jobs", ""
    bad = search.reported_as_bad(Report.objects.filter(project=project)).values("trace").distinct()
    yield Action.BRING_IN, bad, _bad, "traces", "?state=bad_problem"
    if project.guideline_id is not None:
        unread = members.filter(stage=RaterStage.WORKING).exclude(read_guideline=project.guideline_id)
        yield Action.PAUSE, unread, partial(_unread, project), "annotators", "?choice=unread"


def _beginnings(actor: Membership) -> list[Waiting]:
    slug, project = actor.project.slug, actor.project
    found = []
    if roles.does(actor, Action.BRING_IN) and not Trace.objects.filter(project=project).exists():
        why = _("from a file; you see how it would come in before it does")
        found.append(Waiting("", _("Bring traces in"), reverse("dashboard:imports", args=[slug]), why))
    if roles.does(actor, Action.INVITE) and not Rater.objects.members().active().filter(project=project).exists():
        why = _("by a link for one person or for many")
        found.append(Waiting("", _("Invite annotators"), reverse("dashboard:people", args=[slug]), why))
    return found


def _count(rows: QuerySet[Any]) -> int:
    return rows[: MOST + 1].count()


def _told(n: int) -> str:
    return f"{MOST}+" if n > MOST else str(n)


def _contested(n: int) -> tuple[str, str]:
    return ngettext("Contested trace", "Contested traces", n), _("raters differ; a person decides")


def _paused(n: int) -> tuple[str, str]:
    return ngettext("Annotator paused", "Annotators paused", n), _("read what they did, then let them go on")


def _flagged(n: int) -> tuple[str, str]:
    return ngettext("Annotator flagged", "Annotators flagged", n), _("look at what they did; a flag never pauses")


def _answers(n: int) -> tuple[str, str]:
    return ngettext("New answer", "New answers", n), _("annotators answered what was written to them")


def _bad(n: int) -> tuple[str, str]:
    what = ngettext("Trace with a problem reported as bad", "Traces with a problem reported as bad", n)
    return what, _("withdraw it if they are right")


def _unread(project: Project, n: int) -> tuple[str, str]:
    version = project.guideline.version if project.guideline else 0
    told = ngettext("Annotator has not read guideline %(n)d", "Annotators have not read guideline %(n)d", n)
    return told % {"n": version}, _("they are asked before their next trace")


def _failed(n: int) -> tuple[str, str]:
    return ngettext("Job failed", "Jobs failed", n), _("each says why; a retry goes on where it stopped")
