"""VisualProcessBench: records come back as they were published."""

import io
import json
from typing import Any

import pytest

from formats import catalog, examples, visual_process_bench
from formats.examples import LabelRule, RowTally
from formats.image_loader import ImageLoader
from formats.records import BadLine, TraceRecord
from tests.formats.export_rows import make_example
from tests.image_files import make_image

ITEM: dict[str, Any] = {
    "image": ["images/1.png", "images/2.png"],
    "question": "Which side of the triangle is longer?",
    "answer": "B",
    "response": {"steps": ["It has three sides.", "So A.", "A."], "process_correctness": [1, -1, 0]},
    "policy_model": "a-model",
    "data_source": "MathVerse",
}


class NumberedImages:
    def read(self, name: str, limit: int) -> bytes:
        return make_image("red" if "1" in name else "blue")


def read(item: dict[str, Any]) -> TraceRecord | BadLine:
    stream = io.BytesIO(json.dumps(item).encode())
    assert catalog.detect_format(stream).name == "visual_process_bench"
    [record] = visual_process_bench.read(io.BytesIO(stream.getvalue()))
    return record


def load(item: dict[str, Any]) -> TraceRecord:
    record = read(item)
    assert isinstance(record, TraceRecord)
    return ImageLoader(NumberedImages()).load_images(record)


def test_record_comes_back_with_other_names_of_its_images() -> None:
    record = load(ITEM)
    [row] = visual_process_bench.write(make_example(record), LabelRule(), RowTally())
    assert row == {**ITEM, "image": [f"images/{image.digest}.png" for image in record.images]}
    assert [turn.path_rating() for turn in record.submissions[0].turns] == [1, -1, 0]
    assert record.submissions[0].protocol == "every_step"
    as_text = load({**ITEM, "response": json.dumps(ITEM["response"])})
    assert as_text.steps == record.steps


def test_row_ends_before_a_step_without_a_rating() -> None:
    record, tally = load(ITEM), RowTally()
    record.submissions[0].turns.pop()
    [row] = visual_process_bench.write(make_example(record), LabelRule(), tally)
    assert row["response"] == {"steps": ITEM["response"]["steps"][:2], "process_correctness": [1, -1]}
    record.submissions[0].turns.clear()
    assert not list(visual_process_bench.write(make_example(record), LabelRule(), tally))
    assert tally.left_out == {examples.NOT_RATED: 1}


@pytest.mark.parametrize(
    "changed",
    [
        {"response": {"steps": ["a"], "process_correctness": [1, 1]}},
        {"response": {"steps": ["a"], "process_correctness": [2]}},
        {"response": "steps"},
        {"image": ["https://other.test/1.png"]},
    ],
)
def test_bad_records_are_refused(changed: dict[str, Any]) -> None:
    assert isinstance(read({**ITEM, **changed}), BadLine)
