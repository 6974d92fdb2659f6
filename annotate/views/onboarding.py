"""Onboarding pages: consent, guideline, training, screening. They work without JavaScript."""

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.sessions import UserRequest
from annotate import onboarding_progress, training_feedback
from formats import integers
from labeling import gates, gold_sets, onboarding, queue
from labeling.gates import OnboardingGate
from labeling.models import Assignment, Guideline, Project, Rater, TrainingFeedback
from labeling.models.gold import GoldUse
from labeling.projects import taxonomies
from labeling.projects.guidelines import rendering
from labeling.quality.gold_monitor import load_gold_accuracy
from people import conversations, members, roles

GATE_TEMPLATES = {
    OnboardingGate.CONSENT: "annotate/onboarding/consent.html",
    OnboardingGate.GUIDELINE: "annotate/onboarding/guideline.html",
    OnboardingGate.TRAINING: "annotate/onboarding/training.html",
    OnboardingGate.SCREENING: "annotate/onboarding/screening.html",
    OnboardingGate.RETRY: "annotate/onboarding/retry.html",
    OnboardingGate.FAILED: "annotate/onboarding/failed.html",
    OnboardingGate.WORK: "annotate/onboarding/work.html",
}


def _own_raters(request: UserRequest) -> QuerySet[Rater]:
    """Return the user's raters in projects they still belong to."""
    rows = Rater.objects.active().filter(user=request.user)
    return rows.select_related("project__guideline", "project__consent_text", "read_guideline", "agreed_text")


