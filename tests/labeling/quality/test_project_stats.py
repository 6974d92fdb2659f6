"""Project statistics against statistics computed from the ratings."""

import datetime as dt
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from events.models import Event
from jobs import runner
from jobs.models import Job, JobState
from labeling import queue
from labeling.models import AgreementTally, Judgment, Project, Rater, Settlement, Step, Trace, TraceDraw
from labeling.models.gold import GoldUse
from labeling.quality import project_stats, recount_job, resolve, tallies
from labeling.quality.gold import make_gold
from labeling.quality.project_stats import load_project_stats
from labeling.quality.resolve import resolve_traces
from rawsql import integer_columns
from stats import agreement, estimation, rating_patterns
from stats.estimates import Reason
from tests import factories
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW
LATER = NOW + dt.timedelta(minutes=1)


@pytest.fixture
def project(kept_project: int) -> Project:
    return Project.objects.get(pk=kept_project)


def by_hand(project: Project, **only: Any) -> dict[str, float | None]:
    """Compute every step statistic from the ratings."""
    rows = list(
        Judgment.objects.filter(turn__assignment__project=project, **only).values_list(
            "option_id", "rating", "option__step__trace__problem_id"
        )
    )
    options, units = np.unique([row[0] for row in rows], return_inverse=True)
    problems = {row[0]: row[2] for row in rows}
    numbers = np.unique([problems[option] for option in options.tolist()], return_inverse=True)[1]
    counted = rating_patterns.count_patterns(
        units=units, labels=np.array([(row[1] or 0) + 1 for row in rows]), problem_of_unit=numbers
    )
    return {name: estimate.value for name, estimate in agreement.estimate_step_statistics(counted).items()}


def values(estimates: dict[str, Any]) -> dict[str, float | None]:
    return {name: estimate["value"] for name, estimate in estimates.items()}


def test_step_statistics_equal_those_from_the_ratings(project: Project) -> None:
    submitted_work.refresh_quality(now=NOW)
    shown = load_project_stats(project_id=project.pk)
    assert shown is not None
    assert not shown.is_stale
    found = shown.content
    assert values(found["headline"]["steps"]) == pytest.approx(by_hand(project))
    assert (found["headline"]["n_traces"], found["headline"]["n_traces_read_twice"]) == (12, 12)
    assert sum(found["headline"]["labels"].values()) == pytest.approx(1)
    for row in found["domain"]:
        wanted = by_hand(project, turn__step__trace__problem__domain=row["key"])
        assert values(row["steps"]) == pytest.approx({name: wanted[name] for name in row["steps"]})
        assert row["n_traces"] == 6
    assert sum(row["first_error"]["pairs"] for row in found["pair"]) == 12
    json.dumps(found)


@pytest.mark.fault
def test_content_has_first_errors_and_raters(project: Project) -> None:
    submitted_work.refresh_quality(now=NOW)
    content = project_stats.build_stats_content(project_id=project.pk, now=NOW)
    same = Settlement.objects.filter(state="settled").count()
    exact = content["headline"]["first_error"]["exact"]
    assert exact["value"] == pytest.approx(same / 12)
    assert content["settlements"] == {"settled": same, "asked": 12 - same}
    told = content["raters"]
    assert set(told) == {str(pk) for pk in Rater.objects.values_list("pk", flat=True)}
    assert sum(row["readings"] for row in told.values()) == 24
    assert sum(row["others"]["pairs"] for row in told.values()) == 24
    assert all(row["consensus"]["right"] == row["consensus"]["n"] for row in told.values() if "consensus" in row)
    over_credit = content["confusion"]["over_credit"]
    assert (over_credit["value"], over_credit["reason"]) in (
        (0.0, None),
        (None, Reason.NO_CASES),
    )
    negative, *others = content["confusion"]["counts"]
    assert over_credit["n_paired"] == sum(negative)  # the number of steps that the share is based on
    assert content["confusion"]["over_blame"]["n_paired"] == sum(map(sum, others)) > 0
    assert content["everything"] is None  # no policy chose: the headline is of all
    assert set(content["confusion"]["recall"]) == {"-1", "0", "1"}
    assert content["days"] == [{"day": "2026-11-18", "readings": 24, "active_ms": 0, "paid_ms": 0}]


