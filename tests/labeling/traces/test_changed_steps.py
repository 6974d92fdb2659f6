"""Traces whose steps are split and merged by hand."""

import pytest

from accounts.models import User
from events.models import Event
from formats.records import ProblemRecord, StepChange
from labeling import queue
from labeling.models import Option, Project, Provenance, Step, Trace
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from labeling.traces import tags
from labeling.traces.changed_steps import change_trace_steps, find_replaced_trace, load_step_records, restore_steps
from labeling.traces.record_changes import CannotChangeSteps
from labeling.traces.trace_rows import digest_problem
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db
SPLIT = [StepChange(0, (4,)), StepChange(2, merges=True)]


@pytest.fixture
def lead() -> User:
    return factories.make_user()


@pytest.fixture
def project() -> Project:
    return factories.make_project(overlap=3)


def make_queued(project: Project, **fields: object) -> Trace:
    problem = factories.make_problem(project)
    problem.digest = digest_problem(ProblemRecord(problem.text, answer=problem.reference_answer))
    problem.save(update_fields=["digest"])
    trace = factories.make_trace(project, steps=["One. And.", "Two.", "Three."], problem=problem, **fields)
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=[trace.pk], slots=3, now=NOW)
    return trace


def texts(trace: Trace) -> list[str]:
    return [step.options[0].text for step in load_step_records(trace)]


def test_changed_steps_make_a_queued_trace_and_withdraw_the_old_one(project: Project, lead: User) -> None:
    made = Provenance.objects.create(project=project, digest="1" * 64, policy="p", segmenter="lines 2")
    old = make_queued(project, provenance=made, ref="x-1", is_right=True, outcome_by="file", metadata={"a": 1})
    tags.add_tag(project_id=project.pk, trace_ids=[old.pk], name="hard", by=lead, now=NOW)
    new = change_trace_steps(trace=old, changes=SPLIT, by=lead, now=NOW)
    old.refresh_from_db()
    assert texts(new) == ["One.", "And.", "Two.\nThree."]
    assert (new.n_steps, new.problem, new.ref, new.is_right, new.metadata) == (3, old.problem, "x-1", True, {"a": 1})
    assert new.provenance is not None
    assert (new.provenance.policy, new.provenance.segmenter) == ("p", "lines 2, by hand 1")
    assert [tag.name for tag in new.tags.all()] == ["hard"]
    assert (old.withdrawn_at, new.withdrawn_at) == (NOW, None)
    assert (old.queue_entries.get().slots_left, new.queue_entries.get().slots_left) == (0, 3)
    changes = [{"position": 0, "cuts": [4], "merges": False}, {"position": 2, "cuts": [], "merges": True}]
    events = {event.subject: event for event in Event.objects.filter(what__in=["trace.made_by_hand", "trace.replaced"])}
    assert {event.by for event in events.values()} == {lead.pk}
    assert events[f"trace:{new.pk}"].detail == {"of": old.pk, "changes": changes}
    assert events[f"trace:{old.pk}"].detail == {"replaced_by": new.pk, "changes": changes}


def test_change_can_be_undone_and_repeated(project: Project, lead: User) -> None:
    old = make_queued(project)
    new = change_trace_steps(trace=old, changes=SPLIT, by=lead, now=NOW)
    assert find_replaced_trace(new) == old
    assert restore_steps(trace=new, by=lead, now=NOW) == old
    old.refresh_from_db()
    new.refresh_from_db()
    assert (old.withdrawn_at, new.withdrawn_at) == (None, NOW)
    assert (old.queue_entries.get().slots_left, new.queue_entries.get().slots_left) == (3, 0)
    assert find_replaced_trace(new) is None
    assert change_trace_steps(trace=old, changes=SPLIT, by=lead, now=NOW) == new
    new.refresh_from_db()
    assert (new.withdrawn_at, new.queue_entries.get().slots_left) == (None, 3)
    again = change_trace_steps(trace=new, changes=[StepChange(1, merges=True)], by=lead, now=NOW)
    assert again.provenance is not None
    assert again.provenance.segmenter == "by hand 1"
    assert texts(again) == ["One. And.", "Two.\nThree."]


def test_parts_and_messages_are_kept(project: Project, lead: User) -> None:
    old = make_queued(project)
    Step.objects.filter(trace=old).update(source_position=2, agent="a")
    call = Option.objects.get(step__trace=old, step__position=1)
    image = factories.make_image_part(call).image
    new = change_trace_steps(trace=old, changes=[StepChange(0, (4,))], by=lead, now=NOW)
    before, after = load_step_records(old), load_step_records(new)
    assert after[2:] == before[1:]
    assert [(step.source_position, step.agent) for step in after] == [(2, "a")] * 4
    assert image is not None
    assert after[2].options[0].parts[0].digest == image.digest


def test_held_trace_is_released_and_opened_or_rated_ones_are_refused(project: Project, lead: User) -> None:
    held, opened, rated, gold, gone = (make_queued(project) for _ in range(5))
    rater = factories.make_rater(project)
    assignment = factories.make_assignment(rater, held, state="held", opened_at=None)
    factories.make_assignment(rater, opened, opened_at=NOW)
    factories.make_submitted(rater, rated)
    make_gold(trace=gold, use=GoldUse.HIDDEN, accepted_first_errors=[None], by=lead, now=NOW)
    queue.withdraw_traces(trace_ids=[gone.pk], now=NOW, reason="twice", by=None)
    gone.refresh_from_db()
    refused = {"opened": opened, "rated": rated, "gold": gold, "withdrawn": gone}
    for code, trace in refused.items():
        with pytest.raises(CannotChangeSteps) as caught:
            change_trace_steps(trace=trace, changes=SPLIT, by=lead, now=NOW)
        assert caught.value.code in ({"opened", "rated"} if code == "rated" else {code})
    assert Trace.objects.count() == 5
    new = change_trace_steps(trace=held, changes=SPLIT, by=lead, now=NOW)
    assignment.refresh_from_db()
    assert assignment.state == "released"
    factories.make_assignment(rater, new, opened_at=NOW)
    with pytest.raises(CannotChangeSteps):
        restore_steps(trace=new, by=lead, now=NOW)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([], "unchanged"),
        ([StepChange(0)], "unchanged"),
        ([StepChange(0, (0,))], "empty_step"),
        ([StepChange(0, merges=True)], "cannot_merge"),
        ([StepChange(7, (1,))], "no_such_step"),
    ],
)
def test_impossible_changes_leave_the_trace(changes: list[StepChange], code: str, project: Project, lead: User) -> None:
    trace = make_queued(project)
    with pytest.raises(CannotChangeSteps) as caught:
        change_trace_steps(trace=trace, changes=changes, by=lead, now=NOW)
    assert caught.value.code == code
    assert (Trace.objects.available().get(), Trace.objects.count()) == (trace, 1)
