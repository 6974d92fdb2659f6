"""Trials: a lead sees what raters would see of one problem before the policy is opened."""

from dataclasses import dataclass

from labeling.models import Problem
from live import option_requests, policies, sessions
from live.models import LiveOption, LivePolicy, LiveSession, OptionRequest, OptionRequestState
from live.option_requests import Clock


@dataclass(frozen=True)
class TrialStep:
    """One request of a trial with the prompt that was sent, and its options."""

    request: OptionRequest
    prompt: str
    options: list[LiveOption]


def try_policy(*, policy: LivePolicy, problem: Problem, clock: Clock) -> LiveSession:
    """Ask for the first options of a problem, and then for those after the first usable one. The policy is tried if
    both have usable options, or if an option ends the solution."""
    session = sessions.begin_trial(policy=policy, problem=problem, now=clock())
    first = sessions.load_turn(session).request
    option_requests.answer_request(request_id=first.pk, now=clock(), clock=clock)
    usable = [option for option in LiveOption.objects.filter(request=first).order_by("index") if option.is_whole]
    following = next((option for option in usable if not option.ends_solution), None)
    is_usable = bool(usable)
    if following is not None:
        request = option_requests.ensure_request(session=session, path=[following.pk], is_prefetched=False, now=clock())
        option_requests.answer_request(request_id=request.pk, now=clock(), clock=clock)
        request.refresh_from_db()
        is_usable = request.state == OptionRequestState.ANSWERED
    if is_usable:
        policies.mark_tried(policy=policy, now=clock())
    return session


def load_trial(session: LiveSession) -> list[TrialStep]:
    requests = OptionRequest.objects.filter(session=session).order_by("position", "pk")
    return [
        TrialStep(
            request,
            option_requests.render_path(session, request.path),
            list(LiveOption.objects.filter(request=request).order_by("index")),
        )
        for request in requests
    ]
