"""What a snapshot read, frozen."""

import datetime as dt
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from formats import prm800k
from formats import prm800k as writer
from formats.records import TraceRecord
from labeling import assignments
from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Assignment, Judgment, Manifest, Project, StepReview, Submission
from tests import factories
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import bring_in

pytestmark = pytest.mark.django_db


def freeze(project: Project, **filters: Any) -> Manifest:
    return manifest.freeze_manifest(
        project=project,
        filters=ManifestFilters(**filters),
        purpose="archive",
        now=factories.NOW,
        by=None,
    )


def built(frozen: Manifest) -> bytes:
    return b"".join(writer.write(manifest.stream_records(frozen, chunk=2)))


def relabel(assignment: Assignment) -> None:
    """The same steps again, all rated positive, as the next revision."""
    for turn in StepReview.objects.filter(assignment=assignment, revision=1):
        judgments = list(turn.judgments.all())
        turn.pk, turn.revision = None, 2
        turn.save(force_insert=True)
        Judgment.objects.bulk_create(Judgment(turn=turn, option_id=old.option_id, rating=1) for old in judgments)
    Submission.objects.create(
        project=assignment.project,
        assignment=assignment,
        revision=2,
        finish_reason="solution",
        submitted_at=factories.NOW,
    )
    Assignment.objects.filter(pk=assignment.pk).update(revision=2, submitted_revision=2)


def test_stream_gives_the_same_bytes_after_relabelling() -> None:
    project = factories.make_project()
    spaced = prm.make_line(labeler="ben").replace(b": ", b" : ")  # comes back by its residue
    bring_in(project, prm.make_line(), spaced, prm.make_line(labeler="cid"))
    before = freeze(project)
    first = built(before)
    for assignment in Assignment.objects.filter(rater__labeler__in=["ann", "ben"]):
        relabel(assignment)
    after = freeze(project)
    assert (
        built(before)
        == first
        == b"".join(line + b"\n" for line in (prm.make_line(), spaced, prm.make_line(labeler="cid")))
    )
    lines = built(after).splitlines()
    assert [b'"rating": -1' in line for line in lines] == [True, False, False]
    assert after.n_rows == before.n_rows == 3


def test_freeze_takes_what_its_filters_name() -> None:
    project = factories.make_project()
    bring_in(
        project,
        prm.make_line(),
        prm.make_line(generation=None, finish_reason=None),
        prm.make_line(labeler=None, is_initial_screening_question=True),
        prm.make_line(labeler="ben", timestamp=None),
    )
    assert freeze(project).n_rows == 4
    assert freeze(project, generations=[None]).n_rows == 1
    assert freeze(project, generations=[5, None]).n_rows == 4
    assert freeze(project, finish_reasons=["found_error"]).n_rows == 3
    assert freeze(project, labelers=["ann", None]).n_rows == 3
    assert freeze(project, purposes=["work"]).n_rows == 3
    assert freeze(project, origins=["here"]).n_rows == 0
    assert freeze(project, submitted_from=dt.datetime(2022, 1, 1, tzinfo=dt.UTC)).n_rows == 3
    assert freeze(project, submitted_until=dt.datetime(2022, 1, 1, tzinfo=dt.UTC)).n_rows == 0


@pytest.mark.parametrize(
    "filters",
    [{"domains": []}, {"labelers": []}, {"generations": []}, {"guideline_from": 2**40}, {"min_raters": 2**63 - 1}],
)
def test_freeze_of_what_cannot_be_is_empty(filters: dict[str, Any]) -> None:
    """Django knows without looking that nothing is like this, and makes no query."""
    project = factories.make_project()
    bring_in(project, prm.make_line())
    assert freeze(project, **filters).n_rows == 0


def test_freeze_leaves_other_projects_alone() -> None:
    project, other = factories.make_project(), factories.make_project()
    bring_in(other, prm.make_line())
    assert freeze(project).n_rows == 0


def test_stream_begins_where_it_is_told() -> None:
    project = factories.make_project()
    bring_in(project, *(prm.make_line(labeler=name) for name in ("ann", "ben", "cid", "dan")))
    records = manifest.stream_records(freeze(project), start=2, chunk=1)
    assert [record.submissions[0].labeler for record in records] == ["cid", "dan"]


def test_stream_needs_few_queries_a_chunk(
    django_assert_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    project = factories.make_project()
    bring_in(project, *(prm.make_line(labeler=f"rater {number}") for number in range(9)))
    frozen = freeze(project)
    with django_assert_num_queries(3):
        assert len(list(manifest.stream_records(frozen, chunk=9))) == 9


def test_stream_gives_the_record_that_was_read() -> None:
    project = factories.make_project()
    bring_in(project, prm.make_line())
    (record,) = manifest.stream_records(freeze(project))
    read = prm800k.parse_line(prm.make_line(), number=1)
    assert isinstance(read, TraceRecord)
    assert (record.problem, record.steps, record.submissions) == (read.problem, read.steps, read.submissions)


def judge(assignment: Assignment, *ratings: int, first: int) -> None:
    """Rate steps one after the other and submit; `first` numbers the client's writes."""
    version = Assignment.objects.get(pk=assignment.pk).version
    writes = [
        assignments.IncomingEdit(sequence=first + step, seen=version, kind="rate", step=step, option=0, rating=rating)
        for step, rating in enumerate(ratings)
    ]
    assignments.submit(
        assignment_id=assignment.pk,
        rater_id=assignment.rater_id,
        client="tab",
        writes=writes,
        now=factories.NOW,
        by=None,
    )


def test_stream_gives_own_labels_in_the_same_shape_and_keeps_them_after_a_correction() -> None:
    project = factories.make_project()
    trace = factories.make_trace(project, ["One.", "Two.", "Three."])
    assignment = factories.make_assignment(factories.make_rater(project), trace)
    judge(assignment, 1, -1, first=1)
    before = freeze(project)
    first = built(before)
    assignments.reopen_submission(assignment_id=assignment.pk, rater_id=assignment.rater_id, now=factories.NOW, by=None)
    judge(assignment, 1, 0, 1, first=10)
    assert built(before) == first
    (old,), (new,) = first.splitlines(), built(freeze(project)).splitlines()
    for line, ratings, reason in ((old, [1, -1], "found_error"), (new, [1, 0, 1], "solution")):
        record = json.loads(line)
        assert [step["completions"][0]["rating"] for step in record["label"]["steps"]] == ratings
        assert record["label"]["finish_reason"] == reason
        assert record["question"]["pre_generated_steps"] == ["One.", "Two.", "Three."]
        assert isinstance(prm800k.parse_line(line, number=1), TraceRecord)
    assert json.loads(old)["label"]["steps"][1]["chosen_completion"] is None
