"""The reason for the state of a trace, in words."""

import pytest

from dashboard import trace_status
from dashboard.trace_status import QueuePlace
from labeling.models.queue import SamplingSource
from tests import factories

pytestmark = pytest.mark.django_db


def test_every_sampling_source_has_a_text_with_its_number() -> None:
    project = factories.make_project()
    for source in SamplingSource:
        trace = factories.make_trace(project, ["One."])
        text = trace_status.explain_trace_status(trace, None, [QueuePlace(source, 2)])
        assert text
        assert "%" not in text
        has_number = source not in (SamplingSource.TRAINING, SamplingSource.SCREENING, SamplingSource.OPINION)
        assert ("2" in text) == has_number, source


def test_one_label_and_two_labels_read_differently() -> None:
    trace = factories.make_trace(factories.make_project(), ["One."])
    one, two = (trace_status.explain_trace_status(trace, None, [QueuePlace("reserve", n)]) for n in (1, 2))
    assert two != one.replace("1", "2")


def test_trace_outside_the_queue_is_not_the_same_as_an_assigned_one() -> None:
    trace = factories.make_trace(factories.make_project(), ["One."])
    assigned = trace_status.explain_trace_status(trace, None, [QueuePlace("uniform", 0)])
    assert trace_status.explain_trace_status(trace, None, []) != assigned
