"""The addresses of PRMs and generations, for the walk of `tests.test_permissions`: how each is asked, and by whom."""

from collections.abc import Callable

from prm import generations, registry
from prm.registry import Identity
from tests import factories
from tests.people.cast import Cast

Arguments = Callable[[Cast], dict[str, object]]


def readers(status: int) -> dict[str, int]:
    """Whoever reads the project; annotators are told that they do not."""
    return {**trainers(status), "reviewer": status}


def trainers(status: int) -> dict[str, int]:
    inside = {"annotator": 403, "reviewer": 403, "engineer": status, "lead": status, "owner": status}
    return {"visitor": 302, "stranger": 404, "neighbour": 404, **inside}


def in_project(cast: Cast) -> dict[str, object]:
    return {"slug": cast.project.slug}


def with_generation(cast: Cast) -> dict[str, object]:
    generations.start(project=cast.project, by=cast.lead, now=factories.NOW)
    return in_project(cast)


def with_its_number(cast: Cast) -> dict[str, object]:
    return {**with_generation(cast), "number": 1}


def with_prm(cast: Cast) -> dict[str, object]:
    identity = Identity("pushed", "of a cluster")
    prm = registry.register(project=cast.project, identity=identity, by=cast.lead, now=factories.NOW)
    return {"slug": cast.project.slug, "version": prm.version}


def nobody(status: int) -> dict[str, int]:
    """A page's session counts for nothing where programs show a token."""
    everybody = ("visitor", "stranger", "neighbour", "annotator", "engineer", "reviewer", "lead", "owner")
    return dict.fromkeys(everybody, status)


DOORS: dict[str, tuple[str, dict[str, int], Arguments]] = {
    "dashboard:models": ("get", readers(200), in_project),
    "dashboard:generation_progress": ("get", readers(200), with_generation),
    "dashboard:start_generation": ("post", trainers(302), in_project),
    "dashboard:stop_generation": ("post", trainers(302), with_its_number),
    "dashboard:retry_generation": ("post", trainers(302), with_its_number),
    "dashboard:register_prm": ("post", trainers(422), in_project),
    "dashboard:change_rules": ("post", trainers(422), in_project),
    "dashboard:roll_back": ("post", trainers(422), in_project),
    "dashboard:score_stale": ("post", trainers(422), in_project),
    "dashboard:model": ("get", readers(200), with_prm),
    "api:score_traces": ("post", nobody(401), lambda cast: {}),
    "api:rank_candidates": ("post", nobody(401), lambda cast: {}),
    "api:push_scores": ("post", nobody(401), in_project),
    "dashboard:make_current": ("post", trainers(302), with_prm),
}
