"""Sessions from the first options to the submission, with a server that speaks the real protocol."""

import pytest

from labeling.models import Judgment, StepReview, Trace
from live import sessions
from live.models import LiveSession, LiveTurn, OptionRequest
from live.sessions import LiveRefusal, TurnNotes
from tests import factories
from tests.live import live_project
from tests.live.step_servers import StepServer, running_steps

pytestmark = pytest.mark.django_db


def test_solution_becomes_a_live_trace_with_its_submission() -> None:
    project = live_project.make_live_project()
    rater = factories.make_rater(project)
    with running_steps(StepServer()) as address:
        live_project.make_policy(project, address)
        session = live_project.solve(live_project.begin(rater))
    trace = Trace.objects.get()
    assert (trace.kind, trace.n_steps) == ("live", 4)
    assert session.submission is not None
    assert session.submission.finish_reason == "solution"
    assert StepReview.objects.filter(chosen__isnull=False).count() == 4
    assert Judgment.objects.filter(rating=1).count() == 12
    assert OptionRequest.objects.filter(server_version="0.11.2", turns__isnull=False).count() == 4
