"""The URLs of live labeling for `tests.test_permissions`: method, expected answers by persona, arguments."""

from labeling.models import Problem, Project, Rater
from live import policies, sessions, trials
from live.models import LivePolicy, LiveSession
from tests import factories
from tests.live import live_project
from tests.people.personas import MEMBERS, OUTSIDERS, Personas
from tests.prm.url_cases import (
    Arguments,
    answers_for_readers,
    answers_for_trainers,
    answers_without_token,
    project_args,
)

NOW = factories.NOW


def answers_for_rater(status: int) -> dict[str, int]:
    """Expect access only for the rater, not even for the owner."""
    return {**dict.fromkeys((*OUTSIDERS, *MEMBERS), 404), "visitor": 302, "annotator": status}


def live_args(cast: Personas) -> dict[str, object]:
    Project.objects.filter(pk=cast.project.pk).update(protocol="live")
    cast.project.refresh_from_db()
    return project_args(cast)


def make_policy(cast: Personas) -> LivePolicy:
    live_args(cast)
    factories.make_problem(cast.project)
    settings = live_project.make_settings()
    return policies.add_policy(project=cast.project, settings=settings, by=None, now=NOW)


def policy_args(cast: Personas) -> dict[str, object]:
    return {"slug": cast.project.slug, "policy": make_policy(cast).pk}


def trial_args(cast: Personas) -> dict[str, object]:
    policy = make_policy(cast)
    session = sessions.begin_trial(policy=policy, problem=Problem.objects.latest("pk"), now=NOW)
    assert trials.load_trial(session)
    return {"slug": cast.project.slug, "session": session.pk}


def session_args(cast: Personas) -> dict[str, object]:
    policy = make_policy(cast)
    policies.mark_tried(policy=policy, now=NOW)
    policies.open_policy(policy=policy, by=None, now=NOW)
    Problem.objects.update(is_reserve=False)
    rater = Rater.objects.select_related("project").get(project=cast.project, user=cast.annotator)
    return {"session": live_project.begin(rater).pk}


def aside_args(cast: Personas) -> dict[str, object]:
    arguments = session_args(cast)
    sessions.put_aside(session=LiveSession.objects.latest("pk"), notes=None, now=NOW)
    return arguments


LIVE_URL_CASES: dict[str, tuple[str, dict[str, int], Arguments]] = {
    "dashboard:live": ("get", answers_for_readers(200), live_args),
    "dashboard:add_live_policy": ("post", answers_for_trainers(422), live_args),
    "dashboard:add_live_problems": ("post", answers_for_trainers(422), live_args),
    "dashboard:copy_live_policy": ("get", answers_for_trainers(200), policy_args),
    "dashboard:try_live_policy": ("post", answers_for_trainers(422), policy_args),
    "dashboard:open_live_policy": ("post", answers_for_trainers(302), policy_args),
    "dashboard:close_live_policy": ("post", answers_for_trainers(302), policy_args),
    "dashboard:live_trial": ("get", answers_for_readers(200), trial_args),
    "api:live_labeling": ("get", answers_without_token(401), project_args),
    "annotate:live": ("get", answers_for_rater(200), live_args),
    "annotate:begin_live": ("post", answers_for_rater(302), live_args),
    "annotate:live_turn": ("get", answers_for_rater(200), session_args),
    "annotate:record_live": ("post", answers_for_rater(422), session_args),
    "annotate:choose_live": ("post", answers_for_rater(422), session_args),
    "annotate:write_live": ("post", answers_for_rater(422), session_args),
    "annotate:end_live": ("post", answers_for_rater(422), session_args),
    "annotate:put_live_aside": ("post", answers_for_rater(422), session_args),
    "annotate:resume_live": ("post", answers_for_rater(302), aside_args),
}
