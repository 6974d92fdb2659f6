"""The answer to a training trace, step by step."""

import datetime as dt
from typing import Any

import pytest

from annotate import training_feedback
from annotate.training_feedback import TrainingOutcome
from labeling import assignments, onboarding
from labeling.models import Assignment, Option, Trace
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from tests import factories
from tests.labeling.onboarding import onboarding_project

pytestmark = pytest.mark.django_db
STEPS: list[str | list[str]] = ["One.", "Two.", ["Three.", "Three!", "Three?"], "Four.", "Five."]


def answer_to(
    said: dict[tuple[int, int], int], now: dt.datetime, *, accepted: list[int | None], **known: Any
) -> training_feedback.TrainingComparison:
    """What a rater is told who said this, by step and option."""
    project = factories.make_project(protocol=known.pop("protocol", "first_error"))
    trace = factories.make_trace(project, STEPS)
    ratings = known.pop("ratings", {})
    make_gold(
        trace=trace,
        use=GoldUse.TRAINING,
        accepted_first_errors=accepted,
        ratings={option(trace, *place): rating for place, rating in ratings.items()},
        explanations={option(trace, *place): f"why {place}" for place in ratings},
        explanation="as a whole",
        by=None,
        now=now,
    )
    onboarding.serve_gold_set(project=project, use=GoldUse.TRAINING, now=now)
    rater = factories.make_rater(project, stage="training")
    claimed = onboarding_project.claim_next(rater, now).assignment_id
    writes = [
        assignments.IncomingEdit(sequence=n, seen=0, kind="rate", step=step, option=place, rating=rating)
        for n, ((step, place), rating) in enumerate(said.items(), start=1)
    ]
    assignments.submit(assignment_id=claimed, rater_id=rater.pk, client="t", writes=writes, now=now, by=rater.user)
    return training_feedback.compare_with_gold(Assignment.objects.select_related("project", "trace").get(pk=claimed))


def option(trace: Trace, step: int, position: int) -> int:
    return Option.objects.get(step__trace=trace, step__position=step, position=position).pk


def off(told: training_feedback.TrainingComparison) -> list[str]:
    each = [one for line in told.lines for one in (line.own, *line.alternatives)]
    return [one.option.text for one in each if one.is_off]


def test_answer_where_the_error_was_found(now: dt.datetime) -> None:
    said = {(0, 0): 1, (1, 0): 0, (2, 0): -1, (2, 1): 1, (2, 2): 1}
    told = answer_to(said, now, accepted=[2], ratings={(1, 0): 1, (2, 0): -1, (2, 1): 1, (2, 2): -1})
    assert told.outcome == TrainingOutcome.FOUND
    assert off(told) == ["Two.", "Three?"]
    assert (told.n_same, told.n_compared, told.error) == (3, 5, 3)
    assert [line.is_past for line in told.lines] == [False, False, False, True, True]
    assert told.lines[2].own.explanation == "why (2, 0)"


def test_answer_where_the_error_was_passed_over(now: dt.datetime) -> None:
    told = answer_to({(n, 0): 1 for n in range(5)}, now, accepted=[2])
    assert told.outcome == TrainingOutcome.MISSED
    assert off(told) == ["Three."]
    assert (told.lines[2].own.known, told.lines[2].own.explanation) == (-1, "as a whole")
    assert told.error == 3
    # Its alternatives were never on the rater's screen as something to rate; now they can be looked at.
    assert [one.option.text for one in told.lines[2].alternatives] == ["Three!", "Three?"]


def test_answer_where_a_sound_step_was_blamed(now: dt.datetime) -> None:
    told = answer_to({(0, 0): -1}, now, accepted=[2])
    assert (told.outcome, told.reported) == (TrainingOutcome.FALSE_ALARM, 1)
    assert off(told) == ["One."]
    assert told.lines[2].own.known == -1


def test_answer_where_there_is_no_error(now: dt.datetime) -> None:
    right = answer_to({(n, 0): 1 for n in range(5)}, now, accepted=[None])
    assert (right.outcome, right.explanation) == (TrainingOutcome.NO_ERROR, "as a whole")
    assert not off(right)
    wrong = answer_to({(0, 0): 1, (1, 0): -1}, now, accepted=[None])
    assert (wrong.outcome, wrong.reported, off(wrong)) == (TrainingOutcome.FALSE_ALARM, 2, ["Two."])
    assert not any(line.is_past for line in wrong.lines)


def test_answer_accepts_each_place_that_gold_accepts(now: dt.datetime) -> None:
    told = answer_to({(0, 0): 1, (1, 0): -1}, now, accepted=[1, 2])
    assert told.outcome == TrainingOutcome.FOUND
    assert off(told) == []
    late = answer_to({(0, 0): 1, (1, 0): 1, (2, 0): -1, (2, 1): 1, (2, 2): 1}, now, accepted=[1, 2])
    assert (late.outcome, off(late)) == (TrainingOutcome.FOUND, [])


def test_answer_under_every_step_goes_to_the_end(now: dt.datetime) -> None:
    said = {(0, 0): 1, (1, 0): -1, (2, 0): 1, (3, 0): 1, (4, 0): -1}
    told = answer_to(said, now, accepted=[1], protocol="every_step", ratings={(3, 0): 1, (4, 0): 1})
    assert off(told) == ["Five."]
    assert not any(line.is_past for line in told.lines)
