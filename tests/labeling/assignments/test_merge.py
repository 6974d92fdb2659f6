"""For any edits of two clients in any order of arrival, the result follows the merge rules. The oracle is independent
of the code: it keeps every edit that arrived in a list and applies the rules pair by pair.
"""

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from labeling import assignments, queue
from labeling.assignments.merge import EditStamp, edit_wins
from labeling.models import Assignment, QueueEntry, RatingEdit, StepReview, Submission
from labeling.projects import protocols
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient, current_ratings

pytestmark = pytest.mark.django_db

NAMES = ("one", "other")
STEPS = (["a", "b"], ["c"], ["d", "e"])
PLACES = [(step, option) for step, options in enumerate(STEPS) for option in range(len(options))]

marks = st.builds(EditStamp, st.sampled_from(NAMES), st.integers(1, 5), st.integers(0, 5))


@given(new=marks, standing=marks, newest=st.integers(0, 5))
def test_edit_wins_never_lets_a_client_go_back(new: EditStamp, standing: EditStamp, newest: int) -> None:
    assert not (edit_wins(new, standing, newest) and new.sequence <= newest)


@given(new=marks, standing=marks)
def test_edit_that_saw_more_wins_between_clients(new: EditStamp, standing: EditStamp) -> None:
    if new.client != standing.client:
        assert edit_wins(new, standing, 0) == (new.seen >= standing.seen)


def test_first_edit_of_a_target_wins() -> None:
    assert edit_wins(EditStamp("one", 1, 0), None, 0)


@dataclass
class Oracle:
    """The expected values of all targets, the origin of each, and everything that has arrived."""

    cells: dict[tuple[int, int], int | None] = field(default_factory=dict)
    marks: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)
    arrived: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    late: set[tuple[str, int]] = field(default_factory=set)
    active_ms: int = 0

    def arrive(self, client: str, batch: list[assignments.IncomingEdit], *, version: int, is_closed: bool) -> None:
        fresh = [write for write in batch if (client, write.sequence) not in self.arrived]
        for write in sorted(fresh, key=lambda each: each.sequence):
            place, seen = (write.step, write.option or 0), min(write.seen, version)
            is_outdone = any(
                who == client and number > write.sequence and where == place
                for (who, number), where in self.arrived.items()
            )
            self.arrived[client, write.sequence] = place
            if is_closed:
                self.late.add((client, write.sequence))
                continue
            self.active_ms += write.active_ms
            holder = self.marks.get(place)
            if not is_outdone and (holder is None or holder[0] == client or seen >= holder[1]):
                self.marks[place] = (client, seen)
                self.cells[place] = write.rating


