"""The URLs of judges for `tests.test_permissions`: method, expected answers by persona, arguments."""

from machines.models import JudgeRun
from tests.machines import judged_project
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
    "api:machine_budget": ("put", answers_without_token(401), project_args),
}
