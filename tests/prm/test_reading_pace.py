"""Reading rates, fitted to the active time of submissions."""

import pytest

from labeling.models import Project
from labeling.traces import load, sources
from prm import reading_pace
from prm.selection.cost import ReadingRates
from tests import factories
from tests.prm import generation_project

pytestmark = pytest.mark.django_db
WORDS = 8  # per step


def make_timed_project(n: int) -> Project:
    """Make submissions that took 20 s plus 7 s per step."""
    project = generation_project.make_project(labelled=0, unread=10)
    records = [generation_project.make_record(number, is_labeled=True, seed=1) for number in range(n)]
    for record in records:
        record.submissions[0].total_ms = 20_000 + 7_000 * len(record.submissions[0].turns)
    source = sources.ensure_source(project=project, name="timed", format="generated", now=factories.NOW)
    load.load_records(project=project, source=source, records=records, now=factories.NOW)
    return project


def test_generation_uses_fitted_rates() -> None:
    rates = generation_project.run_generation(make_timed_project(120)).reading
    assert (rates["is_fitted"], rates["n"]) == (True, 120)
    assert rates["opening"] == pytest.approx(20, abs=0.1)
    assert rates["step"] + WORDS * rates["word"] == pytest.approx(7, abs=0.1)


def test_few_timed_submissions_leave_the_default_rates() -> None:
    generation = generation_project.run_generation(make_timed_project(60))
    assert generation.candidate is not None
    assert generation.manifest is not None
    pace = reading_pace.fit_reading_pace(generation.manifest, generation.candidate)
    assert (pace.reading, pace.n, pace.is_fitted) == (ReadingRates(), 60, False)
    assert generation.reading == pace.as_dict()
