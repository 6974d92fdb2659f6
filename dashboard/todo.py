"""What waits for the person who looks at the overview: things that somebody must act on, each with its place. Counts no
further than a hundred."""

from dataclasses import dataclass

from django.db.models import Model, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.models import Job, JobState
from labeling.models import Rater, Settlement, Trace
from labeling.models.consensus import SettlementState
from labeling.models.rater import RaterKind
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


def of(actor: Membership, *, is_new: bool = False) -> list[Waiting]:
    """In the order in which they cost the project most; in a project without a submission, what comes first."""
    slug, project = actor.project.slug, actor.project
    contested = Settlement.objects.filter(project=project, state=SettlementState.CONTESTED)
    paused = Rater.objects.filter(project=project, paused_at__isnull=False, removed_at=None)
    failed = Job.objects.filter(subject=f"project:{project.pk}", state=JobState.FAILED)
    answers = Message.objects.with_new_answer(project.pk)
    asked = (
        (Action.ADJUDICATE, contested, _contested, reverse("dashboard:adjudicate", args=[slug])),
        (Action.PAUSE, paused, _paused, reverse("dashboard:annotators", args=[slug])),
        (Action.WRITE, answers, _answers, reverse("dashboard:messages", args=[slug])),
        (Action.READ, failed, _failed, reverse("dashboard:jobs", args=[slug])),
    )
    found = [
        Waiting(_told(n), what(n)[0], address, what(n)[1])
        for action, rows, what, address in asked
        if roles.does(actor, action) and (n := _count(rows))
    ]
    if is_new:
        found += _beginnings(actor)
    if project.guideline_id is None and roles.does(actor, Action.GUIDE):
        why = _("raters are told nothing until one is published")
        found.append(Waiting("", _("Publish a guideline"), reverse("dashboard:guideline", args=[slug]), why))
    return found


def _beginnings(actor: Membership) -> list[Waiting]:
    slug, project = actor.project.slug, actor.project
    found = []
    if roles.does(actor, Action.BRING_IN) and not Trace.objects.filter(project=project).exists():
        why = _("from a file; you see how it would come in before it does")
        found.append(Waiting("", _("Bring traces in"), reverse("dashboard:imports", args=[slug]), why))
    if (
        roles.does(actor, Action.INVITE)
        and not Rater.objects.filter(project=project, kind=RaterKind.MEMBER, removed_at=None).exists()
    ):
        why = _("by a link for one person or for many")
        found.append(Waiting("", _("Invite annotators"), reverse("dashboard:people", args=[slug]), why))
    return found


def _count(rows: QuerySet[Model]) -> int:
    return rows[: MOST + 1].count()


def _told(n: int) -> str:
    return f"{MOST}+" if n > MOST else str(n)


def _contested(n: int) -> tuple[str, str]:
    return ngettext("Contested trace", "Contested traces", n), _("raters differ; a person decides")


def _paused(n: int) -> tuple[str, str]:
    return ngettext("Annotator paused", "Annotators paused", n), _("read what they did, then let them go on")


def _answers(n: int) -> tuple[str, str]:
    return ngettext("New answer", "New answers", n), _("annotators answered what was written to them")


def _failed(n: int) -> tuple[str, str]:
    return ngettext("Job failed", "Jobs failed", n), _("each says why; a retry goes on where it stopped")
