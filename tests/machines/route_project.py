"""Two machines with passports, and a route of both on evidence that is not computed."""

from typing import Any

from labeling.models import Project, Rater
from machines import routes
from machines.models import ConsensusRoute
from tests import factories
from tests.machines import machine_labels


def make_machines(project: Project) -> tuple[Rater, Rater]:
    """Create two machines with valid passports."""
    machines = [factories.make_machine_rater(project, name) for name in ("judge: critic", "Monte Carlo: m")]
    for machine in machines:
        machine_labels.make_passport(machine)
    return machines[0], machines[1]


def make_strata(bound: float) -> list[dict[str, Any]]:
    return [
        {
            "stratum": {"domain": "", "shortest": 1, "longest": 4, "says_error": says_error},
            "n_judged": 500,
            "n_people": 300,
            "n_gold": 100,
            "agreement": 0.97,
            "shared": 0.0,
            "bounds": [
                {"promised": each, "bound": bound, "keeps": bound >= each, "reason": None}
                for each in (0.8, 0.85, 0.9, 0.95)
            ],
        }
        for says_error in (False, True)
    ]


def open_route(
    project: Project, machines: tuple[Rater, Rater] | None = None, *, bound: float = 0.93, **options: Any
) -> ConsensusRoute:
    first, second = machines or make_machines(project)
    values = {"promised": 0.9, "retest_share": 0.25, "puts_disagreement_first": True, **options}
    return routes.open_route(
        first=first, second=second, strata=make_strata(bound), by=None, now=factories.NOW, **values
    )
