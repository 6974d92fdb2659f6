"""Halves of pairs: imported, exported, and never both given to one rater."""

import datetime as dt
import io
import json
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formats import native
from formats.records import BadLine, TraceRecord
from labeling import queue
from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import Assignment, PairedTrace, PairReader, Project, QueueEntry
from labeling.traces import load
from labeling.traces.load import LoadState
from tests import factories
from tests.concurrency import run_at_once
from tests.formats.export_rows import make_example, write_rows
from tests.labeling.queue import queues

RECORD = {"problem": "p", "steps": ["a", "b"], "pair": "hint-1", "pair_half": "with"}
HALVES = ("with", "without")


def make_pair(project: Project, traces: list[int], name: str = "hint-1") -> None:
    """Make halves of one pair of these traces, in turn."""
    rows = [(trace, HALVES[place % 2]) for place, trace in enumerate(traces)]
    PairedTrace.objects.bulk_create(
        PairedTrace(trace_id=trace, project=project, pair=name, half=half) for trace, half in rows
    )


def find_readers_of_both(project: Project) -> list[tuple[int, str]]:
    """Return the raters who have assignments of both halves, by the assignments alone."""
    given = Assignment.objects.filter(project=project, trace__pairing__isnull=False)
    halves: dict[tuple[int, str], set[str]] = {}
    for rater, pair, half in given.values_list("rater_id", "trace__pairing__pair", "trace__pairing__half"):
        halves.setdefault((rater, pair), set()).add(half)
    return [key for key, found in halves.items() if len(found) > 1]


def test_a_pair_and_its_reasoning_come_back() -> None:
    source = {**RECORD, "reasoning": "summarised", "reasoning_by": "summary-model"}
    (record,) = native.read(io.BytesIO(json.dumps({**source, "labels": [1, 1], "labeler": "r1"}).encode()))
    assert isinstance(record, TraceRecord)
    [row] = write_rows("native", make_example(record))
    assert source.items() <= {**row, "steps": source["steps"]}.items()
    (again,) = native.read(io.BytesIO(json.dumps(row).encode()))
    assert isinstance(again, TraceRecord)
    assert (again.pair, again.pair_half) == ("hint-1", "with")


@pytest.mark.parametrize("wrong", [{"pair_half": None}, {"pair": ""}, {"pair_half": "half"}, {"reasoning": "secret"}])
def test_half_a_statement_is_refused(wrong: dict[str, object]) -> None:
    (bad,) = native.read(io.BytesIO(json.dumps({**RECORD, **wrong}).encode()))
    assert isinstance(bad, BadLine)


@pytest.mark.django_db
def test_the_other_half_is_never_given() -> None:
    project = factories.make_project()
    traces = queues.fill_lane(project, 4, slots=2)
    make_pair(project, traces[:2])
    rater, other = queues.make_raters(project, 2)
    assert queues.claim_all(rater, factories.NOW, chance=queues.UNIFORM) == [traces[0], *traces[2:]]
    assert PairReader.objects.get().rater_id == rater.pk
    # The slots of the other half are left for others, and the rater is told that the rest is not theirs.
    QueueEntry.objects.filter(trace=traces[0]).update(slots_left=0)
    assert queues.claim_all(other, factories.NOW, chance=queues.UNIFORM) == traces[1:]
    assert queue.explain_nothing_left([rater.pk])[rater.pk].code == "kept_for_others"


@pytest.mark.django_db
def test_a_half_held_by_others_is_not_promised() -> None:
    project = factories.make_project()
    traces = queues.fill_lane(project, 2)
    make_pair(project, traces)
    rater, other = queues.make_raters(project, 2)
    for each in (rater, other):
        queue.claim_trace(rater_id=each.pk, now=factories.NOW, opened=True, chance=queues.UNIFORM)
    assert queue.explain_nothing_left([rater.pk])[rater.pk].free_at is None


@pytest.mark.fault
@pytest.mark.django_db
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    halves=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(HALVES), st.sampled_from(["uniform", "reserve"]))),
    moves=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["submit", "skip", "hold", "lapse"])), max_size=14),
)
def test_no_order_of_claims_gives_both_halves(halves: list[tuple[int, str, str]], moves: list[tuple[int, str]]) -> None:
    project = factories.make_project(open_limit=50)
    now = factories.NOW
    for pair, half, arm in halves:
        (trace,) = queues.fill_lane(project, 1, arm=arm, slots=2)
        PairedTrace.objects.create(trace_id=trace, project=project, pair=str(pair), half=half)
    raters = queues.make_raters(project, 3)
    for number, move in moves:
        now += dt.timedelta(hours=2)
        if move == "lapse":
            queue.lapse_expired_leases(now=now, project_id=project.pk)
            continue
        try:
            claim = queue.claim_trace(rater_id=raters[number].pk, now=now, opened=move != "hold")
        except queue.NothingLeft:
            continue
        if move == "submit":
            queues.submit_assignment(claim.assignment_id, now)
        elif move == "skip":
            queue.release_assignment(assignment_id=claim.assignment_id, now=now, reason="skipped", by=None)
        assert find_readers_of_both(project) == []


@pytest.mark.django_db
@pytest.mark.fault
@pytest.mark.usefixtures("real_connections")
def test_concurrent_claims_of_one_rater_take_one_half(now: dt.datetime) -> None:
    project = factories.make_project(open_limit=9)
    traces = queues.fill_lane(project, 6, slots=2)
    make_pair(project, traces)
    rater = factories.make_rater(project)
    claims = run_at_once(*[partial(queue.claim_trace, rater_id=rater.pk, now=now, opened=True)] * 5)
    assert len([each for each in claims if isinstance(each, queue.Claim)]) == 3, claims
    assert find_readers_of_both(project) == []
    assert queues.is_balanced(traces)


@pytest.mark.django_db
def test_labelers_of_a_file_are_readers() -> None:
    project = factories.make_project()
    lines = [{**RECORD, "labels": [1, 1], "labeler": "r1"}, {**RECORD, "pair_half": "without"}]
    for _ in range(2):  # a second import adds nothing
        records = native.read(io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines)))
        state = LoadState(project=project, source=factories.make_source(project))
        load.load_chunk(state=state, records=list(records), now=factories.NOW)
    assert set(PairedTrace.objects.values_list("pair", "half")) == {("hint-1", "with"), ("hint-1", "without")}
    reader = PairReader.objects.get()
    assert (reader.rater.labeler, reader.half) == ("r1", "with")
    frozen = manifest.freeze_manifest(
        project=project, filters=ManifestFilters(), purpose="archive", now=factories.NOW, by=None
    )
    [[row]] = manifest.read_row_chunks(frozen, chunk=3, has_names=True)
    assert (row.record.pair, row.record.pair_half) == ("hint-1", "with")
