"""Chunks that are read ahead, by connections of their own; and turns that lie in one stretch, or between others."""

import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from django.db import connection

from formats import prm800k
from formats.rows import RowFacts
from labeling.datasets import manifest, row_reader
from labeling.datasets.selection import ManifestFilters
from labeling.models import Assignment, Judgment, Project, StepReview, Submission
from tests import factories, servers
from tests.formats import prm800k_lines as prm
from tests.labeling.traces.test_load import bring_in


def test_each_field_of_a_row_is_read_by_its_name() -> None:
    assert set(row_reader._COLUMNS) == set(RowFacts._fields)


@pytest.mark.django_db(transaction=True)
def test_chunks_come_in_order_and_leave_nothing_open() -> None:
    """Outside of a transaction chunks are read ahead; whoever stops early leaves no connection behind."""
    project = factories.make_project()
    names = [f"rater {number:02}" for number in range(20)]
    bring_in(project, *(prm.make_line(labeler=name) for name in names), chunk=20)
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="archive", now=factories.NOW, by=None
    )
    before = threading.active_count()
    found = [each.facts.labeler for chunk in manifest.read_row_chunks(frozen, chunk=3) for each in chunk]
    assert found == names
    early = manifest.read_row_chunks(frozen, chunk=3)
    assert [each.facts.labeler for each in next(early)] == names[:3]
    early.close()  # type: ignore[attr-defined]  # it is a generator
    assert threading.active_count() == before
    servers.wait_until(lambda: _links() == 1, what="the end of the others")


def _links() -> int:
    clients = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type LIKE 'client%'"
    with connection.cursor() as cursor:
        cursor.execute(clients)
        return int(cursor.fetchone()[0])


def written(project: Project) -> list[bytes]:
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="archive", now=factories.NOW, by=None
    )
    return [line for chunk in manifest.read_row_chunks(frozen) for line in prm800k.write(chunk)]


def judge_by_turns(ratings: dict[str, int]) -> None:
    """The steps once more as another revision, by these raters one after the other on each step."""
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
def test_turns_between_those_of_others_are_read_as_each_rater_gave_them(
    django_assert_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    project = factories.make_project()
    bring_in(project, *(prm.make_line(labeler=name) for name in ("ann", "ben", "cid")))
    judge_by_turns({"ann": 0, "ben": -1})
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="archive", now=factories.NOW, by=None
    )
    # Those of the file lie in one stretch; the others are looked up by one query more.
    with django_assert_num_queries(4):
        (chunk,) = manifest.read_row_chunks(frozen)
    found = [(each["labeler"], ratings_of(each)) for each in map(json.loads, prm800k.write(chunk))]
    assert sorted(found) == [("ann", [0, 0]), ("ben", [-1, -1]), ("cid", [1, -1])]


def ratings_of(line: dict[str, dict[str, list[dict[str, list[dict[str, int]]]]]]) -> list[int]:
    return [each["completions"][0]["rating"] for each in line["label"]["steps"]]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "steps",
    [
        [prm.make_step("a", 1), prm.make_step("b", None), prm.make_step("c", -1)],  # a turn without a judgment
        [prm.make_step("a", None), prm.make_step("b", None)],
        [prm.make_step("a", 1), prm.make_step("b", 0, "other", chosen=1), prm.make_step("c", 1)],
        [{**prm.make_step("a"), "chosen_completion": None}, prm.make_step("b", 0)],
        [
            prm.make_step("a"),
            {**prm.make_step("b"), "human_completion": {"text": "w", "rating": None, "source": "human"}},
        ],
    ],
)
def test_what_lies_beside_plain_turns_does_not_shift_them(steps: list[dict[str, object]]) -> None:
    project = factories.make_project()
    others = {"pre_generated_steps": ["a", "b", "c"], "finish_reason": "solution"}
    given = [
        prm.make_line(labeler="ann"),
        prm.make_line(labeler="ben", steps=steps, **others),
        prm.make_line(labeler="cid"),
    ]
    bring_in(project, *given)
    assert written(project) == [line + b"\n" for line in given]
