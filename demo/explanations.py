"""Explanations of the known ratings of training traces, shown as training feedback."""

from demo.generated_content import GeneratedOption, GeneratedTrace
from demo.math_problems import derivation

SOUND = (
    "Every step follows from the steps above it, so there is no error to find. Such traces exist, and recognizing that"
    " they are correct matters as much as finding an error."
)
NEUTRAL = "True, but it brings the solution no closer. Such a step is neutral, however sensible it sounds."
ALTERNATIVE = {
    1: "This step would be correct here, and it moves the solution forward.",
    -1: "This alternative is wrong.",
}
NEGATIVE = {
    derivation.ARITHMETIC: (
        "The calculation is wrong. One mistake makes the whole step negative, even if everything else in it is"
        " correct. Redo the last calculation of a step before you rate it."
    ),
    derivation.SIGN: (
        "A sign is lost or flipped here. The step looks tidy, so the mistake is easy to miss: follow each minus sign"
        " from one side to the other."
    ),
    derivation.CASE: (
        "The step drops a case that the problem asks for. Its treatment of the remaining case may be correct, but the"
        " missing case makes the step negative."
    ),
    derivation.FORMULA: (
        "This formula does not apply here. Substituting the numbers correctly does not make the step right."
    ),
    derivation.MISREAD: (
        "The problem says something else. Compare the numbers and conditions in a step with the problem itself, not"
        " with the previous step."
    ),
}


def explain_option(trace: GeneratedTrace, option: GeneratedOption, *, is_own: bool) -> str:
    """Return the explanation of an option's rating; empty if it needs none."""
    if not is_own:
        return ALTERNATIVE.get(option.rating or 0, NEUTRAL)
    if option.rating == -1:
        return NEGATIVE.get(trace.error_kind, "")
    return NEUTRAL if option.rating == 0 else ""
