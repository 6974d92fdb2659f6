"""Live labeling of a project: the policies that generate steps, a trial of each, and the figures."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard.access import post_view, safe_view
from dashboard.live_forms import LivePolicyForm, ProblemsForm, TrialForm
from dashboard.render import project_page
from formats import integers
from labeling.models.project import Protocol
from labeling.traces import problems
from labeling.traces.problems import InvalidProblems
from live import figures, policies, trials
from live.models import LivePolicy, LiveSession
from live.policies import InvalidPolicy, PolicyNotReady
from people import roles
from people.models import Membership
from people.roles import Action


@safe_view(Action.READ)
def show_live_policies(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_policies(request, actor)


@post_view(Action.TRAIN)
def add_live_policy(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Add a policy, or an edited copy. A copy for the same address keeps the sealed key."""
    form, original = LivePolicyForm(request.POST), _find_original(actor, request.POST.get("copy_of", ""))
    if form.is_valid():
        try:
            policy = policies.add_policy(
                project=actor.project, settings=form.make_settings(), by=actor.user, now=timezone.now(), key_of=original
            )
        except InvalidPolicy as error:
            form.add_error(error.field, str(error))
        else:
            messages.success(request, _("Policy %(n)d added. Try it before you open it.") % {"n": policy.version})
            return redirect("dashboard:live", actor.project.slug)
    return _render_policies(request, actor, status=422, form=form, original=original)


@safe_view(Action.TRAIN)
def copy_live_policy(request: HttpRequest, actor: Membership, policy: int) -> HttpResponse:
    row = _get_policy(actor, policy)
    return _render_policies(request, actor, form=LivePolicyForm(initial=LivePolicyForm.list_values(row)), original=row)


@post_view(Action.TRAIN)
def try_live_policy(request: HttpRequest, actor: Membership, policy: int) -> HttpResponse:
    row, form = _get_policy(actor, policy), TrialForm(request.POST, project=actor.project)
    if not form.is_valid():
        return _render_policies(request, actor, status=422, trial_form=form)
    session = trials.try_policy(policy=row, problem=form.cleaned_data["problem"], clock=timezone.now)
    return redirect("dashboard:live_trial", actor.project.slug, session.pk)


@safe_view(Action.READ)
def show_live_trial(request: HttpRequest, actor: Membership, session: int) -> HttpResponse:
    rows = LiveSession.objects.select_related("policy", "problem")
    row = get_object_or_404(rows, project=actor.project, rater=None, pk=session)
    return project_page(
        request,
        actor,
        "dashboard/live_trial.html",
        here="live",
        session=row,
        policy=row.policy,
        steps=trials.load_trial(row),
        may_train=roles.membership_may(actor, Action.TRAIN),
    )


@post_view(Action.TRAIN)
def open_live_policy(request: HttpRequest, actor: Membership, policy: int) -> HttpResponse:
    row = _get_policy(actor, policy)
    try:
        policies.open_policy(policy=row, by=actor.user, now=timezone.now())
    except PolicyNotReady as error:
        messages.warning(request, str(error))
    else:
        messages.success(request, _("Raters can now begin problems with policy %(n)d.") % {"n": row.version})
    return redirect("dashboard:live", actor.project.slug)


@post_view(Action.TRAIN)
def close_live_policy(request: HttpRequest, actor: Membership, policy: int) -> HttpResponse:
    row = _get_policy(actor, policy)
    policies.close_policy(policy=row, by=actor.user, now=timezone.now())
    messages.success(request, _("Closed. Raters can finish the problems that they began."))
    return redirect("dashboard:live", actor.project.slug)


@post_view(Action.TRAIN)
def add_live_problems(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = ProblemsForm(request.POST, auto_id="id_problems_%s")
    if form.is_valid():
        try:
            records = problems.parse_problems(form.cleaned_data["problems"])
        except InvalidProblems as error:
            form.add_error("problems", str(error))
        else:
            n = problems.add_problems(
                project=actor.project, records=records, name=_("typed problems"), by=actor.user, now=timezone.now()
            )
            messages.success(request, _("%(n)d new problems added.") % {"n": n})
            return redirect("dashboard:live", actor.project.slug)
    return _render_policies(request, actor, status=422, problems_form=form)


def _find_original(actor: Membership, text: str) -> LivePolicy | None:
    number = integers.parse_integer(text, digits=9) if text else None
    return LivePolicy.objects.filter(project=actor.project, pk=number).first() if number else None


def _get_policy(actor: Membership, pk: int) -> LivePolicy:
    return get_object_or_404(LivePolicy.objects.select_related("project"), project=actor.project, pk=pk)


def _render_policies(
    request: HttpRequest,
    actor: Membership,
    *,
    status: int = 200,
    form: LivePolicyForm | None = None,
    original: LivePolicy | None = None,
    trial_form: TrialForm | None = None,
    problems_form: ProblemsForm | None = None,
) -> HttpResponse:
    project = actor.project
    found = figures.load_figures(project)
    return project_page(
        request,
        actor,
        "dashboard/live.html",
        here="live",
        status=status,
        is_live=project.protocol == Protocol.LIVE,
        policies=LivePolicy.objects.filter(project=project).defer("key", "template").order_by("-version")[:50],
        figures=found,
        trial_form=trial_form or TrialForm(project=project),
        form=form or LivePolicyForm(),
        original=original,
        problems_form=problems_form or ProblemsForm(auto_id="id_problems_%s"),
        may_train=roles.membership_may(actor, Action.TRAIN),
    )
