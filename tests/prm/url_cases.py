"""The URLs of PRMs and generations for `tests.test_permissions`: method, expected answers by persona, arguments."""

from collections.abc import Callable

from labeling.models import Rater
from prm import generations, registry
from prm.registry import PRMIdentity
from tests import factories
from tests.people.personas import Personas
from tests.prm import arena_project

Arguments = Callable[[Personas], dict[str, object]]


def answers_for_readers(status: int) -> dict[str, int]:
    """Expect access for everyone who may read the project; annotators get 403."""
    return {**answers_for_trainers(status), "reviewer": status, "viewer": status}


def answers_for_trainers(status: int) -> dict[str, int]:
    inside = {"annotator": 403, "viewer": 403, "reviewer": 403, "engineer": status, "lead": status, "owner": status}
    return {"visitor": 302, "stranger": 404, "neighbour": 404, **inside}


def project_args(cast: Personas) -> dict[str, object]:
    return {"slug": cast.project.slug}


def generation_args(cast: Personas) -> dict[str, object]:
    generations.start_generation(project=cast.project, by=cast.lead, now=factories.NOW)
    return project_args(cast)


def generation_number_args(cast: Personas) -> dict[str, object]:
    return {**generation_args(cast), "number": 1}


def prm_args(cast: Personas) -> dict[str, object]:
    identity = PRMIdentity("pushed", "of a cluster")
    prm = registry.register_prm(project=cast.project, identity=identity, by=cast.lead, now=factories.NOW)
    return {"slug": cast.project.slug, "version": prm.version}


def arena_args(cast: Personas) -> dict[str, object]:
    arena_project.open_arena(cast.project)
    return project_args(cast)


def arena_check_args(cast: Personas) -> dict[str, object]:
    arena_project.open_arena(cast.project)
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    return {"check": arena_project.make_control(rater).pk}


def answers_for_raters(status: int) -> dict[str, int]:
    inside = dict.fromkeys(("viewer", "engineer", "reviewer", "lead", "owner"), 404)
    return {"visitor": 302, "stranger": 404, "neighbour": 404, "annotator": status, **inside}


def answers_without_token(status: int) -> dict[str, int]:
    """The API accepts tokens and no session."""
    personas = ("visitor", "stranger", "neighbour", "annotator", "viewer", "engineer", "reviewer", "lead", "owner")
    return dict.fromkeys(personas, status)


PRM_URL_CASES: dict[str, tuple[str, dict[str, int], Arguments]] = {
    "dashboard:generations": ("get", answers_for_readers(200), project_args),
    "dashboard:generation_progress": ("get", answers_for_readers(200), generation_args),
    "dashboard:start_generation": ("post", answers_for_trainers(302), project_args),
    "dashboard:stop_generation": ("post", answers_for_trainers(302), generation_number_args),
    "dashboard:retry_generation": ("post", answers_for_trainers(302), generation_number_args),
    "dashboard:register_prm": ("post", answers_for_trainers(422), project_args),
    "dashboard:change_selection_rules": ("post", answers_for_trainers(422), project_args),
    "dashboard:roll_back_prm": ("post", answers_for_trainers(422), project_args),
    "dashboard:score_stale_traces": ("post", answers_for_trainers(422), project_args),
    "dashboard:prm": ("get", answers_for_readers(200), prm_args),
    "api:score_traces": ("post", answers_without_token(401), lambda cast: {}),
    "api:rank_candidates": ("post", answers_without_token(401), lambda cast: {}),
    "api:traces": ("get", answers_without_token(401), project_args),
    "api:push_scores": ("post", answers_without_token(401), project_args),
    "dashboard:arena": ("get", answers_for_readers(200), project_args),
    "dashboard:open_arena": ("post", answers_for_trainers(422), project_args),
    "dashboard:close_arena": ("post", answers_for_trainers(302), project_args),
    "dashboard:hard_negatives": ("get", answers_for_readers(200) | {"viewer": 403, "reviewer": 403}, project_args),
    "annotate:arena": ("get", answers_for_raters(200), arena_args),
    "annotate:arena_try": ("post", answers_for_raters(422), arena_args),
    "annotate:arena_check": ("get", answers_for_raters(200), arena_args),
    "annotate:serve_arena_check": ("post", answers_for_raters(302), arena_args),
    "annotate:answer_arena_check": ("post", answers_for_raters(422), arena_check_args),
    "api:hard_negatives": ("get", answers_without_token(401), project_args),
    "dashboard:make_prm_current": ("post", answers_for_trainers(200), prm_args),
    "dashboard:evaluate_prm_on_file": ("post", answers_for_trainers(422), prm_args),
}
