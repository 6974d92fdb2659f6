"""The model of first-error raters against its formulas written out, and against raters of known quality."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import simulated_raters
from stats import first_error_dawid_skene, first_error_reports
from stats.arrays import Floats
from stats.first_error_reports import ReportArrays


def one_report(*, end: int, length: int, censored: bool = False) -> ReportArrays:
    return ReportArrays(
        traces=np.array([0]),
        raters=np.array([0]),
        ends=np.array([end]),
        is_censored=np.array([censored]),
        lengths=np.array([length]),
        problems=np.array([0]),
        domains=np.array([0]),
    )


def written_out(*, s: int, e: int, t: int, censored: bool, f: float, d: float, g: float) -> float:
    """Return the log-likelihood of a report s for a first error e (T for none), written out branch by branch."""
    log = math.log
    if censored:
        if s <= e:
            return s * log(1 - f)
        return e * log(1 - f) + log(1 - d) + (s - 1 - e) * log(1 - g)
    if e == t:
        return t * log(1 - f) if s == t else s * log(1 - f) + log(f)
    if s < e:
        return s * log(1 - f) + log(f)
    if s == e:
        return e * log(1 - f) + log(d)
    late = 0.0 if s == t else log(g)
    return e * log(1 - f) + log(1 - d) + (s - 1 - e) * log(1 - g) + late


@given(st.integers(1, 6), st.data(), st.booleans())
def test_evidence_adds_up_to_the_likelihood_written_out(length: int, data: st.DataObject, censored: bool) -> None:
    end = data.draw(st.integers(0, length))
    f, d, g = 0.07, 0.6, 0.25
    logs = np.log([f, 1 - f, d, 1 - d, g, 1 - g])
    reports = one_report(end=end, length=length, censored=censored)
    found = (
        first_error_dawid_skene.count_events(reports, first_error_reports.enumerate_places(reports.lengths)).counts
        @ logs
    )
    expected = [written_out(s=end, e=e, t=length, censored=censored, f=f, d=d, g=g) for e in range(length + 1)]
    assert found == pytest.approx(expected)


def test_evidence_of_many_reports_is_that_of_each() -> None:
    reports = simulated_raters.simulate_crowd(traces=12, raters_per_trace=3).reports
    places = first_error_reports.enumerate_places(reports.lengths)
    found = first_error_dawid_skene.count_events(reports, places)
    for row in (0, 17, 35):
        trace = int(reports.traces[row])
        alone = one_report(end=int(reports.ends[row]), length=int(reports.lengths[trace]))
        mine = (places.traces[found.places] == trace) & (found.raters == reports.raters[row])
        assert (
            found.counts[mine]
            == first_error_dawid_skene.count_events(alone, first_error_reports.enumerate_places(alone.lengths)).counts
        ).all()


def test_hazards_make_a_distribution_over_places() -> None:
    places = first_error_reports.enumerate_places(np.array([3, 1, 30]))
    table = np.full((1, first_error_dawid_skene.LAST_POSITION + 1), 0.1)
    prior = np.exp(
        first_error_dawid_skene.hazard_log_prior(hazards=table, places=places, domains=np.zeros(3, dtype=np.int64))
    )
    assert np.bincount(places.traces, weights=prior) == pytest.approx([1, 1, 1])
    assert prior[:4] == pytest.approx([0.1, 0.09, 0.081, 0.729])


def test_remaining_is_the_chance_of_no_earlier_error() -> None:
    places = first_error_reports.enumerate_places(np.array([2, 1]))
    assert first_error_dawid_skene.probability_not_before(np.array([0.5, 0.3, 0.2, 0.4, 0.6]), places) == pytest.approx(
        [1, 0.5, 0.2, 1, 0.6]
    )


def test_hazards_shrink_towards_the_domain_where_little_was_seen() -> None:
    places = first_error_reports.enumerate_places(np.full(400, 5))
    certain = ((places.steps == 1) & (places.traces < 200)) | (places.is_none & (places.traces >= 200))
    domains = np.repeat([0, 1], 200)
    found = first_error_dawid_skene.fit_hazards(posterior=certain.astype(float), places=places, domains=domains)
    assert found[0, 1] > 0.9
    assert found[0, 0] < 0.06
    assert found[1].max() < 0.05
    assert 0.2 < found[0, 20] < 0.6  # an unreached position has the hazard of its domain


def test_hazard_of_nothing_seen_is_one_in_ten() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    found = first_error_dawid_skene.fit_hazards(
        posterior=np.zeros(0), places=first_error_reports.enumerate_places(nothing), domains=nothing
    )
    assert found == pytest.approx(np.full((1, first_error_dawid_skene.LAST_POSITION + 1), 0.1))


def test_rates_with_few_data_shrink_to_the_pooled_rates() -> None:
    """The only report has one step, an error: with the starting rates, the odds of an error are 11 to 1. Ten occasions
    of the first guess weigh in the rates of all, and ten of those in the rater's own."""
    found = first_error_dawid_skene.fit_reports(one_report(end=0, length=1), max_rounds=0)
    wrong, right = 1.1 / 1.2, 0.1 / 1.2
    common = [(right + 0.5) / (right + 10), (wrong + 6) / (wrong + 10), 0.3]
    assert found.common == pytest.approx(common)
    own = [(right + 10 * common[0]) / (right + 10), (wrong + 10 * common[1]) / (wrong + 10), 0.3]
    assert found.rates[0] == pytest.approx(own)


