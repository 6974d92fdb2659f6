"""Gold says only what can be true of its trace."""

import datetime as dt

import pytest
from django.db import IntegrityError

from events.models import Event
from labeling import quality
from labeling.models import Option, Step
from labeling.models.quality import GoldUse
from tests import factories

pytestmark = pytest.mark.django_db


def test_make_gold_keeps_what_is_accepted_and_says_so_in_the_log(now: dt.datetime) -> None:
    trace = factories.make_trace(factories.make_project(), ["One.", ["Two.", "Three."]])
    options = {option.pk: 1 for option in Option.objects.filter(step__trace=trace)}
    gold = quality.make_gold(
        trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[1, None], ratings=options, by=None, now=now
    )
    assert gold.accepted_first_errors == [1, None]
    assert gold.ratings.count() == 3
    assert Event.objects.get().subject == f"trace:{trace.pk}"


@pytest.mark.parametrize("accepted", [[], [2], [-1], [0]])
def test_make_gold_refuses_an_error_where_nothing_is_rated(accepted: list[int | None], now: dt.datetime) -> None:
    trace = factories.make_trace(factories.make_project(), ["Context.", "One."])
    Step.objects.filter(trace=trace, position=0).update(is_rateable=False)
    with pytest.raises(quality.NotKnowable):
        quality.make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=accepted, by=None, now=now)


def test_make_gold_refuses_a_rating_of_another_trace(now: dt.datetime) -> None:
    project = factories.make_project()
    trace, other = factories.make_trace(project), factories.make_trace(project)
    option = Option.objects.filter(step__trace=other).order_by("pk")[0]
    with pytest.raises(quality.NotKnowable):
        quality.make_gold(
            trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[None], ratings={option.pk: 1}, by=None, now=now
        )


def test_make_gold_of_one_trace_stands_once_for_each_use(now: dt.datetime) -> None:
    trace = factories.make_trace(factories.make_project())
    quality.make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=now)
    quality.make_gold(trace=trace, use=GoldUse.TRAINING, accepted_first_errors=[0], by=None, now=now)
    with pytest.raises(IntegrityError):
        quality.make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[1], by=None, now=now)
