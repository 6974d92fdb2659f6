"""Records loaded into the database and written back."""

import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from formats import prm800k
from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Assignment, Option, Problem, Project, Rater, Step, StepReview, Submission, Trace
from labeling.models.trace import ImportedLabelKind
from labeling.traces import load, trace_rows
from labeling.traces.load import LoadState
from labeling.traces.scan import ImportReport
from rawsql import BulkTable
from tests import factories
from tests.formats import prm800k_lines as prm

pytestmark = pytest.mark.django_db


def load_lines(
    project: Project, *lines: bytes, labels: str = ImportedLabelKind.JUDGMENTS, chunk: int = 3
) -> ImportReport:
    state = LoadState(project=project, source=factories.make_source(project), labels=labels)
    records = prm800k.read(io.BytesIO(b"".join(line + b"\n" for line in lines)))
    for part in load.split_chunks(records, chunk):
        load.load_chunk(state=state, records=part, now=factories.NOW)
    return state.report


def export_lines(project: Project) -> list[bytes]:
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="archive", now=factories.NOW, by=None
    )
    chunks = list(manifest.read_row_chunks(frozen, chunk=3, has_names=True))
    lines = [line for found in chunks for line in prm800k.write(found)]
    assert lines == list(prm800k.write(row.record for found in chunks for row in found))
    return [line.removesuffix(b"\n") for line in lines]


@pytest.mark.fault
@pytest.mark.parametrize("name", ["genuine.jsonl", "phase1_train.reconstructed.jsonl"])
def test_real_records_need_no_residue(shared_data: Path, name: str) -> None:
    project = factories.make_project()
    lines = (shared_data / "prm800k" / name).read_bytes().splitlines()
    report = load_lines(project, *lines, chunk=200)
    assert report.residues == 0
    assert export_lines(project) == lines


@pytest.mark.fault
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(prm.lines(), min_size=1, max_size=5))
@example([prm.make_line(steps=[]), prm.make_line()])
def test_any_record_is_written_back_byte_for_byte(lines: list[bytes]) -> None:
    project = factories.make_project()
    load_lines(project, *lines)
    assert export_lines(project) == lines


def test_load_again_adds_nothing() -> None:
    project = factories.make_project()
    lines = [prm.make_line(), prm.make_line(labeler=None), prm.make_line(labeler=None)]
    load_lines(project, *lines)
    before = [model.objects.count() for model in (Problem, Trace, Step, Option, Submission, StepReview, Rater)]
    again = load_lines(project, *lines)
    assert before == [model.objects.count() for model in (Problem, Trace, Step, Option, Submission, StepReview, Rater)]
    assert (again.traces_added, again.submissions_added) == (0, 0)


def test_load_counts_attempts_of_the_unknown_rater() -> None:
    project = factories.make_project()
    lines = [prm.make_line(labeler=None), prm.make_line(labeler=None), prm.make_line(labeler=None, total_time=5)]
    load_lines(project, *lines, chunk=2)
    assert list(Assignment.objects.order_by("pk").values_list("attempt", flat=True)) == [1, 2, 3]
    assert export_lines(project) == lines


def test_load_makes_one_trace_of_several_submissions() -> None:
    project = factories.make_project()
    first, last = prm.make_step("2 + 2 = 4"), "4 + 2 = 7"
    lines = [
        prm.make_line(labeler="ann", steps=[first, prm.make_step(last, -1, "a", "b", "a", chosen=None)]),
        prm.make_line(labeler="ben", steps=[first, prm.make_step(last, -1, "b", "c", "a", "a", "a", chosen=None)]),
        prm.make_line(labeler="cid", steps=[first, prm.make_step(last, -1, "a", "b", "a", chosen=None)]),
    ]
    load_lines(project, *lines, chunk=1)
    trace = Trace.objects.get()
    options = Option.objects.filter(step__trace=trace, step__position=1).order_by("position")
    assert list(options.values_list("text", flat=True)) == [last, "a", "b", "a", "c", "a"]
    shown = StepReview.objects.filter(step__position=1).order_by("pk").values_list("shown", flat=True)
    assert list(shown) == ["0 1 2 3", "0 2 4 1 3 5", "0 1 2 3"]
    assert export_lines(project) == lines


def test_load_finds_added_steps_without_options() -> None:
    project = factories.make_project()
    nothing = {"completions": None, "human_completion": None, "chosen_completion": None}
    steps = [*(prm.make_step(text) for text in ("2 + 2 = 4", "4 + 2 = 7", "So 7.")), nothing]
    lines = [prm.make_line(labeler="ann", steps=steps), prm.make_line(labeler="ben", steps=steps)]
    load_lines(project, *lines, chunk=1)
    assert Step.objects.count() == 4
    assert export_lines(project) == lines


def test_load_keeps_screening_and_quality_control_apart_from_work() -> None:
    project = factories.make_project()
    load_lines(
        project,
        prm.make_line(),
        prm.make_line(is_quality_control_question=True),
        prm.make_line(is_initial_screening_question=True),
        prm.make_line(is_initial_screening_question=None, is_quality_control_question=None),
    )
    found = Assignment.objects.order_by("pk").values_list("purpose", "attempt", "origin", "state")
    assert list(found) == [
        ("work", 1, "imported", "submitted"),
        ("gold", 1, "imported", "submitted"),
        ("screening", 1, "imported", "submitted"),
        ("work", 2, "imported", "submitted"),
    ]


def test_load_without_labels_adds_only_traces() -> None:
    project = factories.make_project()
    report = load_lines(project, prm.make_line(), labels="none")
    assert (report.traces_added, report.steps_added, report.submissions_added) == (1, 3, 0)
    assert not Rater.objects.filter(project=project).exists()


def test_load_distinguishes_problems_by_answer() -> None:
    project = factories.make_project()
    load_lines(
        project,
        prm.make_line(),
        prm.make_line(ground_truth_answer=None),
        prm.make_line(pre_generated_verifier_score=0.5),
    )
    assert Problem.objects.count() == 2
    assert Trace.objects.count() == 3


def test_load_holds_out_the_same_problems_in_every_project() -> None:
    lines = [prm.make_line(problem=f"What is {number}?") for number in range(60)]
    reserves = []
    for _ in range(2):
        project = factories.make_project(reserve_problem_share=0.3)
        load_lines(project, *lines)
        reserves.append(set(Problem.objects.filter(project=project, is_reserve=True).values_list("text", flat=True)))
    assert reserves[0] == reserves[1]
    assert 5 < len(reserves[0]) < 35


@pytest.mark.parametrize(
    "table",
    [trace_rows.TURN, trace_rows.JUDGMENT],
    ids=lambda table: table.name,
)
def test_large_tables_have_no_default_columns(table: BulkTable) -> None:
    assert table.defaults == ()


def test_ids_do_not_collide_with_rows_added_meanwhile() -> None:
    project = factories.make_project()
    load_lines(project, prm.make_line())
    factories.make_trace(project)
    load_lines(project, prm.make_line(problem="Another?"))
    factories.make_trace(project)
    assert Trace.objects.count() == 4


def test_load_skips_a_bad_line() -> None:
    project = factories.make_project()
    report = load_lines(project, prm.make_line(), b"{", prm.make_line(labeler="ben"))
    assert report.submissions_added == 2