def accuracy(posterior: Floats, crowd: simulated_raters.SimulatedCrowd) -> float:
    places = first_error_reports.enumerate_places(crowd.reports.lengths)
    steps, _ = first_error_reports.most_likely_places(posterior, places)
    return float((steps == crowd.truth).mean())


def test_fit_beats_the_plurality_of_its_own_raters() -> None:
    crowd = simulated_raters.simulate_crowd(traces=600, raters_per_trace=3, seed=1)
    fit = first_error_dawid_skene.fit_reports(crowd.reports)
    votes = np.bincount(fit.places.starts[crowd.reports.traces] + crowd.reports.ends, minlength=fit.places.n).astype(
        float
    )
    assert fit.has_converged
    assert accuracy(fit.posterior, crowd) > accuracy(votes, crowd) + 0.02


def test_fit_finds_the_rates_of_its_own_raters() -> None:
    reports = simulated_raters.simulate_crowd(traces=4000, raters_per_trace=5, pool=5, seed=2).reports
    fit = first_error_dawid_skene.fit_reports(reports)
    random = np.random.default_rng(2)  # the same draws as the crowd, up to its raters
    random.integers(3, 15, 4000), random.random((4000, 14)), random.random((4000, 5)), random.random(4000)
    truth = np.stack([random.beta(1.5, 40, 5), random.beta(6, 3, 5), random.beta(3, 6, 5)], axis=1)
    assert fit.rates == pytest.approx(truth, abs=0.06)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_order_of_reports_and_names_of_raters_change_nothing(seed: int) -> None:
    reports = simulated_raters.simulate_crowd(traces=40, raters_per_trace=3, seed=seed).reports
    order = np.random.default_rng(seed).permutation(len(reports.traces))
    other = ReportArrays(
        traces=reports.traces[order],
        raters=reports.raters.max() - reports.raters[order],
        ends=reports.ends[order],
        is_censored=reports.is_censored[order],
        lengths=reports.lengths,
        problems=reports.problems,
        domains=reports.domains,
    )
    first, second = first_error_dawid_skene.fit_reports(reports), first_error_dawid_skene.fit_reports(other)
    assert first.posterior == pytest.approx(second.posterior, abs=1e-8)


def test_censored_report_does_not_vote_for_none() -> None:
    """Two raters see an error at step 4, a third stopped looking after two steps."""
    crowd = simulated_raters.simulate_crowd(traces=200, raters_per_trace=3, seed=5).reports
    ends, censored = crowd.ends.copy(), np.zeros(600, dtype=np.bool_)
    trace = int(np.flatnonzero(crowd.lengths >= 6)[0])
    ends[trace * 3 : trace * 3 + 3], censored[trace * 3 + 2] = [4, 4, 2], True
    reports = ReportArrays(crowd.traces, crowd.raters, ends, censored, crowd.lengths, crowd.problems, crowd.domains)
    fit = first_error_dawid_skene.fit_reports(reports)
    steps, sure = first_error_reports.most_likely_places(fit.posterior, fit.places)
    assert steps[trace] == 4
    assert sure[trace] > 0.8


def test_nothing_reported_gives_nothing() -> None:
    none = np.zeros(0, dtype=np.int64)
    fit = first_error_dawid_skene.fit_reports(ReportArrays(none, none, none, none.astype(np.bool_), none, none, none))
    assert len(fit.posterior) == 0
    assert [len(found) for found in first_error_reports.most_likely_places(fit.posterior, fit.places)] == [0, 0]