class Windows(RuleBasedStateMachine):
    """Two windows of one rater, each with an outbox; messages may wait, come again, or overtake each other."""

    def __init__(self) -> None:
        super().__init__()
        self.undone = transaction.atomic()  # each run starts from nothing
        self.undone.__enter__()

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.undone.__exit__(None, None, None)

    @initialize(protocol=st.sampled_from(["first_error", "every_step"]))
    def begin(self, protocol: str) -> None:
        self.now = factories.NOW
        project = factories.make_project(protocol=protocol)
        trace = factories.make_trace(project, STEPS)
        self.entry = factories.make_entry(factories.make_lane(project), trace, slots=0)
        self.assignment = factories.make_assignment(factories.make_rater(project), trace, lane=self.entry.lane)
        self.clients = {name: WorkPageClient(self.assignment, name) for name in NAMES}
        self.outbox: dict[str, list[assignments.IncomingEdit]] = {name: [] for name in NAMES}
        self.sent: list[tuple[str, list[assignments.IncomingEdit]]] = []
        self.oracle, self.frozen = Oracle(), dict[int, Any]()

    @rule(name=st.sampled_from(NAMES), place=st.sampled_from(PLACES), rating=st.sampled_from([-1, 0, 1, None]))
    def rate(self, name: str, place: tuple[int, int], rating: int | None) -> None:
        step, option = place
        kind = "undo" if rating is None else "rate"
        self.outbox[name].append(self.clients[name].write(step, rating, kind=kind, option=option, active_ms=7))

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 4), from_end=st.booleans(), answered=st.booleans())
    def send(self, name: str, count: int, from_end: bool, answered: bool) -> None:
        """Send some messages of the outbox, also out of order; the answer may get lost."""
        outbox = self.outbox[name]
        batch = outbox[-count:] if from_end else outbox[:count]
        self.outbox[name] = [write for write in outbox if write not in batch]
        self.sent.append((name, batch))
        recorded = self._deliver(name, batch)
        if answered:
            self.clients[name].seen = recorded.version

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        name, batch = data.draw(st.sampled_from(self.sent))
        self._deliver(name, batch)

    def _deliver(self, name: str, batch: list[assignments.IncomingEdit]) -> assignments.RecordedBatch:
        row = Assignment.objects.get(pk=self.assignment.pk)
        self._expect(name, batch, row)
        recorded = assignments.record_edits(**self.clients[name].place, writes=batch, now=self.now)
        assert set(recorded.sequences) == {write.sequence for write in batch}
        assert recorded.is_late == (bool(batch) and is_closed(row))
        return recorded

    def _expect(self, name: str, batch: list[assignments.IncomingEdit], row: Assignment) -> None:
        self.oracle.arrive(name, batch, version=row.version, is_closed=is_closed(row))

    @rule(name=st.sampled_from(NAMES), carries=st.booleans(), gives_up=st.booleans())
    def submit(self, name: str, carries: bool, gives_up: bool) -> None:
        batch = self.outbox[name] if carries else []
        self.outbox[name] = [] if carries else self.outbox[name]
        row = Assignment.objects.get(pk=self.assignment.pk)
        self._expect(name, batch, row)
        place = {**self.clients[name].place, "writes": batch, "now": self.now, "by": None}
        try:
            made = assignments.give_up(**place, reason="?") if gives_up else assignments.submit(**place)
        except (assignments.SubmissionIncomplete, assignments.ConflictingEdits):
            return
        if not is_closed(row):
            self._expect_submitted(made, row)

    def _expect_submitted(self, made: Submission, row: Assignment) -> None:
        assert made.revision == row.revision == row.submitted_revision + 1
        if row.project.protocol == "first_error":
            end = protocols.find_end(
                "first_error",
                [protocols.ProtocolStep(step, True, (self.oracle.cells.get((step, 0)),)) for step in range(len(STEPS))],
            )
            dropped = [place for place in self.oracle.cells if end is not None and place[0] > end]
            for place in dropped:
                del self.oracle.cells[place]
        self.frozen[made.revision] = self._content(made.revision)

    def _content(self, revision: int) -> tuple[object, ...]:
        made = Submission.objects.filter(assignment=self.assignment, revision=revision).values()
        turns = StepReview.objects.filter(assignment=self.assignment, revision=revision).order_by("id").values()
        return list(made), list(turns), sorted(current_ratings(self.assignment, revision).items(), key=str)

    @rule()
    def lapse(self) -> None:
        queue.lapse_expired_leases(now=self.now + dt.timedelta(days=2))

    @rule()
    def release(self) -> None:
        queue.release_assignment(assignment_id=self.assignment.pk, now=self.now, reason="left", by=None)

    @rule()
    def reopen(self) -> None:
        row = Assignment.objects.get(pk=self.assignment.pk)
        try:
            assignments.reopen_submission(assignment_id=row.pk, rater_id=row.rater_id, now=self.now, by=None)
        except assignments.CorrectionRefused:
            assert row.state != "submitted"

    @rule()
    def discard(self) -> None:
        row = Assignment.objects.get(pk=self.assignment.pk)
        assignments.discard_correction(assignment_id=row.pk, rater_id=row.rater_id, now=self.now, by=None)
        if row.reopened_at is not None:
            self.oracle.cells = dict(current_ratings(row, row.submitted_revision))

    @rule(minutes=st.integers(1, 60))
    def time_passes(self, minutes: int) -> None:
        self.now += dt.timedelta(minutes=minutes)

    @invariant()
    def cells_are_what_the_rule_says(self) -> None:
        row = Assignment.objects.get(pk=self.assignment.pk)
        assert current_ratings(row, row.revision) == self.oracle.cells

    @invariant()
    def history_holds_each_write_once(self) -> None:
        rows = RatingEdit.objects.filter(assignment=self.assignment)
        kept = sorted(rows.values_list("client", "sequence"))
        assert kept == sorted(self.oracle.arrived)
        assert set(rows.filter(was_late=True).values_list("client", "sequence")) == self.oracle.late

    @invariant()
    def slots_are_conserved(self) -> None:
        left = sum(QueueEntry.objects.filter(trace=self.assignment.trace_id).values_list("slots_left", flat=True))
        assert left + Assignment.objects.filter(pk=self.assignment.pk, holds_slot=True).count() == 1

    @invariant()
    def submitted_revisions_never_change(self) -> None:
        assert Submission.objects.filter(assignment=self.assignment).count() == len(self.frozen)
        for revision, content in self.frozen.items():
            assert self._content(revision) == content

    @invariant()
    def submitted_has_a_time_and_a_reason(self) -> None:
        row = Assignment.objects.get(pk=self.assignment.pk)
        is_submitted = row.state == "submitted"
        assert (row.submitted_at is not None) == (row.finish_reason is not None) == is_submitted
        assert row.submitted_revision == len(self.frozen)


def is_closed(row: Assignment) -> bool:
    return row.state == "submitted" and row.reopened_at is None


TestWindows = pytest.mark.fault(Windows.TestCase)
TestWindows.settings = settings(
    max_examples=12, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