@require_safe
def show_gate(request: UserRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(_own_raters(request), project__slug=slug)
    path = onboarding_progress.load_onboarding_path(rater, rater.project)
    if path.gate == OnboardingGate.LESSON:
        unread = _feedback_of(rater).filter(read_at=None)
        return redirect("annotate:lesson", unread.earliest("given_at").assignment_id)
    context = {
        "rater": rater,
        "project": rater.project,
        "path": path,
        "pass_mark": gold_sets.pass_mark(path.screening.total, rater.project.screening_pass_share),
        "ineligibility_reason": queue.ineligibility_reason(rater, rater.project),
    }
    return render(request, GATE_TEMPLATES[path.gate], context | _gate_context(rater, path.gate))


def _gate_context(rater: Rater, gate: OnboardingGate) -> dict[str, object]:
    project = rater.project
    if gate == OnboardingGate.CONSENT and project.consent_text is not None:
        return {"text": project.consent_text, "html": rendering.to_html(project.consent_text.body)}
    if gate == OnboardingGate.GUIDELINE and project.guideline is not None:
        return {
            "guideline": project.guideline,
            "html": rendering.to_html(project.guideline.body),
            "taxonomy": taxonomies.parse_taxonomy(project.guideline.taxonomy),
        }
    return {
        "result": rater.screening_results.order_by("-attempt").first(),
        "lessons": _feedback_of(rater).order_by("given_at"),
        "lead_names": ", ".join(str(lead.user) for lead in members.list_leads(project)),
        "completion": onboarding_progress.find_completion(rater),
        "has_worked": gate == OnboardingGate.WORK and onboarding_progress.submitted_work(rater).exists(),
    }


def _feedback_of(rater: Rater) -> QuerySet[TrainingFeedback]:
    return TrainingFeedback.objects.filter(assignment__rater=rater)


@require_POST
def give_consent(request: UserRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(_own_raters(request), project__slug=slug)
    if request.POST.get("agrees") != "yes":
        messages.warning(request, _("Check the box to agree."))
        return redirect("annotate:enter", slug)
    text = get_object_or_404(rater.project.consent_texts, version=_posted_version(request))
    try:
        onboarding.give_consent(rater=rater, text=text, by=request.user, now=timezone.now())
    except onboarding.VersionSuperseded:
        messages.warning(request, _("The consent form has changed. Please read the new version."))
    return redirect("annotate:enter", slug)


@require_POST
def decline_consent(request: UserRequest, slug: str) -> HttpResponse:
    """Leave the project. Crowd workers who never agreed get the code with which the platform ends their study."""
    rater = get_object_or_404(_own_raters(request), project__slug=slug)
    membership = members.get_membership(project=rater.project, user=request.user)
    try:
        members.leave_project(membership=membership, now=timezone.now())
    except members.LastOwner as error:
        messages.error(request, str(error))
        return redirect("annotate:enter", slug)
    if rater.agreed_text is None:
        completion = onboarding_progress.load_completion(rater.project, onboarding_progress.Outcome.NO_CONSENT)
        if completion:
            return render(request, "annotate/declined.html", {"project": rater.project, "completion": completion})
    messages.success(request, _("You have left “%(project)s”.") % {"project": rater.project.name})
    return redirect("annotate:home")


@require_POST
def confirm_guideline(request: UserRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(_own_raters(request), project__slug=slug)
    version = get_object_or_404(rater.project.guidelines, version=_posted_version(request))
    try:
        onboarding.acknowledge_guideline(rater=rater, guideline=version, by=request.user, now=timezone.now())
    except onboarding.VersionSuperseded:
        messages.warning(request, _("The guideline has changed. Please read the new version."))
    return redirect("annotate:enter", slug)


def _posted_version(request: UserRequest) -> int:
    return integers.parse_integer(request.POST.get("version"), digits=6) or 0


@require_POST
def retry_screening(request: UserRequest, slug: str) -> HttpResponse:
    rater = get_object_or_404(_own_raters(request), project__slug=slug)
    onboarding.begin_next_attempt(rater_id=rater.pk, by=request.user, now=timezone.now())
    return redirect("annotate:enter", slug)


@require_safe
def show_guideline(request: UserRequest, slug: str) -> HttpResponse:
    """Show the guideline, or an older version of it."""
    project = get_object_or_404(roles.visible_projects(request.user).select_related("guideline"), slug=slug)
    shown = _requested_guideline(request, project)
    context = {
        "project": project,
        "guideline": shown,
        "versions": project.guidelines.order_by("-version"),
        "html": rendering.to_html(shown.body) if shown else "",
        "taxonomy": taxonomies.parse_taxonomy(shown.taxonomy) if shown else None,
    }
    return render(request, "annotate/guideline.html", context)


def _requested_guideline(request: UserRequest, project: Project) -> Guideline | None:
    version = request.GET.get("version", "")
    if not version:
        return project.guideline
    return get_object_or_404(project.guidelines, version=integers.parse_integer(version, digits=6))


def _own_training_assignment(request: UserRequest, assignment: int) -> Assignment:
    rows = Assignment.objects.filter(rater__user=request.user, lesson__isnull=False)
    rows = rows.select_related("rater", "project__guideline", "trace__problem", "lesson")
    return get_object_or_404(rows, pk=assignment)


@require_safe
def show_training_feedback(request: UserRequest, assignment: int) -> HttpResponse:
    row = _own_training_assignment(request, assignment)
    context = {
        "assignment": row,
        "project": row.project,
        "path": onboarding_progress.load_onboarding_path(row.rater, row.project),
        "comparison": training_feedback.compare_with_gold(row),
        "accuracy": load_gold_accuracy(rater_id=row.rater_id, use=GoldUse.TRAINING),
        "conversations": conversations.list_conversations(row.trace, user_id=request.user.pk),
    }
    return render(request, "annotate/training_feedback.html", context)


@require_safe
def show_retired_answer(request: UserRequest, assignment: int) -> HttpResponse:
    """Show the answer to a hidden gold trace that was retired."""
    rows = Assignment.objects.filter(rater__user=request.user, gold_answer__isnull=False)
    row = get_object_or_404(rows.select_related("rater", "project", "trace__problem"), pk=assignment)
    if training_feedback.page_with_answer(row, timezone.now()) != "annotate:retired_answer":
        raise Http404
    context = {
        "assignment": row,
        "project": row.project,
        "comparison": training_feedback.compare_with_gold(row),
        "conversations": conversations.list_conversations(row.trace, user_id=request.user.pk),
    }
    return render(request, "annotate/retired_answer.html", context)


@require_POST
def confirm_training_feedback(request: UserRequest, assignment: int) -> HttpResponse:
    """Continue with the next training trace, or with the gate after the training."""
    row = _own_training_assignment(request, assignment)
    onboarding.acknowledge_feedback(assignment_id=row.pk, rater_id=row.rater_id, by=request.user, now=timezone.now())
    rater = get_object_or_404(_own_raters(request), pk=row.rater_id)
    is_in_training = gates.next_gate(rater=rater, project=rater.project) == OnboardingGate.TRAINING
    return redirect("annotate:work" if is_in_training else "annotate:enter", rater.project.slug)


@require_safe
def show_completion(request: UserRequest, slug: str) -> HttpResponse:
    """Show the number of submitted traces and the completion code or link for the crowd platform."""
    rater = get_object_or_404(_own_raters(request), project__slug=slug)
    context = {
        "project": rater.project,
        "completion": onboarding_progress.find_completion(rater),
        "n": onboarding_progress.submitted_work(rater).count(),
    }
    return render(request, "annotate/completion.html", context)
