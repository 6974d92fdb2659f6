"""Judges of a project, Monte Carlo raters and PRMs that label among them: add one, edit a copy, try its prompt, run it,
and limit what they may cost."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard.access import post_view, safe_view
from dashboard.judge_forms import CapForm, JudgeForm, PrmRaterForm, RolloutForm, RunForm
from dashboard.render import project_page
from dashboard.time_left import format_time_left
from formats import integers
from jobs.models import Job, JobState
from labeling import step_numbers
from labeling.models import Rater
from labeling.models.rater import RaterKind
from labeling.step_numbers import StepNumbers
from machines import cost_caps, judges, runs
from machines.judges import InvalidJudge
from machines.models import (
    Judge,
    JudgeContractKind,
    JudgeRun,
    JudgeRunState,
    JudgeVote,
    MachineBudget,
    MachinePassport,
)
from machines.runs import RunRefused
from machines.stored_answers import read_stored_answer
from people import roles
from people.models import Membership
from people.roles import Action

_MAX_SHOWN_ANSWERS = 6
_MAX_ANSWER_CHARACTERS = 6_000
_MAX_RUNS = 20
_MAX_MACHINES = 200


@dataclass(frozen=True)
class RunSummary:
    run: JudgeRun
    job: Job | None
    percent: int
    time_left: str

    @property
    def failure(self) -> str:
        """The reason if the job failed, which a person can retry."""
        return self.job.failure if self.job and self.job.state == JobState.FAILED else ""

    @property
    def is_running(self) -> bool:
        return self.run.state == JudgeRunState.OPEN and not self.failure

    @property
    def may_resume(self) -> bool:
        return self.run.state == JudgeRunState.PAUSED or bool(self.failure)


@dataclass(frozen=True)
class ShownAnswer:
    vote: JudgeVote
    text: str
    found: str  # the reading, in words


@safe_view(Action.READ)
def show_judges(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_judges(request, actor)


@post_view(Action.TRAIN)
def add_judge(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Add a judge, or an edited copy. A copy for the same address keeps the sealed key."""
    form = JudgeForm(request.POST)
    return _add(request, actor, form, "form")


