"""One submission beside the others of its trace, and requesting a correction from its annotator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard import pair_access, rater_names, render, trace_steps
from dashboard.access import post_view, safe_view
from dashboard.rater_opinions import (
    ExplanationNames,
    RaterOpinions,
    StepOpinion,
    build_step_opinion,
    describe_majority,
    load_explanation_names,
    load_rater_opinions,
)
from dashboard.trace_steps import StepText, StepWithTexts
from formats import integers
from labeling import assignments
from labeling.models import Assignment, CorrectionRequest, Judgment, StepReview, Submission
from labeling.models.assignment import AssignmentState, FinishReason
from labeling.projects import trace_questions
from people import roles
from people.models import Membership
from people.roles import Action


class CorrectionRequestForm(forms.Form):
    note = forms.CharField(max_length=1000)


@dataclass(frozen=True)
class SubmissionStep:
    """A step, with the ratings of this submission and of the others."""

    step: StepWithTexts
    opinion: StepOpinion
    alternatives: Sequence[tuple[StepText, int | None]]
    others: Sequence[tuple[RaterOpinions, StepOpinion]]


def load_submission(assignment: Assignment, actor: Membership, revision: int | None) -> dict[str, Any] | None:
    """Load the given revision, or the one that counts. Return None if it does not exist. A fixed number of queries."""
    submissions = {row.revision: row for row in Submission.objects.filter(assignment=assignment).order_by("revision")}
    submission = submissions.get(revision or assignment.submitted_revision)
    if submission is None:
        return None
    everyone = load_rater_opinions(assignment.trace, actor)
    others = [rater for rater in everyone if rater.assignment.pk != assignment.pk]
    reason = submission.finish_reason or "–"  # imported files may use reasons that are not in our list
    return {
        "assignment": assignment,
        "name": rater_names.get_display_name(assignment.rater, actor),
        "submission": submission,
        "revisions": list(submissions),
        "steps": _load_steps(assignment, submission.revision, others, load_explanation_names(actor.project)),
        "answers": trace_questions.load_named_answers(actor.project, {assignment.pk: submission.revision})[
            assignment.pk
        ],
        "others": others,
        "request": CorrectionRequest.objects.filter(assignment=assignment).order_by("-pk").first(),
        "majority": describe_majority(assignment.trace, everyone),
        "finish_reason": FinishReason(reason).label if reason in FinishReason.values else reason,
    }


def _load_steps(
    assignment: Assignment, revision: int, others: Sequence[RaterOpinions], names: ExplanationNames
) -> list[SubmissionStep]:
    rows = StepReview.objects.filter(assignment=assignment, revision=revision).select_related("step")
    reviews = {review.step.position: review for review in rows}
    judgments = {
        (row.turn.step.position, row.option.position): row
        for row in Judgment.objects.filter(turn__in=reviews.values()).select_related("turn__step", "option")
    }
    return [
        SubmissionStep(
            step=step,
            opinion=build_step_opinion(judgments.get((step.position, 0)), reviews.get(step.position), names),
            alternatives=[
                (text, judgment.rating if judgment else None)
                for text in step.texts[1:]
                for judgment in [judgments.get((step.position, text.option.position))]
            ],
            others=[(rater, rater.by_step[step.position]) for rater in others if step.position in rater.by_step],
        )
        for step in trace_steps.load_steps(assignment.trace)
    ]


@safe_view(Action.READ)
def show_submission(request: HttpRequest, actor: Membership, assignment: int) -> HttpResponse:
    return _render_submission(request, actor, _get_assignment(actor, assignment))


@post_view(Action.ADJUDICATE)
def create_correction_request(request: HttpRequest, actor: Membership, assignment: int) -> HttpResponse:
    row, form = _get_assignment(actor, assignment), CorrectionRequestForm(request.POST)
    if not form.is_valid():
        return _render_submission(
            request, actor, row, status=422, problem=_("Describe what the annotator should check.")
        )
    try:
        assignments.request_correction(assignment_id=row.pk, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except assignments.CorrectionRefused as error:
        return _render_submission(request, actor, row, status=422, problem=str(error))
    messages.success(
        request, _("Correction requested. The annotator sees your note; the submission counts until they correct it.")
    )
    return redirect("dashboard:submission", actor.project.slug, row.pk)


def _get_assignment(actor: Membership, assignment: int) -> Assignment:
    rows = Assignment.objects.select_related(
        "trace__problem", "trace__pairing", "rater__user", "guideline", "set_aside", "exposure__plan__machine"
    )
    row = get_object_or_404(rows, project=actor.project, pk=assignment)
    pair_access.reserve_half_or_403(actor, row.trace)
    return row


def _render_submission(
    request: HttpRequest, actor: Membership, assignment: Assignment, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    page = load_submission(assignment, actor, integers.parse_integer(request.GET.get("revision"), digits=5))
    if page is None:
        raise Http404
    return render.project_page(
        request,
        actor,
        "dashboard/submission.html",
        here="traces",
        status=status,
        problem=problem,
        page=page,
        trace=assignment.trace,
        may_request_correction=roles.membership_may(actor, Action.ADJUDICATE),
        may_set_aside=roles.membership_may(actor, Action.PAUSE) and assignment.state == AssignmentState.SUBMITTED,
    )
