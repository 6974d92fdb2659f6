"""Reading ahead in threads, and submissions whose rows are consecutive or interleaved with others."""

import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from django.db import connection

from formats import prm800k
from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Assignment, Judgment, Project, StepReview, Submission
from tests import factories, servers
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import load_lines


@pytest.mark.django_db(transaction=True)
def test_chunks_are_in_order_and_leave_no_connection_open() -> None:
    """Outside of a transaction, chunks are read ahead. Stopping early closes the connections too."""
    project = factories.make_project()
    names = [f"rater {number:02}" for number in range(20)]
    load_lines(project, *(prm.make_line(labeler=name) for name in names), chunk=20)
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="archive", now=factories.NOW, by=None
    )
    before = threading.active_count()
    found = [
        each.facts.labeler for chunk in manifest.read_row_chunks(frozen, chunk=3, has_names=True) for each in chunk
    ]
    assert found == names
    early = manifest.read_row_chunks(frozen, chunk=3, has_names=True)
    assert [each.facts.labeler for each in next(early)] == names[:3]
    early.close()  # type: ignore[attr-defined]  # it is a generator
    assert threading.active_count() == before
    servers.wait_until(lambda: _count_connections() == 1, what="closed connections")


def _count_connections() -> int:
    clients = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type LIKE 'client%'"
    with connection.cursor() as cursor:
        cursor.execute(clients)
        return int(cursor.fetchone()[0])


def export_lines(project: Project) -> list[bytes]:
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="archive", now=factories.NOW, by=None
    )
    return [line for chunk in manifest.read_row_chunks(frozen, has_names=True) for line in prm800k.write(chunk)]


def relabel_in_turns(ratings: dict[str, int]) -> None:
    """Add another revision in which these raters take turns at each step, so that their rows interleave."""
    assignments = list(Assignment.objects.filter(rater__labeler__in=ratings).order_by("pk"))
    turns = StepReview.objects.filter(assignment__in=assignments).select_related("assignment__rater")
    for turn in turns.order_by("step__position", "assignment").prefetch_related("judgments"):
        (judgment,) = turn.judgments.all()
        turn.pk, turn.revision = None, 2
        turn.save(force_insert=True)
        rating = ratings[turn.assignment.rater.labeler or ""]
        Judgment.objects.create(turn=turn, option_id=judgment.option_id, rating=rating)
    for each in assignments:
        Submission.objects.create(
            project=each.project, assignment=each, revision=2, finish_reason="solution", submitted_at=factories.NOW
        )
        Assignment.objects.filter(pk=each.pk).update(revision=2, submitted_revision=2)


@pytest.mark.django_db
def test_interleaved_submissions_are_read_separately(
    django_assert_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    project = factories.make_project()
    load_lines(project, *(prm.make_line(labeler=name) for name in ("ann", "ben", "cid")))
    relabel_in_turns({"ann": 0, "ben": -1})
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="archive", now=factories.NOW, by=None
    )
    # One more query looks up the interleaved submissions.
    with django_assert_num_queries(4):
        (chunk,) = manifest.read_row_chunks(frozen, has_names=True)
    ratings = [(line["labeler"], get_ratings(line)) for line in map(json.loads, prm800k.write(chunk))]
    assert sorted(ratings) == [("ann", [0, 0]), ("ben", [-1, -1]), ("cid", [1, -1])]


def get_ratings(line: dict[str, dict[str, list[dict[str, list[dict[str, int]]]]]]) -> list[int]:
    return [each["completions"][0]["rating"] for each in line["label"]["steps"]]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "steps",
    [
        [prm.make_step("a", 1), prm.make_step("b", None), prm.make_step("c", -1)],  # a step review without a judgment
        [prm.make_step("a", None), prm.make_step("b", None)],
        [prm.make_step("a", 1), prm.make_step("b", 0, "other", chosen=1), prm.make_step("c", 1)],
        [{**prm.make_step("a"), "chosen_completion": None}, prm.make_step("b", 0)],
        [
            prm.make_step("a"),
            {**prm.make_step("b"), "human_completion": {"text": "w", "rating": None, "source": "human"}},
        ],
    ],
)
def test_rows_next_to_general_ones_are_exported_unchanged(steps: list[dict[str, object]]) -> None:
    project = factories.make_project()
    others = {"pre_generated_steps": ["a", "b", "c"], "finish_reason": "solution"}
    lines = [
        prm.make_line(labeler="ann"),
        prm.make_line(labeler="ben", steps=steps, **others),
        prm.make_line(labeler="cid"),
    ]
    load_lines(project, *lines)
    assert export_lines(project) == [line + b"\n" for line in lines]
