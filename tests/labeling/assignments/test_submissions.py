"""A submit records its edits, applies the protocol, and makes one immutable revision."""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from events.models import Event
from labeling import assignments
from labeling.models import Assignment, Judgment, Project, RatingEdit, Step, StepReview, Submission
from labeling.models.assignment import FinishReason
from labeling.projects.protocols import SubmitCode, SubmitState
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient, current_ratings

pytestmark = pytest.mark.django_db


@pytest.fixture
def assignment() -> Assignment:
    project = factories.make_project()
    trace = factories.make_trace(project, ["One.", ["Two.", "Too.", "To."], "Three."])
    return factories.make_assignment(factories.make_rater(project), trace)


def submit(
    client: WorkPageClient, *writes: assignments.IncomingEdit, now: dt.datetime = factories.NOW, **more: object
) -> Submission:
    by = client.assignment.rater.user
    return assignments.submit(**client.place, writes=writes, now=now, by=by, **more)  # type: ignore[arg-type]  # passed on


def turns(assignment: Assignment, revision: int = 1) -> list[tuple[int, str | None, int | None]]:
    rows = StepReview.objects.filter(assignment=assignment, revision=revision).order_by("step__position")
    return list(rows.values_list("step__position", "shown", "chosen"))


def test_submit_of_a_trace_without_an_error(assignment: Assignment, now: dt.datetime) -> None:
    client = WorkPageClient(assignment)
    client.send(client.write(0, 1, active_ms=900), client.write(1, 0, active_ms=100))
    submission = submit(client, client.write(2, 1, active_ms=50), reason="Nice.")
    assert (submission.revision, submission.finish_reason, submission.total_ms) == (1, "solution", 1050)
    assert (submission.finish_note, submission.submitted_at) == ("Nice.", now)
    assignment.refresh_from_db()
    assert (assignment.state, assignment.submitted_at, assignment.finish_reason) == ("submitted", now, "solution")
    assert (assignment.submitted_revision, assignment.population, assignment.holds_slot) == (1, "scheduled", True)
    assert turns(assignment) == [(0, "0", 0), (1, "0", 0), (2, "0", 0)]
    event = Event.objects.get(what="submission.made")
    assert (event.by, event.subject) == (assignment.rater.user_id, f"assignment:{assignment.pk}")
    assert event.detail == {"revision": 1, "finish_reason": "solution", "was_late": False, "counts_as": None}


