"""A live project with an open policy, and raters who work through it without a browser."""

import datetime as dt
from typing import Any

from labeling.models import Project, Rater
from labeling.models.assignment import FinishReason
from live import option_requests, policies, sessions
from live.models import LiveOption, LivePolicy, LiveSession, LiveTurn
from live.policies import PolicySettings
from live.sessions import LiveRating, TurnNotes
from tests import factories

NOW = factories.NOW


def make_live_project(n_problems: int = 2, **fields: Any) -> Project:
    project = factories.make_project(protocol="live", **fields)
    for number in range(n_problems):
        factories.make_problem(project, f"Add the first {number + 2} numbers.", reference_answer=str(number))
    return project


def make_settings(address: str = "http://127.0.0.1:1/v1", **fields: Any) -> PolicySettings:
    values: dict[str, Any] = {"address": address, "model": "scripted", "n_options": 3, "timeout": 5.0}
    return PolicySettings(**(values | fields))


def make_policy(project: Project, address: str = "http://127.0.0.1:1/v1", **fields: Any) -> LivePolicy:
    """Add a policy and open it."""
    policy = policies.add_policy(project=project, settings=make_settings(address, **fields), by=None, now=NOW)
    policies.mark_tried(policy=policy, now=NOW)
    policies.open_policy(policy=policy, by=None, now=NOW)
    policy.refresh_from_db()
    return policy


def begin(rater: Rater, now: dt.datetime = NOW) -> LiveSession:
    return sessions.begin_session(rater=rater, project=rater.project, by=None, now=now)


def answer_all(session: LiveSession, now: dt.datetime = NOW) -> None:
    """Ask the server for all that the session waits for, as the threads of the web server do."""
    for request in option_requests.list_unasked(session=session, now=now):
        option_requests.answer_request(request_id=request, now=now, clock=lambda: now)


def show(session: LiveSession, now: dt.datetime = NOW) -> LiveTurn:
    answer_all(session, now)
    return sessions.show_options(session=session, now=now)


def list_options(turn: LiveTurn) -> list[LiveOption]:
    return list(LiveOption.objects.filter(request=turn.request).order_by("index"))


def note_ratings(turn: LiveTurn, rating: int = 1, **others: Any) -> TurnNotes:
    """Rate every option of the turn alike."""
    ratings = [LiveRating(option.index, rating) for option in list_options(turn) if option.same_as is None]
    return TurnNotes(turn.position, ratings, active_ms=1000, **others)


def choose(session: LiveSession, turn: LiveTurn, index: int = 0, now: dt.datetime = NOW) -> LiveSession:
    notes = note_ratings(turn)
    return sessions.choose_option(session=session, notes=notes, index=index, by=None, now=now)


def solve(session: LiveSession, now: dt.datetime = NOW) -> LiveSession:
    """Choose the first option until the session ends."""
    for _ in range(20):
        session.refresh_from_db()
        if session.state == "ended":
            return session
        choose(session, show(session, now), now=now)
    raise AssertionError("the session does not end")


def give_up(session: LiveSession, now: dt.datetime = NOW) -> LiveSession:
    return sessions.end_session(
        session=session, notes=None, reason=FinishReason.GIVE_UP, note="Too long.", by=None, now=now
    )