@post_view(Action.TRAIN)
def add_rollouts(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Add a Monte Carlo rater, or an edited copy."""
    form = RolloutForm(request.POST, auto_id="id_rollouts_%s")
    return _add(request, actor, form, "rollout_form")


def _add(request: HttpRequest, actor: Membership, form: JudgeForm, name: str) -> HttpResponse:
    original = _find_original(actor, request.POST.get("copy_of", ""))
    if form.is_valid():
        try:
            judge = judges.add_judge(
                project=actor.project, settings=form.make_settings(), by=actor.user, now=timezone.now(), key_of=original
            )
        except InvalidJudge as error:
            form.add_error(error.field, str(error))
        else:
            return _show_added(request, actor, judge)
    return _render_judges(request, actor, status=422, original=original, **{name: form})


@post_view(Action.TRAIN)
def add_prm_rater(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = PrmRaterForm(request.POST, project=actor.project, auto_id="id_prm_%s")
    if form.is_valid():
        try:
            judge = judges.add_prm_rater(**form.cleaned_data, by=actor.user, now=timezone.now())
        except InvalidJudge as error:
            form.add_error(error.field, str(error))
        else:
            return _show_added(request, actor, judge)
    return _render_judges(request, actor, status=422, prm_form=form)


def _show_added(request: HttpRequest, actor: Membership, judge: Judge) -> HttpResponse:
    messages.success(request, _("Judge %(name)s added.") % {"name": judge.label})
    return redirect("dashboard:judge", actor.project.slug, judge.pk)


def _find_original(actor: Membership, text: str) -> Judge | None:
    number = integers.parse_integer(text, digits=9) if text else None
    return Judge.objects.filter(project=actor.project, pk=number).first() if number else None


@post_view(Action.TRAIN)
def set_machine_budget(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = CapForm(request.POST)
    if not form.is_valid():
        return _render_judges(request, actor, status=422, budget_form=form)
    judges.set_budget(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    messages.success(request, _("Cost cap saved."))
    return redirect("dashboard:judges", actor.project.slug)


@safe_view(Action.READ)
def show_judge(request: HttpRequest, actor: Membership, judge: int) -> HttpResponse:
    return _render_judge(request, actor, _get_judge(actor, judge))


@safe_view(Action.TRAIN)
def copy_judge(request: HttpRequest, actor: Membership, judge: int) -> HttpResponse:
    """Show the form with the settings of a judge."""
    row = _get_judge(actor, judge)
    if row.contract == JudgeContractKind.PRM:
        initial = {"prm": row.prm_id, "name": row.name, "threshold": row.threshold}
        form = PrmRaterForm(initial=initial, project=actor.project, auto_id="id_prm_%s")
        return _render_judges(request, actor, prm_form=form, original=row)
    settings = judges.copy_settings(row)
    if settings.rollouts is not None:
        rollouts = RolloutForm(initial=RolloutForm.list_values(settings), auto_id="id_rollouts_%s")
        return _render_judges(request, actor, rollout_form=rollouts, original=row)
    return _render_judges(request, actor, form=JudgeForm(initial=JudgeForm.list_values(settings)), original=row)


@post_view(Action.TRAIN)
def try_judge(request: HttpRequest, actor: Membership, judge: int) -> HttpResponse:
    return _start(request, actor, _get_judge(actor, judge), RunForm(auto_id="id_run_%s"), is_trial=True)


@post_view(Action.TRAIN)
def run_judge(request: HttpRequest, actor: Membership, judge: int) -> HttpResponse:
    row, form = _get_judge(actor, judge), RunForm(request.POST, auto_id="id_run_%s")
    if not form.is_valid():
        return _render_judge(request, actor, row, status=422, run_form=form)
    return _start(request, actor, row, form, **form.cleaned_data)


def _start(request: HttpRequest, actor: Membership, judge: Judge, form: RunForm, **options: Any) -> HttpResponse:
    try:
        runs.start_run(judge=judge, by=actor.user, now=timezone.now(), **options)
    except RunRefused as error:
        return _render_judge(request, actor, judge, status=422, problem=str(error), run_form=form)
    return redirect("dashboard:judge", actor.project.slug, judge.pk)


@post_view(Action.TRAIN)
def cancel_judge_run(request: HttpRequest, actor: Membership, run: int) -> HttpResponse:
    row = _get_run(actor, run)
    runs.cancel_run(run=row, by=actor.user, now=timezone.now())
    messages.success(request, _("Run canceled. Its answers are kept."))
    return redirect("dashboard:judge", actor.project.slug, row.judge_id)


@post_view(Action.TRAIN)
def resume_judge_run(request: HttpRequest, actor: Membership, run: int) -> HttpResponse:
    row = _get_run(actor, run)
    try:
        runs.resume_run(run=row, by=actor.user, now=timezone.now())
    except RunRefused as error:
        return _render_judge(request, actor, _get_judge(actor, row.judge_id), status=422, problem=str(error))
    return redirect("dashboard:judge", actor.project.slug, row.judge_id)


def _get_judge(actor: Membership, pk: int) -> Judge:
    rows = Judge.objects.select_related("project", "rater", "added_by", "prm")
    rows = rows.defer("key", "prm__weights", "prm__trained")
    return get_object_or_404(rows, project=actor.project, pk=pk)


def _get_run(actor: Membership, pk: int) -> JudgeRun:
    return get_object_or_404(JudgeRun.objects.select_related("judge"), judge__project=actor.project, pk=pk)


def _render_judges(
    request: HttpRequest,
    actor: Membership,
    *,
    status: int = 200,
    original: Judge | None = None,
    **shown: forms.Form,
) -> HttpResponse:
    """Show the page. `shown` are the forms that are filled in, by their names in the template."""
    budget = MachineBudget.objects.filter(project=actor.project).first()
    latest: dict[int, JudgeRun] = {}
    for run in judges.list_runs(actor.project):
        latest.setdefault(run.judge_id, run)
    rows = Judge.objects.filter(project=actor.project).defer("key", "prompt").order_by("name", "-version")
    return project_page(
        request,
        actor,
        "dashboard/judges.html",
        here="judges",
        status=status,
        judges=[(judge, latest.get(judge.pk)) for judge in rows],
        machines=_list_machines(actor.project_id),
        budget=budget,
        spent=cost_caps.sum_project(actor.project_id),
        original=original,
        form=shown.get("form") or JudgeForm(),
        rollout_form=shown.get("rollout_form") or RolloutForm(auto_id="id_rollouts_%s"),
        prm_form=shown.get("prm_form") or PrmRaterForm(project=actor.project, auto_id="id_prm_%s"),
        budget_form=shown.get("budget_form")
        or CapForm(initial=vars(budget) if budget else None, auto_id="id_budget_%s"),
        may_train=roles.membership_may(actor, Action.TRAIN),
    )


def _list_machines(project_id: int) -> QuerySet[Rater]:
    rows = Rater.objects.filter(project=project_id, kind=RaterKind.MACHINE)
    passports = MachinePassport.objects.valid().filter(rater=OuterRef("pk"))
    n_licenses = Count("licenses", filter=Q(licenses__ended_at=None))
    return rows.annotate(has_passport=Exists(passports), n_licenses=n_licenses).order_by("machine", "pk")[
        :_MAX_MACHINES
    ]


def _render_judge(
    request: HttpRequest,
    actor: Membership,
    judge: Judge,
    *,
    status: int = 200,
    problem: str = "",
    run_form: RunForm | None = None,
) -> HttpResponse:
    summaries = _summarize_runs(judge, timezone.now())
    return project_page(
        request,
        actor,
        "dashboard/judge.html",
        here="judges",
        status=status,
        judge=judge,
        runs=summaries,
        is_polling=any(each.is_running for each in summaries),
        has_unfinished=any(each.run.is_unfinished for each in summaries),
        answers=_load_answers(judge),
        problem=problem,
        run_form=run_form or RunForm(auto_id="id_run_%s"),
        may_train=roles.membership_may(actor, Action.TRAIN),
    )


def _summarize_runs(judge: Judge, now: dt.datetime) -> list[RunSummary]:
    rows = list(judge.runs.select_related("asked_by").order_by("-pk")[:_MAX_RUNS])
    jobs = runs.load_jobs(rows)
    return [_summarize_run(run, jobs.get(run.job or 0), now) for run in rows]


def _summarize_run(run: JudgeRun, job: Job | None, now: dt.datetime) -> RunSummary:
    seconds = job.remaining_seconds(now) if job and run.state == JudgeRunState.OPEN else None
    percent = int(100 * run.n_judged / run.n_traces) if run.n_traces else 0
    return RunSummary(run, job, min(percent, 100), "" if seconds is None else format_time_left(seconds))


def _load_answers(judge: Judge) -> Sequence[ShownAnswer]:
    """Return the newest answers, so that a person can read what the judge says."""
    votes = list(judge.votes.exclude(answer=None).order_by("-pk")[:_MAX_SHOWN_ANSWERS])
    numbers = step_numbers.load_step_numbers(trace_ids=[vote.trace_id for vote in votes])
    return [
        ShownAnswer(vote, read_stored_answer(vote).text[:_MAX_ANSWER_CHARACTERS], _describe(vote, numbers))
        for vote in votes
    ]


def _describe(vote: JudgeVote, numbers: StepNumbers) -> str:
    if vote.state != "parsed":
        return str(vote.get_state_display())
    if vote.is_right is not None:
        number = numbers.at(vote.trace_id, vote.prefix - 1) if vote.prefix else 0
        answer = _("right answer") if vote.is_right else _("wrong answer")
        return _("%(answer)s after step %(n)d") % {"answer": answer, "n": number}
    if vote.first_error is None:
        return _("no error")
    return _("first error: step %(n)d") % {"n": numbers.at(vote.trace_id, vote.first_error)}