def test_withdrawn_traces_are_not_counted(project: Project) -> None:
    trace = Trace.objects.filter(project=project).order_by("pk")[0]
    queue.withdraw_traces(trace_ids=[trace.pk], now=NOW, reason="broken", by=None)
    found = project_stats.build_stats_content(project_id=project.pk, now=NOW)["headline"]
    others = Trace.objects.filter(project=project).exclude(pk=trace.pk)
    assert found["n_traces"] == 11
    assert values(found["steps"]) == pytest.approx(by_hand(project, turn__step__trace__in=others))


@pytest.mark.parametrize("at_once", [1, 5])
def test_statistics_do_not_depend_on_the_block_size(
    project: Project, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    told = project_stats.build_stats_content(project_id=project.pk, now=NOW)
    monkeypatch.setattr(integer_columns, "_ROWS_PER_BLOCK", at_once)
    assert project_stats.build_stats_content(project_id=project.pk, now=NOW) == told
    assert told["headline"]["n_traces"] == 12


def test_empty_project_gives_reasons() -> None:
    empty = factories.make_project()
    assert load_project_stats(project_id=empty.pk) is None
    found = project_stats.compute_project_stats(project_id=empty.pk, now=NOW)
    assert found["headline"]["steps"]["alpha_nominal"]["reason"] == Reason.NO_PAIRS
    assert found["headline"]["first_error"]["exact"]["value"] is None
    assert found["confusion"]["over_credit"]["reason"] == Reason.NO_CASES


@pytest.mark.fault
def test_gold_accuracy_of_raters_has_an_interval(project: Project) -> None:
    rater = Rater.objects.all()[0]
    gold = factories.make_trace(project)
    make_gold(trace=gold, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
    submitted_work.submit_trace(rater, gold, [1, 1, 1], purpose="gold")
    resolve.resolve_due_traces(now=NOW)
    told = project_stats.build_stats_content(project_id=project.pk, now=NOW)["raters"][str(rater.pk)]["gold"]
    assert (told["n"], told["right"], told["missed"], told["low"]) == (1, 0, 1, 0.0)
    assert told["high"] > 0.5
    Project.objects.update(gold_bar=0.8)
    watching = project_stats.build_stats_content(project_id=project.pk, now=NOW)["watching"]
    assert (watching["bar"], watching["gold_a_rater"], watching["false_pauses"]) == (0.8, 1, 0.0)
    assert (watching["reason"], watching["screens"]) == (None, False)


@pytest.mark.fault
def test_recount_reports_and_corrects_drift(project: Project) -> None:
    submitted_work.refresh_quality(now=NOW)
    first = AgreementTally.objects.order_by("pk")[0]
    AgreementTally.objects.filter(pk=first.pk).update(positive_positive=9)
    assert recount_job.enqueue_recounts(now=NOW) == 1
    assert recount_job.enqueue_recounts(now=NOW) == 0
    job = Job.objects.get(kind=recount_job.KIND)
    assert runner.run_job(job.pk, recount_job.chunks) == JobState.DONE
    job.refresh_from_db()
    assert job.result == {
        "traces": 12,
        "drifted": 1,
        "counts_drifted": 0,
        "gold_retired": 0,
        "proven": 0,
        "work_days": 0,
    }
    shown = load_project_stats(project_id=project.pk)
    assert shown is not None
    assert (shown.drifted_traces, shown.is_stale) == (1, True)
    assert Event.objects.filter(what="figures.drifted").count() == 1


@pytest.fixture
def kept(project: Project) -> Iterator[set[int]]:
    """The traces of the registered audit slice."""
    traces = set(Trace.objects.filter(project=project).order_by("pk").values_list("pk", flat=True)[:5])
    others, tallies._audit_slices[:] = tallies._audit_slices[:], [lambda project_id: traces]
    yield traces
    tallies._audit_slices[:] = others


def test_headline_uses_the_audit_slice_if_a_policy_drew_traces(project: Project, kept: set[int]) -> None:
    whole = project_stats.build_stats_content(project_id=project.pk, now=NOW)["headline"]
    assert (whole["is_audit_slice"], whole["n_traces"]) == (False, 12)
    numbers: dict[str, Any] = {"batch": 1, "rank": 0, "q": 0.5, "pool_size": 12, "n_left": 12, "drawn_at": NOW}
    trace = Trace.objects.filter(project=project).order_by("-pk")[0]
    TraceDraw.objects.create(project=project, trace=trace, arm="policy", **numbers)
    found = project_stats.build_stats_content(project_id=project.pk, now=NOW)
    assert (found["headline"]["is_audit_slice"], found["headline"]["n_traces"]) == (True, 5)
    assert found["everything"]["n_traces"] == 12  # beside the headline
    assert values(found["headline"]["steps"]) == pytest.approx(by_hand(project, turn__step__trace__in=kept))
    assert sum(row["first_error"]["pairs"] for row in found["pair"]) == 12


def test_positions_compare_raters_still_at_risk(project: Project) -> None:
    rows = project_stats.build_stats_content(project_id=project.pk, now=NOW)["position"]
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert rows[0]["n"] == 12
    ends = AgreementTally.objects.values_list("first_end", "second_end", "problem_id")
    for row in rows:
        step, by_problem = row["step"], defaultdict(list)
        for first, second, problem in ends:
            if min(first, second or 0) >= step:
                by_problem[problem].append((first == step) + (second == step))
        wrong = [each for of_one in by_problem.values() for each in of_one]
        assert (row["n"], row["both"], row["one"]) == (len(wrong), wrong.count(2), wrong.count(1))
        same = estimation.estimate_share_by_problem(
            {key: (len(of) - of.count(1), len(of)) for key, of in by_problem.items()}
        )
        assert (row["agree"], row["n_problems"], row["interval_reason"]) == (
            pytest.approx(same.value),
            len(by_problem),
            same.interval_reason,
        )
        around = (same.interval.low, same.interval.high) if same.interval else (None, None)
        assert (row["low"], row["high"]) == pytest.approx(around)
    assert any(row["low"] is not None for row in rows)


@pytest.mark.fault
def test_first_errors_by_step_kind_use_traces_with_an_error_of_that_kind(now: dt.datetime) -> None:
    """Also after the nightly recount. A trace with two different first errors counts for both kinds."""
    project = factories.make_project()
    raters = submitted_work.make_raters(project, 2)
    for ends in ((0, 0), (0, 1), (1, 1), (None, 1), (None, None), (2, 2)):
        trace = factories.make_trace(project, ["Think.", "Call.", "Say."])
        Step.objects.filter(trace=trace, position=1).update(kind="action")
        for rater, end in zip(raters, ends, strict=True):
            submitted_work.submit_trace(rater, trace, [1, 1, 1] if end is None else [*[1] * end, -1])
    expected = {"action": (1 / 3, 3), "reasoning": (2 / 3, 3)}
    for wipes in (False, True):
        if wipes:
            AgreementTally.objects.all().delete()
            traces = list(project.traces.values_list("pk", flat=True))
            assert tallies.recount_tallies(trace_ids=traces, now=now) == 6
        found = project_stats.build_stats_content(project_id=project.pk, now=now)["step_kind"]
        exact = {row["key"]: row["first_error"]["exact"] for row in found}
        assert {key: (one["value"], one["n_paired"]) for key, one in exact.items()} == expected
        assert {row["key"]: row["n_traces"] for row in found} == {"action": 3, "reasoning": 3}
        assert "has_error_kappa" not in found[0]["first_error"]
        assert exact["action"]["interval_reason"] == Reason.FEW_PROBLEMS


def test_consensus_of_a_single_vote_is_not_compared_with_it(now: dt.datetime) -> None:
    project = factories.make_project(overlap=1)
    trace = factories.make_trace(project, ["One.", "Two."])
    rater = factories.make_rater(project)
    submitted_work.submit_trace(rater, trace, [1, -1])
    resolve_traces(project_id=project.pk, trace_ids=[trace.pk], now=now)
    told = project_stats.build_stats_content(project_id=project.pk, now=now)
    assert told["settled"]["traces"] == 1
    assert "consensus" not in told["raters"][str(rater.pk)]
    assert told["confusion"]["n_traces"] == 0
