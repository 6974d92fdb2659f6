"""Steps and options in the binary format are stored as they are."""

import pytest
from django.db import transaction

from formats.records import OptionRecord, StepRecord
from labeling.models import Option, Step
from labeling.traces import packed_rows
from tests import factories

pytestmark = pytest.mark.django_db

TEXTS = ["", "plain", "tab\tline\nbackslash\\ \\N", "ünïcode 🙂 \u2028", "x" * 100_000]


def test_steps_and_options_are_stored_as_given() -> None:
    trace = factories.make_trace(factories.make_project())
    records = [
        StepRecord([OptionRecord(text) for text in TEXTS]),
        StepRecord([], kind="action", is_rateable=False, separator="\n\n", source_position=7, agent="research/browse"),
        StepRecord([OptionRecord("own", origin="human")]),
    ]
    first = 10**12
    n_options = sum(len(record.options) for record in records)
    with transaction.atomic():
        packed_rows.STEP.insert(packed_rows.pack_steps(range(first, first + 3), trace.pk, records, first=50))
        packed_rows.OPTION.insert(
            packed_rows.pack_options(range(first, first + n_options), range(first, first + 3), records)
        )
    steps = Step.objects.filter(pk__gte=first).order_by("position")
    assert [step.position for step in steps] == [50, 51, 52]
    assert {step.trace_id for step in steps} == {trace.pk}
    stored = [
        StepRecord(
            [OptionRecord(option.text, option.origin) for option in step.options.order_by("position")],
            step.kind,
            step.is_rateable,
            step.separator,
            step.source_position,
            step.agent,
        )
        for step in steps
    ]
    assert stored == records


def test_options_begin_at_the_given_position() -> None:
    trace = factories.make_trace(factories.make_project())
    step = Step.objects.filter(trace=trace)[0]
    packed_rows.OPTION.insert(
        packed_rows.pack_options([10**12], [step.pk], [StepRecord([OptionRecord("late")])], first=9)
    )
    assert Option.objects.get(pk=10**12).position == 9
