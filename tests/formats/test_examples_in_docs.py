"""The samples of output in docs/formats are written by the code."""

import json
import re

import pytest
from msgspec import structs

from formats import prm800k
from formats.catalog import OUTPUT_FORMATS
from formats.examples import TraceExample
from formats.records import OptionRecord, ProvenanceRecord, StepRecord, TraceRecord
from formats.rows import make_export_row
from tests.conventions.rule import ROOT
from tests.formats import prm800k_lines as prm
from tests.formats.export_rows import write_rows
from tests.formats.test_examples import agreed

PROBLEM, STEPS = "What is 7 times 8?", ["7 times 8 is 7 times 4 times 2.", "That is 28 times 2, or 54.", "So 54."]
BETTER = "That is 28 times 2, or 56."
DOMAIN = "arithmetic"


def read() -> TraceRecord:
    """Return a record with one submission: the second step is wrong, and an alternative to it is right."""
    wrong = prm.make_step(STEPS[1], -1, chosen=None)
    wrong["completions"].append({"text": BETTER, "rating": 1, "flagged": False})
    changes = {"problem": PROBLEM, "pre_generated_steps": STEPS, "pre_generated_answer": "54", "labeler": "r1"}
    found = prm.make_record(prm.make_step(STEPS[0]), wrong, **changes)
    found.ref, found.is_right, found.outcome_by = "x-1", False, "file"
    found.submissions[0].answers = {"final_label": "-1"}
    found.problem = structs.replace(found.problem, domain=DOMAIN)
    found.steps[1] = StepRecord([OptionRecord(STEPS[1]), OptionRecord(BETTER)])
    found.provenance = ProvenanceRecord("base-model", "some-model", segmenter="lines 1")
    return found


def samples(name: str) -> list[str]:
    """Return the lines of the record in this format."""
    if not OUTPUT_FORMATS[name].is_table:
        return [line.decode().rstrip("\n") for line in prm800k.write([read()])]
    facts = {
        "problem_digest": "5f0a2c",
        "domain": DOMAIN,
        "policy": "some-model",
        "finish_reason": "found_error",
        "score_version": "",
    }
    row = make_export_row(read(), revision=1, **facts)
    example = TraceExample([row], agreed=agreed([[1, -1]], 1))
    return [json.dumps(line) for line in write_rows(name, example)]


@pytest.mark.parametrize("name", OUTPUT_FORMATS)
def test_page_shows_the_output(name: str) -> None:
    page = (ROOT / f"docs/formats/{name}.md").read_text()
    (shown,) = re.findall(r"^## Output$.*?^```jsonl\n(.+?)\n```", page, re.M | re.S)
    assert shown.splitlines() == samples(name)


@pytest.mark.parametrize("name", OUTPUT_FORMATS)
def test_page_names_every_field(name: str) -> None:
    page = (ROOT / f"docs/formats/{name}.md").read_text()
    columns = OUTPUT_FORMATS[name].columns
    assert not [field for field in columns if f"`{field}`" not in page and f"`{field}." not in page]
    assert "**Used by:**" in page
    assert "**Lost:**" in page
