"""The raters of a project."""

import datetime as dt

import pytest

from labeling import raters
from labeling.models import Gold
from labeling.models.rater import RaterKind, RaterStage
from tests import factories

pytestmark = pytest.mark.django_db


def test_ensure_member_keeps_one_rater_and_one_pseudonym(now: dt.datetime) -> None:
    project, user = factories.make_project(), factories.make_user("ann")
    first = raters.ensure_member(project=project, user=user, now=now)
    raters.remove_rater(rater=first, now=now)
    again = raters.ensure_member(project=project, user=user, now=now)
    assert (again.pk, again.labeler, again.removed_at) == (first.pk, first.labeler, None)
    assert "ann" not in str(first.labeler)


def test_new_member_begins_with_the_screening(now: dt.datetime) -> None:
    project = factories.make_project()
    trace = factories.make_trace(project)
    Gold.objects.create(trace=trace, use="screening", accepted_first_errors=[None], made_at=now)
    rater = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    assert rater.stage == RaterStage.SCREENING


def test_imported_labels_of_a_member_belong_to_that_member(now: dt.datetime) -> None:
    project = factories.make_project()
    member = raters.ensure_member(project=project, user=factories.make_user(), now=now)
    assert raters.ensure_labeler(project=project, labeler=str(member.labeler), now=now) == member
    stranger = raters.ensure_labeler(project=project, labeler="x", now=now)
    assert stranger.kind == RaterKind.IMPORTED
    assert raters.ensure_labeler(project=project, labeler="x", now=now) == stranger


def test_unknown_rater_and_machine_exist_once_in_a_project(now: dt.datetime) -> None:
    project = factories.make_project()
    assert raters.ensure_unknown(project=project, now=now) == raters.ensure_unknown(project=project, now=now)
    judge = raters.ensure_machine(project=project, name="judge, prompt 3", now=now)
    assert judge == raters.ensure_machine(project=project, name="judge, prompt 3", now=now)
    assert judge != raters.ensure_machine(project=project, name="judge, prompt 4", now=now)
