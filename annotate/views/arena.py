"""The arena: write the smallest edit that makes the current PRM believe a wrong step, and check the steps of others."""

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.sessions import UserRequest
from formats import integers
from labeling.models import Rater
from people import roles
from prm import arena
from prm.arena import ArenaRefused, ArenaTask
from prm.models import ArenaCheck, ArenaEdit
from prm.models.arena import ArenaAnswer

_MAX_OWN_EDITS = 20


class EditForm(forms.Form):
    trace = forms.IntegerField(widget=forms.HiddenInput, min_value=1)
    text = forms.CharField(
        label=gettext_lazy("Your version of the last step"),
        widget=forms.Textarea(attrs={"rows": 6}),
        max_length=arena.MAX_CHARACTERS,
        strip=False,
    )
    reason = forms.CharField(
        label=gettext_lazy("Why it is still wrong"), widget=forms.Textarea(attrs={"rows": 2}), max_length=1000
    )


class CheckAnswerForm(forms.Form):
    answer = forms.ChoiceField(choices=ArenaAnswer.choices)


@require_safe
@never_cache
def show_arena(request: UserRequest, slug: str) -> HttpResponse:
    return _render_arena(request, _get_rater(request, slug))


@require_POST
def try_edit(request: UserRequest, slug: str) -> HttpResponse:
    rater, form = _get_rater(request, slug), EditForm(request.POST)
    if not form.is_valid():
        return _render_arena(request, rater, status=422, form=form)
    try:
        edit = arena.try_edit(rater=rater, now=timezone.now(), **form.cleaned_data)
    except ArenaRefused as refused:
        return _render_arena(request, rater, status=422, form=form, problem=str(refused))
    if edit.state == "waiting":
        messages.success(request, _("The PRM believes it. Others will now check the step."))
        return redirect("annotate:arena", slug)
    return _render_arena(request, rater, form=form, edit=edit)


@require_safe
@never_cache
def show_check(request: UserRequest, slug: str) -> HttpResponse:
    return _render_check(request, _get_rater(request, slug))


@require_POST
def serve_check(request: UserRequest, slug: str) -> HttpResponse:
    """Choose the next step to check."""
    rater = _get_rater(request, slug)
    try:
        check = arena.serve_check(rater=rater, now=timezone.now())
    except ArenaRefused as refused:
        return _render_check(request, rater, status=422, problem=str(refused))
    if check is None:
        messages.info(request, _("There is nothing to check now."))
    return redirect("annotate:arena_check", slug)


@require_POST
def answer_check(request: UserRequest, check: int) -> HttpResponse:
    """Store an answer, and serve the next step."""
    checks = ArenaCheck.objects.select_related("rater__project").filter(rater__user=request.user)
    row = get_object_or_404(checks, pk=check, project__in=roles.visible_projects(request.user))
    form = CheckAnswerForm(request.POST)
    if not form.is_valid():
        return _render_check(request, row.rater, status=422, problem=_("Choose an answer."))
    try:
        arena.answer_check(check=row, answer=form.cleaned_data["answer"], now=timezone.now())
        arena.serve_check(rater=row.rater, now=timezone.now())
    except ArenaRefused as refused:
        return _render_check(request, row.rater, status=422, problem=str(refused))
    return redirect("annotate:arena_check", row.rater.project.slug)


def _get_rater(request: UserRequest, slug: str) -> Rater:
    project = get_object_or_404(roles.visible_projects(request.user), slug=slug)
    return get_object_or_404(Rater.objects.select_related("project"), project=project, user=request.user)


def _render_arena(
    request: UserRequest,
    rater: Rater,
    *,
    status: int = 200,
    form: EditForm | None = None,
    problem: str = "",
    edit: ArenaEdit | None = None,
) -> HttpResponse:
    n_skipped = integers.parse_integer(request.GET.get("skip", "0"), digits=4) or 0
    task: ArenaTask | None = None
    try:
        task = arena.find_task(rater=rater, n_skipped=n_skipped)
    except ArenaRefused as refused:
        problem = problem or str(refused)
    if task is not None and (form is None or form["trace"].value() != str(task.step.trace)):
        form = EditForm(initial={"trace": task.step.trace, "text": task.step.text})
    own = ArenaEdit.objects.filter(rater=rater).exclude(state="failed").order_by("-pk")[:_MAX_OWN_EDITS]
    context = {
        "project": rater.project,
        "task": task,
        "form": form,
        "edit": edit,
        "problem": problem,
        "own_edits": own,
        "next_skip": n_skipped + 1,
    }
    return render(request, "annotate/arena.html", context, status=status)


def _render_check(request: UserRequest, rater: Rater, *, status: int = 200, problem: str = "") -> HttpResponse:
    check = arena.find_open_check(rater)
    context = {
        "project": rater.project,
        "check": check,
        "step": arena.load_checked_step(check) if check else None,
        "answers": ArenaAnswer.choices,
        "problem": problem,
        "is_open": arena.is_open(rater.project_id),
        "n_answered": ArenaCheck.objects.filter(rater=rater).exclude(answer="").count(),
    }
    return render(request, "annotate/arena_check.html", context, status=status)
