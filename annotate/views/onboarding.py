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
from annotate import completion, onboarding_progress, training_feedback
from formats import integers
from labeling import onboarding, queue
from labeling.gates import OnboardingGate
from labeling.models import Assignment, Guideline, Project, Rater, TrainingFeedback
from labeling.models.gold import GoldUse
from labeling.projects.guidelines import rendering
from labeling.quality.gold_scoring import load_gold_accuracy
from people import members, roles

GATE_TEMPLATES = {
    OnboardingGate.CONSENT: "annotate/onboarding/consent.html",
    OnboardingGate.GUIDELINE: "annotate/onboarding/guideline.html",
    OnboardingGate.TRAINING: "annotate/onboarding/training.html",
    OnboardingGate.SCREENING: "annotate/onboarding/screening.html",
    OnboardingGate.RETRY: "annotate/onboarding/retry.html",
    OnboardingGate.FAILED: "annotate/onboarding/failed.html",
    OnboardingGate.WORK: "annotate/onboarding/work.html",
}


def _current_user(request: HttpRequest) -> User:
    return cast(User, request.user)


def _own_raters(request: HttpRequest) -> QuerySet[Rater]:
    """As whom the asking person rates, where they still belong."""
    mine = Rater.objects.active().filter(user=_current_user(request))
    return mine.select_related("project__guideline", "project__consent_text", "read_guideline", "agreed_text")


@require_safe
def show_gate(request: HttpRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(_own_raters(request), project__slug=slug)
    found = onboarding_progress.load_onboarding_path(rater, rater.project)
    if found.station == OnboardingGate.LESSON:
        return redirect("annotate:lesson", _unread_feedback(rater).earliest("given_at").assignment_id)
    mark = onboarding.pass_mark(found.screening.total, rater.project.screening_pass_share)
    told = {"rater": rater, "project": rater.project, "way": found, "mark": mark}
    told["why_not"] = queue.ineligibility_reason(rater, rater.project)
    return render(request, GATE_TEMPLATES[found.station], told | _gate_context(rater, found.station))


def _unread_feedback(rater: Rater) -> QuerySet[TrainingFeedback]:
    return TrainingFeedback.objects.filter(assignment__rater=rater, read_at=None)


def _gate_context(rater: Rater, station: OnboardingGate) -> dict[str, object]:
    project = rater.project
    if station == OnboardingGate.CONSENT and project.consent_text is not None:
        return {"text": project.consent_text, "html": rendering.to_html(project.consent_text.body)}
    if station == OnboardingGate.GUIDELINE and project.guideline is not None:
        return {"guideline": project.guideline, "html": rendering.to_html(project.guideline.body)}
    return {
        "result": rater.screening_results.order_by("-attempt").first(),
        "attempts_now": max(1, project.screening_attempts - rater.screening_attempt + 1),
        "lessons": _feedback_of(rater),
        "lead_names": ", ".join(str(lead.user) for lead in members.list_leads(project)),
        "completion": completion.find_completion(rater),
        "is_at_work": station == OnboardingGate.WORK and completion.has_submitted(rater),
    }


def _feedback_of(rater: Rater) -> QuerySet[TrainingFeedback]:
    return TrainingFeedback.objects.filter(assignment__rater=rater).order_by("given_at")


@require_POST
def give_consent(request: HttpRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(_own_raters(request), project__slug=slug)
    if request.POST.get("agrees") != "yes":
        messages.warning(request, _("Nothing was agreed to: tick the box first."))
        return redirect("annotate:enter", slug)
    text = get_object_or_404(rater.project.consent_texts, version=_posted_version(request))
    try:
        onboarding.give_consent(rater=rater, text=text, by=_current_user(request), now=timezone.now())
    except onboarding.VersionSuperseded:
        messages.warning(request, _("The text has changed while you were reading. This is the new one."))
    return redirect("annotate:enter", slug)


@require_POST
def confirm_guideline(request: HttpRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(_own_raters(request), project__slug=slug)
    version = get_object_or_404(rater.project.guidelines, version=_posted_version(request))
    try:
        onboarding.acknowledge_guideline(rater=rater, guideline=version, by=_current_user(request), now=timezone.now())
    except onboarding.VersionSuperseded:
        messages.warning(request, _("The guideline has changed while you were reading. This is the new version."))
    return redirect("annotate:enter", slug)


def _posted_version(request: HttpRequest) -> int:
    return integers.parse_integer(request.POST.get("version"), digits=6) or 0


@require_POST
def retry_screening(request: HttpRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(_own_raters(request), project__slug=slug)
    onboarding.begin_next_attempt(rater_id=rater.pk, by=_current_user(request), now=timezone.now())
    return redirect("annotate:enter", slug)


@require_safe
def show_guideline(request: HttpRequest, slug: str) -> HttpResponse:
    """What raters are told, to be looked up at any time; an older version too, for what was rated under it."""
    project = get_object_or_404(roles.visible_projects(_current_user(request)).select_related("guideline"), slug=slug)
    shown = _requested_guideline(request, project)
    told = {
        "project": project,
        "guideline": shown,
        "versions": project.guidelines.order_by("-version"),
        "html": rendering.to_html(shown.body) if shown else "",
    }
    return render(request, "annotate/guideline.html", told)


def _requested_guideline(request: HttpRequest, project: Project) -> Guideline | None:
    asked = request.GET.get("version", "")
    if not asked:
        return project.guideline
    return get_object_or_404(project.guidelines, version=integers.parse_integer(asked, digits=6))


def _own_training_assignment(request: HttpRequest, assignment: int) -> Assignment:
    mine = Assignment.objects.filter(rater__user=_current_user(request), lesson__isnull=False)
    found = mine.select_related("rater", "project__guideline", "trace__problem", "lesson")
    return get_object_or_404(found, pk=assignment)


@require_safe
def show_training_feedback(request: HttpRequest, assignment: int) -> HttpResponse:
    found = _own_training_assignment(request, assignment)
    told = {
        "assignment": found,
        "project": found.project,
        "way": onboarding_progress.load_onboarding_path(found.rater, found.project),
        "told": training_feedback.compare_with_gold(found),
        "so_far": load_gold_accuracy(rater_id=found.rater_id, use=GoldUse.TRAINING),
    }
    return render(request, "annotate/training_feedback.html", told)


@require_POST
def confirm_training_feedback(request: HttpRequest, assignment: int) -> HttpResponse:
    """To the next training trace at once; at the end of the training to what comes then."""
    found = _own_training_assignment(request, assignment)
    onboarding.acknowledge_feedback(
        assignment_id=found.pk, rater_id=found.rater_id, by=_current_user(request), now=timezone.now()
    )
    rater = get_object_or_404(_own_raters(request), pk=found.rater_id)
    goes_on = onboarding_progress.load_onboarding_path(rater, rater.project).station == OnboardingGate.TRAINING
    return redirect("annotate:work" if goes_on else "annotate:enter", rater.project.slug)


@require_safe
def show_completion(request: HttpRequest, slug: str) -> HttpResponse:
    """The end of somebody's work: what they did, and what they take back to the platform that sent them."""
    rater = get_object_or_404(_own_raters(request), project__slug=slug)
    told = {
        "rater": rater,
        "project": rater.project,
        "completion": completion.find_completion(rater),
        "n": completion.count_submitted(rater),
    }
    return render(request, "annotate/completion.html", told)
