"""Frozen manifests."""

import datetime as dt
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from formats import prm800k
from formats.raw_values import RawValue
from formats.records import TraceRecord
from labeling import assignments
from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Assignment, Judgment, Manifest, Project, StepReview, Submission, Trace
from labeling.traces import tags
from tests import factories
from tests.formats import prm800k_lines as prm
from tests.labeling.quality import submitted_work
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db


def freeze(project: Project, **filters: Any) -> Manifest:
    return manifest.freeze_manifest(
        project=project,
        filters=ManifestFilters(**filters),
        purpose="archive",
        now=factories.NOW,
        by=None,
    )


def read_records(frozen: Manifest, **place: Any) -> list[TraceRecord]:
    return [row.record for rows in manifest.read_row_chunks(frozen, **place, has_names=True) for row in rows]


def export(frozen: Manifest) -> bytes:
    return b"".join(prm800k.write(read_records(frozen, chunk=2)))


def relabel(assignment: Assignment) -> None:
    """Add a revision with the same steps, all rated positive."""
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


def test_stream_is_the_same_after_relabeling() -> None:
    project = factories.make_project()
    spaced = prm.make_line(labeler="ben").replace(b": ", b" : ")  # stored with its residue
    load_lines(project, prm.make_line(), spaced, prm.make_line(labeler="cid"))
    before = freeze(project)
    first = export(before)
    for assignment in Assignment.objects.filter(rater__labeler__in=["ann", "ben"]):
        relabel(assignment)
    after = freeze(project)
    assert (
        export(before)
        == first
        == b"".join(line + b"\n" for line in (prm.make_line(), spaced, prm.make_line(labeler="cid")))
    )
    lines = export(after).splitlines()
    assert [b'"rating": -1' in line for line in lines] == [True, False, False]
    assert after.n_rows == before.n_rows == 3


def test_filters_select_submissions() -> None:
    project = factories.make_project()
    load_lines(
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
    trace = Trace.objects.filter(project=project).earliest("pk")
    n_tagged = trace.assignments.count()
    tags.add_tag(project_id=project.pk, trace_ids=[trace.pk], name="hard", by=None, now=factories.NOW)
    assert freeze(project, tags=["hard", "none"]).n_rows == n_tagged
    assert freeze(project, without_tags=["hard"]).n_rows == 4 - n_tagged
    assert freeze(project, submitted_from=dt.datetime(2022, 1, 1, tzinfo=dt.UTC)).n_rows == 3
    assert freeze(project, submitted_until=dt.datetime(2022, 1, 1, tzinfo=dt.UTC)).n_rows == 0


@pytest.mark.parametrize(
    "filters",
    [{"domains": []}, {"labelers": []}, {"generations": []}, {"guideline_from": 2**40}, {"min_raters": 2**63 - 1}],
)
def test_filters_that_match_nothing_give_an_empty_manifest(filters: dict[str, Any]) -> None:
    """For some of them, Django makes no query at all."""
    project = factories.make_project()
    load_lines(project, prm.make_line())
    assert freeze(project, **filters).n_rows == 0


def test_other_projects_are_not_included() -> None:
    project, other = factories.make_project(), factories.make_project()
    load_lines(other, prm.make_line())
    assert freeze(project).n_rows == 0


def test_stream_starts_at_a_position() -> None:
    project = factories.make_project()
    load_lines(project, *(prm.make_line(labeler=name) for name in ("ann", "ben", "cid", "dan")))
    records = read_records(freeze(project), start=2, chunk=1)
    assert [record.submissions[0].labeler for record in records] == ["cid", "dan"]


def test_a_chunk_takes_three_queries(
    django_assert_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    project = factories.make_project()
    load_lines(project, *(prm.make_line(labeler=f"rater {number}") for number in range(9)))
    frozen = freeze(project)
    with django_assert_num_queries(3):
        assert len(read_records(frozen, chunk=9)) == 9


def test_stream_gives_the_imported_record() -> None:
    project = factories.make_project()
    load_lines(project, prm.make_line())
    (record,) = read_records(freeze(project))
    read = prm800k.parse_value(RawValue(prm.make_line(), 1))
    assert isinstance(read, TraceRecord)
    assert (record.problem, record.steps, record.submissions) == (read.problem, read.steps, read.submissions)


def judge(assignment: Assignment, *ratings: int, first: int) -> None:
    """Rate the steps in order and submit. `first` is the number of the client's first write."""
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


def test_own_submission_is_exported_in_the_same_format_and_kept_after_a_correction() -> None:
    project = factories.make_project()
    trace = factories.make_trace(project, ["One.", "Two.", "Three."])
    assignment = factories.make_assignment(factories.make_rater(project), trace)
    judge(assignment, 1, -1, first=1)
    before = freeze(project)
    first = export(before)
    assignments.reopen_submission(assignment_id=assignment.pk, rater_id=assignment.rater_id, now=factories.NOW, by=None)
    judge(assignment, 1, 0, 1, first=10)
    assert export(before) == first
    (old,), (new,) = first.splitlines(), export(freeze(project)).splitlines()
    for line, ratings, reason in ((old, [1, -1], "found_error"), (new, [1, 0, 1], "solution")):
        record = json.loads(line)
        assert [step["completions"][0]["rating"] for step in record["label"]["steps"]] == ratings
        assert record["label"]["finish_reason"] == reason
        assert record["question"]["pre_generated_steps"] == ["One.", "Two.", "Three."]
        assert isinstance(prm800k.parse_value(RawValue(line, 1)), TraceRecord)
    assert json.loads(old)["label"]["steps"][1]["chosen_completion"] is None


def test_steps_of_subagents_keep_their_agents() -> None:
    project = factories.make_project()
    trace = factories.make_trace(project, steps=["One.", "Two."])
    trace.steps.filter(position=1).update(agent="research/browse", separator="\n\n", source_position=4)
    submitted_work.submit_trace(factories.make_rater(project), trace, [1, 1])
    (record,) = read_records(freeze(project))
    assert [step.agent for step in record.steps] == ["", "research/browse"]
    assert [(step.separator, step.source_position) for step in record.steps] == [("", None), ("\n\n", 4)]


def test_compact_rows_do_not_hide_parts_of_messages() -> None:
    project = factories.make_project()
    trace = factories.make_trace(project, steps=["One.", "Two."])
    trace.steps.update(separator=" ", source_position=4)
    submitted_work.submit_trace(factories.make_rater(project), trace, [1, 1])
    (record,) = read_records(freeze(project))
    assert [(step.separator, step.source_position) for step in record.steps] == [(" ", 4)] * 2
