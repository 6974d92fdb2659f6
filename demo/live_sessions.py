"""Open the demo of live labeling with the example program, and let simulated raters solve some of its problems."""

import datetime as dt
import random

from accounts.models import User
from demo import live_problems, rate_traces, simulated_raters
from demo.generated_content import seeded_random
from labeling.models import Problem, Project
from labeling.traces import problems
from live import example_program, option_requests, policies, sessions, trials
from live.models import LiveMode, LiveOption, LivePolicy, LiveSession, LiveSessionState, LiveTurn
from live.policies import PolicySettings
from live.sessions import LiveRating, TurnNotes

SESSIONS = 2  # by simulated raters; the other problems are left to people
_OPTIONS = 4
_STEP_TIME = dt.timedelta(seconds=40)


def open_project(*, project: Project, seed: str, by: User, now: dt.datetime) -> None:
    """Add the problems and a policy, try it, and open it, unless that was done before."""
    records = live_problems.generate_problems(seed=seed)
    problems.add_problems(project=project, records=records, name="shopping problems", by=by, now=now)
    if LivePolicy.objects.filter(project=project).exists():
        return
    settings = PolicySettings(mode=LiveMode.EXAMPLE, n_options=_OPTIONS)
    policy = policies.add_policy(project=project, settings=settings, by=by, now=now)
    problem = Problem.objects.filter(project=project, is_reserve=False).earliest("pk")
    trials.try_policy(policy=policy, problem=problem, clock=lambda: now)
    policy.refresh_from_db()
    policies.open_policy(policy=policy, by=by, now=now)


def solve_problems(*, project: Project, now: dt.datetime) -> None:
    """Let simulated raters solve the first problems, unless they have."""
    done = LiveSession.objects.filter(project=project, rater__isnull=False, state=LiveSessionState.ENDED).count()
    for number in range(done, SESSIONS):
        simulated = simulated_raters.SIMULATED_RATERS[number]
        rater = rate_traces.ensure_rater(project, simulated, now)
        rate_traces.pass_onboarding(project, simulated, rater, {}, now)
        session = sessions.begin_session(rater=rater, project=project, by=rater.user, now=now)
        _solve(session, seeded_random("demo", project.slug, number), now + dt.timedelta(hours=number))


def _solve(session: LiveSession, dice: random.Random, now: dt.datetime) -> None:
    while session.state == LiveSessionState.OPEN:
        _answer_requests(session, now)
        turn = sessions.show_options(session=session, now=now)
        session = _choose(session, turn, dice, now)
        now += _STEP_TIME


def _answer_requests(session: LiveSession, now: dt.datetime) -> None:
    for request in option_requests.list_unasked(session=session, now=now):
        option_requests.answer_request(request_id=request, now=now, clock=lambda: now)


def _choose(session: LiveSession, turn: LiveTurn, dice: random.Random, now: dt.datetime) -> LiveSession:
    """Rate the options by their truth, and choose one of the positive ones."""
    truths = example_program.rate_steps(option_requests.render_path(session, turn.request.path))
    options = LiveOption.objects.filter(request=turn.request_id, same_as=None).order_by("index")
    ratings = [LiveRating(option.index, truths[option.text]) for option in options if option.is_whole]
    notes = TurnNotes(turn.position, ratings, active_ms=dice.randint(15_000, 60_000))
    index = dice.choice([each.index for each in ratings if each.rating == 1])
    by = session.rater.user if session.rater else None
    return sessions.choose_option(session=session, notes=notes, index=index, by=by, now=now)
