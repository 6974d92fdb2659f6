"""The way into a project, station by station: each a plain page that works without JavaScript."""

from typing import cast

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from annotate import completion, lessons, way
from labeling import admission, quality, queue
from labeling.guidelines import rendering
from labeling.models import Assignment, Guideline, Lesson, Project, Rater
from labeling.models.quality import GoldUse
from labeling.stations import Station
from labeling.texts import numbers
from people import members, roles

PAGES = {
    Station.CONSENT: "annotate/enter/consent.html",
    Station.GUIDELINE: "annotate/enter/guideline.html",
    Station.TRAINING: "annotate/enter/training.html",
    Station.SCREENING: "annotate/enter/screening.html",
    Station.RETRY: "annotate/enter/retry.html",
    Station.FAILED: "annotate/enter/failed.html",
    Station.WORK: "annotate/enter/work.html",
}


def _me(request: HttpRequest) -> User:
    return cast(User, request.user)


def _raters(request: HttpRequest) -> QuerySet[Rater]:
    """As whom the asking person rates, where they still belong."""
    mine = Rater.objects.active().filter(user=_me(request))
    return mine.select_related("project__guideline", "project__consent_text", "read_guideline", "agreed_text")


@require_safe
def enter(request: HttpRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(_raters(request), project__slug=slug)
    found = way.of(rater, rater.project)
    if found.station == Station.LESSON:
        return redirect("annotate:lesson", _unread(rater).earliest("given_at").assignment_id)
    mark = admission.needed(found.screening.total, rater.project.screening_pass_share)
    told = {"rater": rater, "project": rater.project, "way": found, "mark": mark}
    told["why_not"] = queue.why_not(rater, rater.project)
    return render(request, PAGES[found.station], told | _of_station(rater, found.station))


def _unread(rater: Rater) -> QuerySet[Lesson]:
    return Lesson.objects.filter(assignment__rater=rater, read_at=None)


def _of_station(rater: Rater, station: Station) -> dict[str, object]:
    project = rater.project
    if station == Station.CONSENT and project.consent_text is not None:
        return {"text": project.consent_text, "html": rendering.to_html(project.consent_text.body)}
    if station == Station.GUIDELINE and project.guideline is not None:
        return {"guideline": project.guideline, "html": rendering.to_html(project.guideline.body)}
    return {
        "result": rater.screening_results.order_by("-attempt").first(),
        "attempts_now": max(1, project.screening_attempts - rater.screening_attempt + 1),
        "lessons": _lessons(rater),
        "lead_names": ", ".join(str(lead.user) for lead in members.leads_of(project)),
        "completion": completion.of(rater),
        "is_at_work": station == Station.WORK and completion.has_done(rater),
    }


def _lessons(rater: Rater) -> QuerySet[Lesson]:
    return Lesson.objects.filter(assignment__rater=rater).order_by("given_at")


@require_POST
def consent(request: HttpRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(_raters(request), project__slug=slug)
    if request.POST.get("agrees") != "yes":
        messages.warning(request, _("Nothing was agreed to: tick the box first."))
        return redirect("annotate:enter", slug)
    text = get_object_or_404(rater.project.consent_texts, version=_version(request))
    try:
        admission.consent(rater=rater, text=text, by=_me(request), now=timezone.now())
    except admission.HasChanged:
        messages.warning(request, _("The text has changed while you were reading. This is the new one."))
    return redirect("annotate:enter", slug)


@require_POST
def read_guideline(request: HttpRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(_raters(request), project__slug=slug)
    version = get_object_or_404(rater.project.guidelines, version=_version(request))
    try:
        admission.read_guideline(rater=rater, guideline=version, by=_me(request), now=timezone.now())
    except admission.HasChanged:
        messages.warning(request, _("The guideline has changed while you were reading. This is the new version."))
    return redirect("annotate:enter", slug)


def _version(request: HttpRequest) -> int:
    return numbers.whole(request.POST.get("version"), digits=6) or 0


@require_POST
def try_again(request: HttpRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(_raters(request), project__slug=slug)
    admission.try_again(rater_id=rater.pk, by=_me(request), now=timezone.now())
    return redirect("annotate:enter", slug)


@require_safe
def guideline(request: HttpRequest, slug: str) -> HttpResponse:
    """What raters are told, to be looked up at any time; an older version too, for what was rated under it."""
    project = get_object_or_404(roles.projects(_me(request)).select_related("guideline"), slug=slug)
    shown = _shown(request, project)
    told = {
        "project": project,
        "guideline": shown,
        "versions": project.guidelines.order_by("-version"),
        "html": rendering.to_html(shown.body) if shown else "",
    }
    return render(request, "annotate/guideline.html", told)


def _shown(request: HttpRequest, project: Project) -> Guideline | None:
    asked = request.GET.get("version", "")
    if not asked:
        return project.guideline
    return get_object_or_404(project.guidelines, version=numbers.whole(asked, digits=6))


def _of_training(request: HttpRequest, assignment: int) -> Assignment:
    mine = Assignment.objects.filter(rater__user=_me(request), lesson__isnull=False)
    found = mine.select_related("rater", "project__guideline", "trace__problem", "lesson")
    return get_object_or_404(found, pk=assignment)


@require_safe
def lesson(request: HttpRequest, assignment: int) -> HttpResponse:
    found = _of_training(request, assignment)
    told = {
        "assignment": found,
        "project": found.project,
        "way": way.of(found.rater, found.project),
        "told": lessons.of(found),
        "so_far": quality.accuracy(rater_id=found.rater_id, use=GoldUse.TRAINING),
    }
    return render(request, "annotate/lesson.html", told)


@require_POST
def read_lesson(request: HttpRequest, assignment: int) -> HttpResponse:
    """To the next training trace at once; at the end of the training to what comes then."""
    found = _of_training(request, assignment)
    admission.read_lesson(assignment_id=found.pk, rater_id=found.rater_id, by=_me(request), now=timezone.now())
    rater = get_object_or_404(_raters(request), pk=found.rater_id)
    goes_on = way.of(rater, rater.project).station == Station.TRAINING
    return redirect("annotate:work" if goes_on else "annotate:enter", rater.project.slug)


@require_safe
def done(request: HttpRequest, slug: str) -> HttpResponse:
    """The end of somebody's work: what they did, and what they take back to the platform that sent them."""
    rater = get_object_or_404(_raters(request), project__slug=slug)
    told = {"rater": rater, "project": rater.project, "completion": completion.of(rater), "n": completion.n_done(rater)}
    return render(request, "annotate/done.html", told)
