"""Once more through guideline and screening."""

import pytest

from events.models import Event
from labeling import admission, projects, raters
from labeling.models.rater import RaterStage
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("has_set", [True, False])
def test_train_again_puts_guideline_and_screening_before_the_work(has_set: bool) -> None:
    project = factories.make_project()
    by = factories.make_user()
    guideline = projects.publish_guideline(project=project, body="Read.", by=None, now=factories.NOW)
    rater = factories.make_rater(project)
    admission.read_guideline(rater=rater, guideline=guideline, by=by, now=factories.NOW)
    if has_set:
        factories.make_entry(factories.make_lane(project, arm="screening"), factories.make_trace(project), slots=50)
    raters.pause(rater=rater, reason="See me.", by=by, now=factories.NOW)
    admission.train_again(rater_id=rater.pk, by=by, now=factories.NOW)
    rater.refresh_from_db()
    assert (rater.read_guideline, rater.paused_at) == (None, None)
    assert (rater.stage, rater.screening_attempt) == ((RaterStage.SCREENING, 2) if has_set else (RaterStage.WORKING, 1))
    assert Event.objects.filter(what="training.asked_again", by=by.pk).exists()
