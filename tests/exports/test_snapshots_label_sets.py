"""Snapshots with label sets: from ratings on the platform to files, and back into another project."""

import io
import json
from typing import Any

import pytest

from exports.card import LABEL_SET_NOTES
from exports.models import Snapshot
from exports.orders import InvalidOrder
from formats import native
from formats.examples import LabelRule
from formats.label_sets import LABEL_SETS
from labeling import assignments
from labeling.datasets.selection import ManifestFilters
from labeling.models import Judgment, Project, Submission
from labeling.models.trace import ImportedLabelKind
from labeling.traces import load
from labeling.traces.load import LoadState
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, order_snapshot, read_file
from tests.labeling.assignments.clients import WorkPageClient

pytestmark = pytest.mark.django_db
RATINGS, LINKS = (1, -1, 0, 1, 1), ("", "", "", "independent", "recovers")


@pytest.fixture
def project() -> Project:
    project = factories.make_project(protocol="recovery", reserve_problem_share=0.0)
    trace = factories.make_trace(project, [f"Step {number}." for number in range(len(RATINGS))])
    assignment = factories.make_assignment(factories.make_rater(project), trace)
    client = WorkPageClient(assignment)
    client.send(*(client.write(at, each, error_link=LINKS[at]) for at, each in enumerate(RATINGS)))
    client.send(client.write(1, -1, category="misread other", severity=2, text="It says 7."))
    assignments.submit(**client.place, now=factories.NOW, by=None)
    return project


def read_rows(snapshot: Snapshot, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_file(snapshot, f"data/{name}/train.jsonl").splitlines()]


@pytest.mark.parametrize(
    ("label_set", "native", "binary"),
    [
        ("as_rated", [1, -1, 0, 1, 1], [True, False]),
        ("stop", [1, -1, None, None, None], [True, False]),
        ("carried_forward", [1, -1, -1, 1, 1], [True, False, False, True, True]),
        ("propagated_ternary", [1, -1, -1, 1, 1], [True, False, False, True, True]),
        ("decisive_error", [1, None, None, 1, 1], [True]),
    ],
)
def test_one_submission_gives_every_label_set(
    project: Project, label_set: Any, native: list[int | None], binary: list[bool]
) -> None:
    snapshot = build_snapshot(project, "native", "trl", "steps", rule=LabelRule(label_set=label_set))
    assert snapshot.order["rule"]["label_set"] == label_set
    assert f"`{label_set}`" in read_file(snapshot, "README.md").decode()
    assert [row["labels"] for row in read_rows(snapshot, "native")] == [native]
    assert [row["labels"] for row in read_rows(snapshot, "trl")] == [binary]
    given = [row["ratings"][0] for row in read_rows(snapshot, "steps")]
    assert [(each["rating"], each["error_link"], each["protocol"]) for each in given] == [
        (rating, link, "recovery") for rating, link in zip(RATINGS, LINKS, strict=True)
    ]
    wanted = [None] * len(RATINGS) if label_set == "as_rated" else native
    assert [each["set_label"] for each in given] == wanted


def test_ratings_and_marks_come_back_in_another_project(project: Project) -> None:
    written = read_file(build_snapshot(project, "native"), "data/native/train.jsonl")
    other = factories.make_project("other", reserve_problem_share=0.0)
    state = LoadState(project=other, source=factories.make_source(other), labels=ImportedLabelKind.JUDGMENTS)
    load.load_chunk(state=state, records=list(native.read(io.BytesIO(written))), now=factories.NOW)
    assert Submission.objects.get(project=other).protocol == "recovery"
    rows = Judgment.objects.filter(turn__assignment__project=other).order_by("turn__step__position")
    assert list(rows.values_list("rating", "error_link")) == list(zip(RATINGS, LINKS, strict=True))
    explained = rows.get(turn__step__position=1)
    assert (explained.category, explained.severity, explained.reason) == ("misread other", 2, "It says 7.")
    again = read_rows(build_snapshot(other, "native", "trl", rule=LabelRule(label_set="carried_forward")), "trl")
    assert [row["labels"] for row in again] == [[True, False, False, True, True]]


@pytest.mark.parametrize(
    ("formats", "is_consensus", "label_set", "is_refused"),
    [
        (["prm800k"], False, "stop", True),
        (["trl"], True, "carried_forward", True),
        (["trl"], True, "stop", False),
        (["trl"], False, "decisive_error", False),
    ],
)
def test_orders_that_no_label_set_fits_are_refused(
    project: Project, formats: list[str], is_consensus: bool, label_set: Any, is_refused: bool
) -> None:
    options: Any = {"filters": ManifestFilters(is_consensus=is_consensus), "rule": LabelRule(label_set=label_set)}
    if not is_refused:
        assert order_snapshot(project, *formats, **options).pk
        return
    with pytest.raises(InvalidOrder) as refusal:
        order_snapshot(project, *formats, **options)
    assert refusal.value.code == "label_set"


def test_card_explains_every_label_set() -> None:
    assert set(LABEL_SET_NOTES) == set(LABEL_SETS)
