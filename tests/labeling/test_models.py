"""The rules that the database enforces."""

import pytest
from django.db import IntegrityError, connection

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


REMOVED_BY_AN_UNDO = ("labeling_problem", "labeling_trace", "labeling_step", "labeling_option", "labeling_assignment")
UNINDEXED_REFERENCES = """
SELECT reference.conrelid::regclass::text || '.' || attribute.attname
FROM pg_constraint reference
JOIN pg_attribute attribute ON attribute.attrelid = reference.conrelid AND attribute.attnum = reference.conkey[1]
WHERE reference.contype = 'f' AND reference.confrelid::regclass::text = ANY (%s)
  AND NOT EXISTS (
    SELECT FROM pg_index index WHERE index.indrelid = reference.conrelid AND index.indkey[0] = reference.conkey[1]
  )
ORDER BY 1
"""


def test_references_to_rows_that_an_undo_removes_are_indexed() -> None:
    """PostgreSQL looks for references to each removed row: without an index it would read the whole table each time."""
    with connection.cursor() as cursor:
        cursor.execute(UNINDEXED_REFERENCES, [list(REMOVED_BY_AN_UNDO)])
        assert [name for (name,) in cursor.fetchall()] == []
