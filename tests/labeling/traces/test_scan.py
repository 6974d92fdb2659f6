"""The report of a file that is read before its import."""

import pytest

from formats.records import OptionRecord, ProblemRecord, ProvenanceRecord, StepRecord, TraceRecord
from labeling.traces.scan import guess_task


@pytest.mark.parametrize(
    ("steps", "domain", "scaffold", "expected"),
    [
        ([("reasoning", "So $x = 1$.")], "algebra", "", "math"),
        ([("reasoning", "So we code it.\n```python\nx = 1\n```")], "", "", "code"),
        ([("reasoning", "First sort.")], "coding", "", "code"),
        ([("system", "Rules."), ("user", "Hi."), ("action", "look()")], "", "", "agents"),
        ([("action", "ls"), ("observation", "a.py")], "", "mini-swe-agent 1.0", "code"),
        ([("system", "Rules."), ("user", "Hi."), ("reasoning", "No refund.")], "", "", "policy"),
    ],
)
def test_task_follows_from_the_kinds_of_steps_and_the_scaffold(
    steps: list[tuple[str, str]], domain: str, scaffold: str, expected: str
) -> None:
    record = TraceRecord(
        problem=ProblemRecord("Find it.", domain=domain),
        steps=[StepRecord([OptionRecord(text)], kind=kind) for kind, text in steps],
        provenance=ProvenanceRecord(scaffold=scaffold),
    )
    assert guess_task(record) == expected
