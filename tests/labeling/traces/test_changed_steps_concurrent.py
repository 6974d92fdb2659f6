"""A rater opens a trace while a lead changes its steps: one of the two succeeds."""

import pytest

from formats.records import StepChange
from labeling import queue
from labeling.models import Assignment, Trace
from labeling.models.project import ProjectState
from labeling.models.rater import RaterStage
from labeling.traces.changed_steps import change_trace_steps
from labeling.traces.record_changes import CannotChangeSteps
from tests import factories
from tests.concurrency import run_at_once
from tests.factories import NOW

pytestmark = [pytest.mark.usefixtures("real_connections"), pytest.mark.fault]
ROUNDS = 12


def test_trace_is_opened_or_its_steps_are_changed_but_not_both() -> None:
    project, lead = factories.make_project(state=ProjectState.OPEN), factories.make_user()
    rater = factories.make_rater(project, stage=RaterStage.WORKING)
    for number in range(ROUNDS):
        trace = factories.make_trace(project, ref=str(number))
        queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=[trace.pk], slots=2, now=NOW)
        held = factories.make_assignment(rater, trace, state="held", opened_at=None)

        def open_trace(pk: int = held.pk) -> object:
            return queue.open_held(assignment_id=pk, rater_id=rater.pk, now=NOW)

        def change(row: Trace = trace) -> object:
            return change_trace_steps(trace=row, changes=[StepChange(1, merges=True)], by=lead, now=NOW)

        opened, changed = run_at_once(open_trace, change)
        assert opened is None or isinstance(opened, int)
        trace.refresh_from_db()
        held.refresh_from_db()
        if opened is None:
            assert isinstance(changed, Trace)
            assert (held.state, trace.withdrawn_at) == ("released", NOW)
        else:
            assert isinstance(changed, CannotChangeSteps)
            assert (changed.code, held.state, trace.withdrawn_at) == ("opened", "opened", None)
    assert Assignment.objects.count() == ROUNDS
