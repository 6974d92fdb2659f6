"""Generate solutions that make an error and notice it, or do not. Pure.

Each step is rated by itself, so a step that continues correctly from a wrong value is right. It depends on the error
until the solution recovers.
"""

from pathlib import Path

from demo import generated_content
from demo.generated_content import GeneratedOption, GeneratedStep, GeneratedTrace
from demo.recovery import problem_texts
from demo.recovery.problem_texts import RecoveryProblem
from formats import label_sets

VARIANTS = 2  # of each problem, with other numbers
RIGHT, UNNOTICED, NOTICED = "right", "unnoticed", "noticed"
_MEDIUM, _HIGH = 2, 3


def load_guideline() -> str:
    """Return the guideline as Markdown."""
    return (Path(__file__).parent / "guideline.md").read_text(encoding="utf-8")


def generate_recovery_traces(*, seed: str) -> list[GeneratedTrace]:
    """Solve each problem without an error, with one that stays, and with one that is noticed."""
    made = []
    for name, make_problem in problem_texts.PROBLEMS.items():
        for variant in range(VARIANTS):
            problem = make_problem(generated_content.seeded_random(seed, name, variant))
            made += [
                _build_trace(problem, ending, f"{name}-{variant}-{ending}") for ending in (RIGHT, UNNOTICED, NOTICED)
            ]
    generated_content.seeded_random(seed, "recovery").shuffle(made)
    return made


def _build_trace(problem: RecoveryProblem, ending: str, ref: str) -> GeneratedTrace:
    error = next(place for place, step in enumerate(problem.steps) if step.depends)
    options = []
    for place, step in enumerate(problem.steps):
        is_last = place == len(problem.steps) - 1
        if is_last and ending == NOTICED:
            options.append(GeneratedOption(problem.correction, 1, error_link=label_sets.RECOVERS))
        if ending == RIGHT or place < error or (is_last and ending == NOTICED):
            options.append(GeneratedOption(step.right, 1))
        elif place == error:
            severity = _HIGH if ending == UNNOTICED else _MEDIUM
            options.append(GeneratedOption(step.wrong, -1, error_kind=problem.kind, severity=severity))
        else:
            options.append(GeneratedOption(step.wrong, 1, error_link="" if step.depends else label_sets.INDEPENDENT))
    steps = [GeneratedStep((option,)) for option in options]
    right, wrong = problem.answers
    return GeneratedTrace(
        problem=problem.problem,
        domain=problem.domain,
        reference_answer=right,
        steps=tuple(steps),
        answer=wrong if ending == UNNOTICED else right,
        is_right=ending != UNNOTICED,
        error_kind="" if ending == RIGHT else problem.kind,
        ref=ref,
        answers={
            "final_label": "-1" if ending == UNNOTICED else "1",
            "noticed": {RIGHT: "none", UNNOTICED: "no", NOTICED: "yes"}[ending],
        },
    )
