"""The URLs of judges for `tests.test_permissions`: method, expected answers by persona, arguments."""

from machines.license_strata import Stratum
from machines.licenses import grant_license
from machines.models import JudgeRun
from tests import factories
from tests.dashboard.url_cases import answers_for_managers
from tests.labeling import suggested_project
from tests.machines import judged_project, machine_labels, route_project
from tests.people.personas import Personas
from tests.prm.url_cases import (
    Arguments,
    answers_for_readers,
    answers_for_trainers,
    answers_without_token,
    project_args,
)


def judge_args(cast: Personas) -> dict[str, object]:
    return {"slug": cast.project.slug, "judge": judged_project.make_judge(cast.project).pk}


def runnable_args(cast: Personas) -> dict[str, object]:
    judged_project.add_traces(cast.project, 1)
    return judge_args(cast)


def make_run(cast: Personas) -> JudgeRun:
    judged_project.add_traces(cast.project, 1)
    return judged_project.start_run(judged_project.make_judge(cast.project))


def run_args(cast: Personas) -> dict[str, object]:
    return {"slug": cast.project.slug, "run": make_run(cast).pk}


def paused_run_args(cast: Personas) -> dict[str, object]:
    run = make_run(cast)
    judged_project.pause_run(run)
    return {"slug": cast.project.slug, "run": run.pk}


def machine_args(cast: Personas) -> dict[str, object]:
    return {"slug": cast.project.slug, "rater": factories.make_machine_rater(cast.project).pk}


def passport_args(cast: Personas) -> dict[str, object]:
    machine = factories.make_machine_rater(cast.project)
    machine_labels.make_passport(machine)
    return {"slug": cast.project.slug, "rater": machine.pk}


def old_passport_args(cast: Personas) -> dict[str, object]:
    machine = factories.make_machine_rater(cast.project)
    passport = machine_labels.make_passport(machine)
    machine_labels.make_passport(machine)
    return {"slug": cast.project.slug, "rater": machine.pk, "passport": passport.pk}


def route_args(cast: Personas) -> dict[str, object]:
    return {"slug": cast.project.slug, "route": route_project.open_route(cast.project).pk}


def license_args(cast: Personas) -> dict[str, object]:
    row = grant_license(
        passport=machine_labels.make_passport(factories.make_machine_rater(cast.project)),
        stratum=Stratum("", 1, 4, says_error=False),
        may_settle=True,
        by=None,
        now=factories.NOW,
    )
    return {"slug": cast.project.slug, "license": row.pk}


def suggestions_args(cast: Personas) -> dict[str, object]:
    suggested_project.start(cast.project, reveal=0.2, suggest=0.2)
    return {"slug": cast.project.slug}


JUDGE_URL_CASES: dict[str, tuple[str, dict[str, int], Arguments]] = {
    "dashboard:judges": ("get", answers_for_readers(200), project_args),
    "dashboard:add_judge": ("post", answers_for_trainers(422), project_args),
    "dashboard:machine_consensus": ("get", answers_for_readers(200), project_args),
    "dashboard:add_rollouts": ("post", answers_for_trainers(422), project_args),
    "dashboard:add_prm_rater": ("post", answers_for_trainers(422), project_args),
    "dashboard:set_machine_budget": ("post", answers_for_trainers(302), project_args),
    "dashboard:judge": ("get", answers_for_readers(200), judge_args),
    "dashboard:copy_judge": ("get", answers_for_trainers(200), judge_args),
    "dashboard:try_judge": ("post", answers_for_trainers(302), runnable_args),
    "dashboard:run_judge": ("post", answers_for_trainers(422), runnable_args),
    "dashboard:cancel_judge_run": ("post", answers_for_trainers(302), run_args),
    "dashboard:resume_judge_run": ("post", answers_for_trainers(302), paused_run_args),
    "api:judges": ("get", answers_without_token(401), project_args),
    "api:judge_runs": ("post", answers_without_token(401), judge_args),
    "api:judge_run": ("get", answers_without_token(401), run_args),
    "api:resume_judge_run": ("post", answers_without_token(401), run_args),
    "api:machine_consensus": ("get", answers_without_token(401), project_args),
    "dashboard:open_consensus_route": ("post", answers_for_managers(422), project_args),
    "dashboard:close_consensus_route": ("post", answers_for_managers(302), route_args),
    "api:consensus_routes": ("get", answers_without_token(401), project_args),
    "api:close_consensus_route": ("post", answers_without_token(401), route_args),
    "dashboard:canaries": ("get", answers_for_readers(200), project_args),
    "dashboard:freeze_canaries": ("post", answers_for_trainers(422), project_args),
    "dashboard:score_canaries": ("post", answers_for_trainers(422), project_args),
    "api:canaries": ("get", answers_without_token(401), project_args),
    "api:canary_scores": ("post", answers_without_token(401), project_args),
    "dashboard:machine": ("get", answers_for_readers(200), passport_args),
    "dashboard:machine_passport": ("get", answers_for_readers(200), old_passport_args),
    "dashboard:issue_passport": ("post", answers_for_trainers(422), machine_args),
    "dashboard:grant_license": ("post", answers_for_managers(422), passport_args),
    "dashboard:revoke_license": ("post", answers_for_managers(302), license_args),
    "dashboard:monitors": ("get", answers_for_readers(200), project_args),
    "dashboard:start_conditions": ("post", answers_for_managers(422), project_args),
    "dashboard:stop_conditions": ("post", answers_for_managers(302), project_args),
    "api:monitors": ("get", answers_without_token(401), project_args),
    "dashboard:suggestions": ("get", answers_for_readers(200), suggestions_args),
    "dashboard:start_suggestions": ("post", answers_for_managers(422), project_args),
    "dashboard:stop_suggestions": ("post", answers_for_managers(302), suggestions_args),
    "api:taxonomy": ("get", answers_without_token(401), project_args),
    "api:guideline": ("get", answers_without_token(401), project_args),
    "api:suggestions": ("get", answers_without_token(401), suggestions_args),
    "api:machines": ("get", answers_without_token(401), project_args),
    "api:passport": ("get", answers_without_token(401), passport_args),
    "api:passports": ("get", answers_without_token(401), passport_args),
    "api:licenses": ("get", answers_without_token(401), passport_args),
    "api:revoke_license": ("post", answers_without_token(401), license_args),
    "api:assisted_results": ("get", answers_without_token(401), project_args),
    "api:machine_budget": ("put", answers_without_token(401), project_args),
}
