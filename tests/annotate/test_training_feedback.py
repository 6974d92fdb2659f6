"""Comparison of a training trace with its gold."""

import datetime as dt
from typing import Any

import pytest

from annotate import training_feedback
from annotate.training_feedback import TrainingOutcome
from labeling import assignments, gold_sets
from labeling.models import Assignment, Option, Trace
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from tests import factories
from tests.labeling import onboarding_project

pytestmark = pytest.mark.django_db
STEPS: list[str | list[str]] = ["One.", "Two.", ["Three.", "Three!", "Three?"], "Four.", "Five."]


def answer_to(
    ratings_given: dict[tuple[int, int], int], now: dt.datetime, *, accepted: list[int | None], **known: Any
) -> training_feedback.TrainingComparison:
    """Submit these ratings, by step and option, and compare them with gold."""
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
    gold_sets.serve_gold_set(project=project, use=GoldUse.TRAINING, now=now)
    rater = factories.make_rater(project, stage="training")
    claimed = onboarding_project.claim_next(rater, now).assignment_id
    writes = [
        assignments.IncomingEdit(sequence=n, seen=0, kind="rate", step=step, option=place, rating=rating)
        for n, ((step, place), rating) in enumerate(ratings_given.items(), start=1)
    ]
    assignments.submit(assignment_id=claimed, rater_id=rater.pk, client="t", writes=writes, now=now, by=rater.user)
    return training_feedback.compare_with_gold(Assignment.objects.select_related("project", "trace").get(pk=claimed))


def option(trace: Trace, step: int, position: int) -> int:
    return Option.objects.get(step__trace=trace, step__position=step, position=position).pk


def off(comparison: training_feedback.TrainingComparison) -> list[str]:
    each = [one for line in comparison.lines for one in (line.own, *line.alternatives)]
    return [one.option.text for one in each if one.is_off]


def test_found_error(now: dt.datetime) -> None:
    ratings_given = {(0, 0): 1, (1, 0): 0, (2, 0): -1, (2, 1): 1, (2, 2): 1}
    comparison = answer_to(ratings_given, now, accepted=[2], ratings={(1, 0): 1, (2, 0): -1, (2, 1): 1, (2, 2): -1})
    assert comparison.outcome == TrainingOutcome.FOUND
    assert off(comparison) == ["Two.", "Three?"]
    assert (comparison.n_same, comparison.n_compared, comparison.error) == (3, 5, 3)
    assert [line.is_past for line in comparison.lines] == [False, False, False, True, True]
    assert comparison.lines[2].own.explanation == "why (2, 0)"


def test_missed_error(now: dt.datetime) -> None:
    comparison = answer_to({(n, 0): 1 for n in range(5)}, now, accepted=[2])
    assert comparison.outcome == TrainingOutcome.MISSED
    assert off(comparison) == ["Three."]
    assert (comparison.lines[2].own.known, comparison.lines[2].own.explanation) == (-1, "as a whole")
    assert comparison.error == 3
    # The rater could not rate its alternatives; the answer shows them.
    assert [one.option.text for one in comparison.lines[2].alternatives] == ["Three!", "Three?"]


def test_false_alarm(now: dt.datetime) -> None:
    comparison = answer_to({(0, 0): -1}, now, accepted=[2])
    assert (comparison.outcome, comparison.reported) == (TrainingOutcome.FALSE_ALARM, 1)
    assert off(comparison) == ["One."]
    assert comparison.lines[2].own.known == -1


def test_trace_without_error(now: dt.datetime) -> None:
    right = answer_to({(n, 0): 1 for n in range(5)}, now, accepted=[None])
    assert (right.outcome, right.explanation) == (TrainingOutcome.NO_ERROR, "as a whole")
    assert not off(right)
    wrong = answer_to({(0, 0): 1, (1, 0): -1}, now, accepted=[None])
    assert (wrong.outcome, wrong.reported, off(wrong)) == (TrainingOutcome.FALSE_ALARM, 2, ["Two."])
    assert not any(line.is_past for line in wrong.lines)


def test_each_accepted_position_is_correct(now: dt.datetime) -> None:
    comparison = answer_to({(0, 0): 1, (1, 0): -1}, now, accepted=[1, 2])
    assert comparison.outcome == TrainingOutcome.FOUND
    assert off(comparison) == []
    late = answer_to({(0, 0): 1, (1, 0): 1, (2, 0): -1, (2, 1): 1, (2, 2): 1}, now, accepted=[1, 2])
    assert (late.outcome, off(late)) == (TrainingOutcome.FOUND, [])


def test_every_step_protocol_is_compared_to_the_end(now: dt.datetime) -> None:
    ratings_given = {(0, 0): 1, (1, 0): -1, (2, 0): 1, (3, 0): 1, (4, 0): -1}
    comparison = answer_to(ratings_given, now, accepted=[1], protocol="every_step", ratings={(3, 0): 1, (4, 0): 1})
    assert off(comparison) == ["Five."]
    assert not any(line.is_past for line in comparison.lines)
