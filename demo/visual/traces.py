"""Generate solutions of problems with a picture, which read it right or misread it once.

Each step is rated by itself, so a step that continues correctly from a misread value is right.
"""

import base64
from pathlib import Path

from demo import generated_content
from demo.generated_content import GeneratedOption, GeneratedStep, GeneratedTrace
from demo.visual import problem_texts
from demo.visual.problem_texts import VisualProblem
from formats import images
from formats.records import ImageRecord

MISREAD = "picture"  # the kind of the error


def load_guideline() -> str:
    """Return the guideline as Markdown."""
    return (Path(__file__).parent / "guideline.md").read_text(encoding="utf-8")


def generate_visual_traces(*, seed: str) -> list[GeneratedTrace]:
    """Solve each problem twice: the second solution misreads the picture."""
    made = [
        _build_trace(problem, name, is_right=is_right)
        for name, make_problem in problem_texts.PROBLEMS.items()
        for problem in [make_problem()]
        for is_right in (True, False)
    ]
    generated_content.seeded_random(seed, "visual").shuffle(made)
    return made


def _build_trace(problem: VisualProblem, name: str, *, is_right: bool) -> GeneratedTrace:
    error = next(place for place, step in enumerate(problem.steps) if step.depends)
    steps = []
    for place, step in enumerate(problem.steps):
        if place == error and not is_right:
            option = GeneratedOption(step.wrong, -1, error_kind=MISREAD)
        else:
            option = GeneratedOption(step.right if is_right else step.wrong, 1)
        steps.append(GeneratedStep((option,)))
    source = f"data:image/png;base64,{base64.b64encode(problem.picture).decode()}"
    text, placed = images.place_images(problem.problem, [ImageRecord(source, problem.description)])
    right, wrong = problem.answers
    return GeneratedTrace(
        problem=text,
        domain=problem.domain,
        reference_answer=right,
        steps=tuple(steps),
        answer=right if is_right else wrong,
        is_right=is_right,
        error_kind="" if is_right else MISREAD,
        ref=name,
        images=placed,
    )
