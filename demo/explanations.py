"""Why a step of a training trace is rated as it is: what its rater reads after it."""

from demo.generated_content import GeneratedOption, GeneratedTrace
from demo.math_problems import derivation

SOUND = (
    "Every step follows from what stands above it: there is no error to be found. Such traces exist, and to see that"
    " they are sound is worth as much as to find an error."
)
NEUTRAL = "True, but the solution is no nearer than before. That is neutral, however sensible it sounds."
ALTERNATIVE = {
    1: "In this place it would be right, and it brings the solution forward.",
    -1: "It stands in the same place and is wrong as well.",
}
NEGATIVE = {
    derivation.ARITHMETIC: (
        "The calculation is wrong. One slip anywhere makes the whole step negative, also when the rest of it is right."
        " It helps to redo the last calculation of a step before rating."
    ),
    derivation.SIGN: (
        "A sign is lost or turned round here. It looks tidy, which is why it is easily read over: follow each minus"
        " from one side to the other."
    ),
    derivation.CASE: (
        "A case is dropped that the problem asks for. What is said of the remaining case may be right; what is left out"
        " makes the step negative."
    ),
    derivation.FORMULA: (
        "This formula does not apply here. That the numbers are put in correctly does not save the step."
    ),
    derivation.MISREAD: (
        "The problem says something else. Hold the numbers and conditions of a step against the problem itself, not"
        " against the step before."
    ),
}


def explain_option(trace: GeneratedTrace, option: GeneratedOption, *, is_own: bool) -> str:
    """Empty where nothing needs to be said."""
    if not is_own:
        return ALTERNATIVE.get(option.rating or 0, NEUTRAL)
    if option.rating == -1:
        return NEGATIVE.get(trace.error_kind, "")
    return NEUTRAL if option.rating == 0 else ""
