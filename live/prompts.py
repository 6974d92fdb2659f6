"""The prompts that ask for the next step. Pure.

In the mode *completions* the prompt is the beginning of a text, which the model continues until the step ends. In the
mode *instructed* it is a message that asks for the next step as JSON.
"""

import hashlib
import re
from collections.abc import Sequence

MAX_TEMPLATE_CHARACTERS = 20_000
_COMPLETIONS = """\
Solve the problem step by step. Leave a blank line between two steps. Put the final answer in \\boxed{}.

Problem: {problem}

Solution:

{prefix}"""
_INSTRUCTED = """\
A problem is being solved step by step.

[Problem]
{problem}

[Steps so far]
{prefix}

Write only the next step, in one to three sentences. Do not repeat earlier steps. If it is the last step, it states the
final answer in \\boxed{}. Answer with one JSON object and nothing else:
{"step": "the text of the step", "is_last": false}"""
BUILTIN = {"completions": _COMPLETIONS, "instructed": _INSTRUCTED, "example": _COMPLETIONS}
_PLACEHOLDER = re.compile(r"\{(problem|prefix)\}")


class InvalidLiveTemplate(ValueError):
    """The template cannot be used. The message is for the person who wrote it."""


def validate_template(text: str, mode: str) -> str:
    """Return the template, or raise InvalidLiveTemplate."""
    if len(text) > MAX_TEMPLATE_CHARACTERS or "\0" in text:
        raise InvalidLiveTemplate(f"The prompt is longer than {MAX_TEMPLATE_CHARACTERS:,} characters.")
    for name in ("problem", "prefix"):
        if text.count(f"{{{name}}}") != 1:
            raise InvalidLiveTemplate(f"The prompt must contain {{{name}}} exactly once.")
    if mode == "completions" and not text.endswith("{prefix}"):
        raise InvalidLiveTemplate("The prompt must end with {prefix}: the model continues the solution there.")
    return text


def digest_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def render_prompt(template: str, problem: str, steps: Sequence[str], *, step_end: str) -> str:
    """Return the prompt for the step after these. Each step is followed by the text at which steps end."""
    values = {"problem": problem, "prefix": "".join([step + step_end for step in steps])}
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)


def derive_seed(*parts: object) -> int:
    """Return a seed that every server accepts, the same for the same parts."""
    return int(hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:7], 16)
