"""What was withdrawn is soon missing from the figures, and what a file brought or took is soon in them."""

import datetime as dt

import pytest

from labeling import quality
from labeling.models import Figures
from labeling.quality import figures, refreshing
from tests import factories
from tests.labeling.quality import scene

pytestmark = pytest.mark.django_db
NOW = factories.NOW
LATER = NOW + dt.timedelta(minutes=1)


def test_withdraw_has_the_figures_computed_anew() -> None:
    project = scene.project_read_twice()
    scene.refresh(now=NOW)
    trace = project.traces.earliest("pk")
    quality.withdraw(project=project, trace_ids=[trace.pk], reason="broken", by=None, now=NOW)
    scene.refresh(now=LATER)
    shown = quality.figures_of(project_id=project.pk)
    assert shown is not None
    assert (shown.computed_at, shown.content["headline"]["n_traces"]) == (LATER, 11)


def test_withdraw_while_the_first_figures_are_computed_has_them_computed_anew() -> None:
    project = scene.project_read_twice()
    refreshing.settle_due(now=NOW)
    assert figures.begin(project_id=project.pk, now=NOW)
    quality.withdraw(project=project, trace_ids=[project.traces.earliest("pk").pk], reason="broken", by=None, now=NOW)
    assert Figures.objects.get().is_stale


def test_count_again_leaves_a_project_alone_in_which_nobody_submitted() -> None:
    project = factories.make_project()
    quality.count_figures_again(project_id=project.pk, now=NOW)
    assert not Figures.objects.exists()
    assert refreshing.stale(now=NOW) == []
