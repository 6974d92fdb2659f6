"""The kind of task of a trace, as far as its record shows it."""

import re

from formats.records import TraceRecord

AGENTS, CODE, MATH, POLICY = "agents", "code", "math", "policy"
_CODE_WORDS = re.compile(r"\b(?:cod(?:e|ing)|programming|software|swe[ -]?agent)\b", re.IGNORECASE)
_FENCE = "```"


def guess_task(record: TraceRecord) -> str:
    """Return AGENTS, CODE, POLICY or MATH, which is also the kind of every text without any other sign."""
    scaffold = record.provenance.scaffold if record.provenance else ""
    if _CODE_WORDS.search(f"{record.problem.domain} {scaffold}".replace("_", " ")):
        return CODE
    kinds = {step.kind for step in record.steps}
    if kinds & {"action", "observation"}:
        return AGENTS
    if "system" in kinds:  # rules for an assistant that only answers
        return POLICY
    if any(_FENCE in step.options[0].text for step in record.steps if step.options):
        return CODE
    return MATH
