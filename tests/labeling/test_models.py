"""The rules that the database keeps by itself."""

import pytest
from django.db import IntegrityError

from labeling.models import Judgment, StepReview
from tests import factories

pytestmark = pytest.mark.django_db


def test_judgment_refuses_a_rating_outside_the_scale() -> None:
    project = factories.make_project()
    assignment = factories.make_assignment(factories.make_rater(project), factories.make_trace(project))
    step = assignment.trace.steps.get(position=0)
    turn = StepReview.objects.create(assignment=assignment, step=step)
    with pytest.raises(IntegrityError):
        Judgment.objects.create(turn=turn, option=step.options.get(), rating=2)