def test_submit_of_an_error_ends_there_and_has_its_alternatives(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    client.rate([1, 1, 1])
    submission = submit(client, client.write(1, -1), client.write(1, 1, option=1), client.write(1, 0, option=2))
    assert submission.finish_reason == "found_error"
    assert current_ratings(assignment) == {(0, 0): 1, (1, 0): -1, (1, 1): 1, (1, 2): 0}
    assert turns(assignment) == [(0, "0", 0), (1, "0 1 2", None)]
    assert RatingEdit.objects.filter(step=2).exists()


def test_every_step_protocol_continues_after_an_error(assignment: Assignment) -> None:
    assignment.project.protocol = "every_step"
    assignment.project.save()
    client = WorkPageClient(assignment)
    client.rate([1, -1, 1])
    assert submit(client).finish_reason == "solution"
    assert turns(assignment) == [(0, "0", 0), (1, "0", 0), (2, "0", 0)]


def test_marks_after_an_error_are_stored_corrected_and_undone(assignment: Assignment) -> None:
    assignment.project.protocol = "recovery"
    assignment.project.save()
    client, other = WorkPageClient(assignment), WorkPageClient(assignment, "other")
    client.send(client.write(0, -1))
    client.send(client.write(1, 1, error_link="recovers"))
    [lost] = other.send(other.write(1, 1, error_link="independent")).lost
    assert lost.judgment.error_link == "recovers"
    assert submit(client, client.write(2, 0, error_link="independent")).protocol == "recovery"
    assert Submission.objects.get().protocol == "recovery"
    links = Judgment.objects.order_by("turn__revision", "turn__step__position").values_list("error_link", flat=True)
    assert list(links) == ["", "recovers", "independent"]
    edit = RatingEdit.objects.get(client="other")
    assert (edit.error_link, edit.was_applied) == ("independent", False)
    row = assignments.reopen_submission(
        assignment_id=assignment.pk, rater_id=assignment.rater_id, now=factories.NOW, by=None
    )
    assert row is not None
    assert list(links.all()) == ["", "recovers", "independent"] * 2
    client.send(client.write(1, 1, kind="undo"))
    assert list(links.filter(turn__revision=2)) == ["", "", "independent"]


def test_submit_without_a_required_kind_is_refused(assignment: Assignment) -> None:
    Project.objects.update(protocol="every_step", asks_error_category=True, needs_error_category=True)
    client = WorkPageClient(assignment)
    client.rate([1, -1, -1])
    with pytest.raises(assignments.SubmissionIncomplete) as refusal:
        submit(client)
    assert refusal.value.state == SubmitState(SubmitCode.EXPLAIN_ERROR, missing=2, number=2)
    client.send(client.write(1, -1, category="a b"), client.write(2, -1, category="c"))
    assert submit(client).revision == 1


@pytest.mark.parametrize("severity", [0, 4])
def test_unknown_severity_is_refused(assignment: Assignment, severity: int) -> None:
    client = WorkPageClient(assignment)
    with pytest.raises(assignments.EditRefused) as refusal:
        client.send(client.write(0, -1, severity=severity))
    assert refusal.value.field == "severity"


def test_severity_is_stored_and_kept_in_a_correction(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    client.send(client.write(0, -1, severity=1))
    submit(client, client.write(0, -1, severity=3))
    assignments.reopen_submission(assignment_id=assignment.pk, rater_id=assignment.rater_id, now=factories.NOW, by=None)
    assert list(Judgment.objects.order_by("turn__revision").values_list("severity", flat=True)) == [3, 3]
    assert list(RatingEdit.objects.order_by("sequence").values_list("severity", flat=True)) == [1, 3]


def test_unknown_mark_is_refused(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    with pytest.raises(assignments.EditRefused) as refusal:
        client.send(client.write(0, 1, error_link="maybe"))
    assert refusal.value.field == "error_link"


def test_incomplete_submit_is_refused_and_keeps_its_edits(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    with pytest.raises(assignments.SubmissionIncomplete) as refusal:
        submit(client, client.write(0, 1), client.write(1, 1))
    assert refusal.value.state == SubmitState(SubmitCode.FIND_NEGATIVE, missing=1)
    assert current_ratings(assignment) == {(0, 0): 1, (1, 0): 1}
    assignment.refresh_from_db()
    assert (assignment.state, assignment.version) == ("opened", 1)


def test_second_submit_returns_the_same_submission(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    writes = [client.write(step, 1) for step in range(3)]
    first = submit(client, *writes)
    assert submit(client, *writes) == first
    assert submit(client, *writes, revision=1) == first
    assert Submission.objects.count() == 1
    assert RatingEdit.objects.count() == 3


def test_late_edits_are_stored_and_not_applied(assignment: Assignment) -> None:
    client, other = WorkPageClient(assignment), WorkPageClient(assignment, "other")
    client.rate([1, 1, 1])
    submit(client)
    late = other.write(0, -1)
    answer = other.send(late)
    assert answer.is_late
    [lost] = answer.lost
    assert (lost.sequence, lost.judgment.rating, lost.client) == (1, 1, "window")
    assert other.send(late).lost == answer.lost
    assert current_ratings(assignment) == {(0, 0): 1, (1, 0): 1, (2, 0): 1}
    kept = RatingEdit.objects.get(client="other")
    assert (kept.was_late, kept.was_applied) == (True, False)


def test_submit_is_refused_while_edits_of_another_window_are_unseen(assignment: Assignment) -> None:
    client, other = WorkPageClient(assignment), WorkPageClient(assignment, "other")
    offline = [client.write(step, 1) for step in range(3)]
    other.rate([1, 0, 1])
    other.rate([1, 0, 1])
    with pytest.raises(assignments.ConflictingEdits) as refused:
        submit(client, *offline)
    assert [(each.target.step, each.judgment.rating) for each in refused.value.lost] == [(0, 1), (1, 0), (2, 1)]
    assert current_ratings(assignment) == {(0, 0): 1, (1, 0): 0, (2, 0): 1}
    client.seen = Assignment.objects.get().version
    assert submit(client, client.write(1, 1)).finish_reason == "solution"
    assert current_ratings(assignment) == {(0, 0): 1, (1, 0): 1, (2, 0): 1}


def test_refusal_counts_steps_as_the_work_page_does(assignment: Assignment) -> None:
    Step.objects.filter(trace=assignment.trace, position=0).update(is_rateable=False)
    client, other = WorkPageClient(assignment), WorkPageClient(assignment, "other")
    offline = [client.write(2, 1)]
    other.send(other.write(2, 0))
    other.send(other.write(2, -1))
    with pytest.raises(assignments.ConflictingEdits) as refused:
        submit(client, *offline)
    assert refused.value.numbers == [2]


NO_ERROR = assignments.SubmitPromise(seen=0, code="no_error")


def showing(ratings: list[tuple[int, int, int]]) -> assignments.SubmitPromise:
    return assignments.SubmitPromise(seen=0, code="no_error", ratings=ratings)


@pytest.mark.parametrize(
    ("promise", "is_kept"),
    [
        (NO_ERROR, True),
        (assignments.SubmitPromise(seen=0, code="first_error", number=2), False),
        (None, True),
        (showing([(2, 0, 1), (0, 0, 1), (1, 0, 1)]), True),
        (showing([(0, 0, 1), (1, 0, 0), (2, 0, 1)]), False),  # it showed another rating
        (showing([(0, 0, 1), (1, 0, 1)]), False),
    ],
)
def test_submit_stores_the_ending_that_was_promised(
    assignment: Assignment, promise: assignments.SubmitPromise | None, is_kept: bool
) -> None:
    client = WorkPageClient(assignment)
    writes = [client.write(step, 1) for step in range(3)]
    if is_kept:
        assert submit(client, *writes, promise=promise).finish_reason == "solution"
    else:
        with pytest.raises(assignments.UnseenRatings):
            submit(client, *writes, promise=promise)
        assert not Submission.objects.exists()
        assert current_ratings(assignment) == {(0, 0): 1, (1, 0): 1, (2, 0): 1}


def test_corrected_step_is_submitted_only_with_a_negative_rating(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    texts = [client.write(step, None, kind="write_step", option=None, text="Rather.") for step in (0, 1)]
    client.send(*texts, client.write(0, -1), client.write(1, -1))
    client.send(client.write(0, 1), *(client.write(1, -1, option=option) for option in (1, 2)))
    kept = StepReview.objects.order_by("step__position").values_list("written_text", flat=True)
    assert list(kept) == ["Rather.", "Rather."]  # it is there again if the step becomes negative
    submit(client)
    assert list(kept.all()) == [None, "Rather."]


def test_submit_needs_to_have_seen_the_edits_of_other_windows(assignment: Assignment) -> None:
    client, other = WorkPageClient(assignment), WorkPageClient(assignment, "other")
    client.rate([1, 1, 1])
    seen = Assignment.objects.get().version
    other.seen = seen
    other.send(other.write(1, 0))  # the ending stays the same, a rating does not
    with pytest.raises(assignments.UnseenRatings):
        submit(client, promise=assignments.SubmitPromise(seen=seen, code="no_error"))
    seen = Assignment.objects.get().version
    assert submit(client, promise=assignments.SubmitPromise(seen=seen, code="no_error")).revision == 1


def test_repeated_submit_is_told_apart_from_one_of_another_window(assignment: Assignment) -> None:
    client, other = WorkPageClient(assignment), WorkPageClient(assignment, "other")
    writes = [client.write(step, 1) for step in range(3)]
    first = submit(client, *writes, promise=NO_ERROR)
    assert submit(client, *writes, promise=NO_ERROR) == first  # its answer was lost
    with pytest.raises(assignments.AlreadySubmitted):
        submit(other, other.write(1, -1), promise=assignments.SubmitPromise(seen=0, code="first_error", number=2))
    with pytest.raises(assignments.AlreadySubmitted):
        submit(other, promise=NO_ERROR)  # it never saw the ratings
    with pytest.raises(assignments.AlreadySubmitted):
        submit(client, promise=NO_ERROR, ending=FinishReason.GIVE_UP, reason="?")
    assert list(Submission.objects.all()) == [first]
    assert RatingEdit.objects.get(client="other").was_late


@pytest.mark.parametrize("state", ["released", "lapsed"])
def test_late_submission_without_a_free_slot_is_extra(assignment: Assignment, now: dt.datetime, state: str) -> None:
    Assignment.objects.update(state=state, holds_slot=False, ended_at=now)
    client = WorkPageClient(assignment)
    submit(client, *(client.write(step, 1) for step in range(3)))
    assignment.refresh_from_db()
    assert (assignment.state, assignment.population, assignment.holds_slot) == ("submitted", "extra", False)


def test_late_submission_takes_a_free_slot(assignment: Assignment, now: dt.datetime) -> None:
    entry = factories.make_entry(factories.make_lane(assignment.project), assignment.trace, slots=1)
    Assignment.objects.update(state="lapsed", holds_slot=False, ended_at=now)
    client = WorkPageClient(assignment)
    submit(client, *(client.write(step, 1) for step in range(3)))
    assignment.refresh_from_db()
    assert (assignment.population, assignment.holds_slot) == ("scheduled", True)
    entry.refresh_from_db()
    assert entry.slots_left == 0


def test_submission_of_a_removed_rater_takes_no_slot(assignment: Assignment, now: dt.datetime) -> None:
    entry = factories.make_entry(factories.make_lane(assignment.project), assignment.trace, slots=1)
    Assignment.objects.update(state="lapsed", holds_slot=False, ended_at=now)
    assignment.rater.removed_at = now
    assignment.rater.save()
    client = WorkPageClient(assignment)
    submit(client, *(client.write(step, 1) for step in range(3)))
    assignment.refresh_from_db()
    assert (assignment.population, assignment.holds_slot) == ("extra", False)
    entry.refresh_from_db()
    assert entry.slots_left == 1


def test_give_up_and_report_need_no_ratings(assignment: Assignment, now: dt.datetime) -> None:
    client = WorkPageClient(assignment)
    by = assignment.rater.user
    made = assignments.give_up(**client.place, writes=[client.write(0, 1)], reason="Too long.", now=now, by=by)
    assert (made.finish_reason, made.finish_note) == ("give_up", "Too long.")
    other = factories.make_assignment(assignment.rater, factories.make_trace(assignment.project))
    made = assignments.report_problem(**WorkPageClient(other).place, reason="No figure.", now=now, by=by)
    assert (made.finish_reason, made.finish_note) == ("bad_problem", "No figure.")
    assert list(Event.objects.order_by("id").values_list("what", flat=True)) == ["trace.given_up", "problem.reported"]


def test_report_problem_opens_a_held_trace(assignment: Assignment, now: dt.datetime) -> None:
    Assignment.objects.update(state="held", opened_at=None)
    assignments.report_problem(**WorkPageClient(assignment).place, reason="Unclear.", now=now, by=None)
    assignment.refresh_from_db()
    assert (assignment.state, assignment.opened_at) == ("submitted", now)


def test_submit_takes_few_statements(assignment: Assignment) -> None:
    client = WorkPageClient(assignment)
    client.rate([1, 1, 1])
    with CaptureQueriesContext(connection) as queries:
        submit(client)
    # Read the answer sheet, then write the submission, its assignment and the event. The worker counts the trace later.
    assert len(queries) == 2


def test_submit_opens_the_held_trace_of_the_same_rater_only(assignment: Assignment, now: dt.datetime) -> None:
    trace = factories.make_trace(assignment.project)
    held = factories.make_assignment(assignment.rater, trace, state="held", opened_at=None)
    other = factories.make_assignment(factories.make_rater(assignment.project), trace, state="held", opened_at=None)
    for opens, is_opened in ((other.pk, False), (held.pk, True)):
        client = WorkPageClient(assignment)
        client.rate([1, 1, 1])
        submission = assignments.submit(**client.place, now=now, by=None, opens=opens)
        row = Assignment.objects.get(pk=opens)
        assert (row.state, submission.opened_version) == (("opened", row.version) if is_opened else ("held", None))
        assignment = factories.make_assignment(
            assignment.rater, factories.make_trace(assignment.project, ["One.", "Two.", "Three."])
        )


def test_submit_counts_the_time_after_the_last_rating(assignment: Assignment) -> None:
    """A rater who checks everything, or gives up after minutes without a rating, has worked."""
    client = WorkPageClient(assignment)
    client.send(client.write(0, 1, active_ms=900))
    submission = assignments.give_up(**client.place, reason="No figure.", now=factories.NOW, by=None, active_ms=2_000)
    assert submission.total_ms == 2_900


def test_submission_time_is_at_most_the_time_since_the_claim(assignment: Assignment, now: dt.datetime) -> None:
    client = WorkPageClient(assignment)
    writes = [client.write(step, 1, active_ms=40_000) for step in range(3)]
    submission = submit(client, *writes, now=now + dt.timedelta(minutes=1), active_ms=86_400_000)
    assert submission.total_ms == 65_000
    assert list(StepReview.objects.values_list("active_ms", flat=True)) == [40_000] * 3
