"""Weigh the evidence that a rater's work is worthless, from the first submission on, at a stated false-alarm rate.

Each signal is an e-value: a nonnegative statistic whose mean is at most 1 for ordinary raters, whenever it is checked.
So at most a fraction α of them ever reaches 1/α (Ville's inequality), however often the check runs.

    gold       compares results on hidden gold with an absolute floor. The likelihood of a worthless rater (always
               positive, or a random step) is divided by that of a rater who gets at least GOLD_FLOOR right, both of
               the gold with an error and of the gold without one. Needs nothing but gold
    agreement  compares reports on gold and on traces that others also read. The Bayes factor of worthless rates
               (at most WORTHLESS of the usual detection rate, or random stops) against those of ordinary raters. The
               position of the error is inferred from the other raters' reports by first-error Dawid-Skene, with gold
               clamped and the rater's own report left out
    repeats    compares identical results in a row with the others' share of this result, at three times the odds. A
               result that another rater of the same trace also gave is no evidence
    speed      compares the traces rated faster than anyone can read with the others' share of such traces, at three
               times the odds. Where most are fast, speed is no evidence

The mean of e-values is an e-value whatever their dependence, so the joint bound needs no count of flags and no
independence: a rater is paused when the weighted mean reaches 1/α. "gold" keeps its promise for all raters above its
floor, "repeats" and "speed" for all within their margin; "agreement" keeps it for raters drawn from the prior
below and as far as the model of the others is right, so its rate is measured (`bench.protection`).

V. Vovk, R. Wang (2021), "E-values: calibration, combination and applications", doi:10.1214/20-AOS2020; L. Wasserman,
A. Ramdas, S. Balakrishnan (2020), "Universal inference", doi:10.1073/pnas.1922664117; A. Ramdas et al. (2023),
"Game-theoretic statistics and safe anytime-valid inference", doi:10.1214/23-STS894.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stats import first_error_dawid_skene
from stats.arrays import Bools, Floats, Ints
from stats.first_error_dawid_skene import FirstErrorFit
from stats.first_error_reports import FirstErrorPlaces, ReportArrays, enumerate_places

FALSE_PAUSES = 0.02  # α, of ordinary raters
WEIGHTS = {"gold": 0.2, "agreement": 0.7, "repeats": 0.05, "speed": 0.05}
# How many of so many simulated honest raters each signal alone would have paused: `bench.protection --seeds 100`.
N_SIMULATED, PAUSED_ALONE = 1100, {"gold": 0, "agreement": 11, "repeats": 0, "speed": 0}
GOLD_FLOOR = 0.4
WORTHLESS = 0.65  # of the detection of ordinary raters
MIN_PARTNERS = 2  # agreement with only one other rater is no evidence against anyone
MAX_ROUNDS = 40
_LOWEST_USUAL, _HIGHEST_USUAL, _PRIOR_STRENGTH = 0.4, 0.8, 80.0
_MARGIN = 3.0  # factor on the odds of others
_BETS = np.array([0.8, 0.98])
_SHARED_RESULT = 0.97


@dataclass(frozen=True)
class ObservedWork:
    """Reports in the order in which they were submitted.

    `known` has the accepted ends of gold traces. `is_impossible` tells for each report whether it was faster than
    reading; `is_timed` whether its time is known. Reports that are not `is_counted` inform about the others only.
    """

    reports: ReportArrays
    known: Mapping[int, set[int]]
    is_impossible: Bools
    is_timed: Bools
    is_counted: Bools


@dataclass(frozen=True)
class SignalEvidence:
    """`log_e` is the natural logarithm of the e-value, from `n` cases."""

    log_e: float = 0.0
    n: int = 0

    @property
    def false_alarm_rate(self) -> float:
        """The share of ordinary raters who ever reach this value."""
        return float(min(1.0, np.exp(-self.log_e)))


@dataclass(frozen=True)
class RaterEvidence:
    signals: Mapping[str, SignalEvidence]
    detection: float | None = None  # of errors, as the model estimates it
    false_alarm: float | None = None  # at a correct step
    joint: SignalEvidence = field(init=False)

    def __post_init__(self) -> None:
        logs = [self.signals[name].log_e for name in WEIGHTS]
        joint = _log_sum(np.array(logs) + np.log(list(WEIGHTS.values())))
        object.__setattr__(self, "joint", SignalEvidence(joint, max(each.n for each in self.signals.values())))

    @property
    def is_overwhelming(self) -> bool:
        return self.joint.log_e >= -math.log(FALSE_PAUSES)


def weigh_evidence(work: ObservedWork) -> list[RaterEvidence]:
    """Return the evidence on each rater."""
    reports, places = work.reports, enumerate_places(work.reports.lengths)
    if not len(reports.traces):
        return []
    possible = _find_possible_places(work, places)
    fit = first_error_dawid_skene.fit_reports(reports, possible=possible, max_rounds=MAX_ROUNDS)
    agreement, repeats = _AgreementTest(work, fit), _RepeatTest(reports)
    evidence = []
    for rater in range(reports.n_raters):
        rows = np.flatnonzero((reports.raters == rater) & work.is_counted)
        signals = {
            "gold": _weigh_gold(work, rows),
            "agreement": agreement.weigh(rater, rows),
            "repeats": repeats.weigh(rater, rows),
            "speed": _weigh_speed(work, rater, rows),
        }
        evidence.append(RaterEvidence(signals, float(fit.rates[rater, 1]), float(fit.rates[rater, 0])))
    return evidence


def _find_possible_places(work: ObservedWork, places: FirstErrorPlaces) -> Bools:
    possible = np.ones(places.n, dtype=np.bool_)
    for trace, ends in work.known.items():
        start = places.starts[trace]
        stop = start + work.reports.lengths[trace] + 1
        possible[start:stop] = False
        possible[start + np.array(sorted(ends), dtype=np.int64)] = True
    return possible


# Gold


def _weigh_gold(work: ObservedWork, rows: Ints) -> SignalEvidence:
    """Compare "always positive" and "a random step" with all raters above the floor, by universal inference."""
    reports = work.reports
    rows = np.array([row for row in rows if reports.traces[row] in work.known and not reports.is_censored[row]], int)
    if not len(rows):
        return SignalEvidence()
    accepted = [work.known[trace] for trace in reports.traces[rows].tolist()]
    lengths = reports.lengths[reports.traces[rows]]
    right = np.array([end in ends for end, ends in zip(reports.ends[rows].tolist(), accepted, strict=True)])
    is_clean = np.array([length in ends for length, ends in zip(lengths.tolist(), accepted, strict=True)])
    at_random = np.array([len(ends) for ends in accepted]) / (lengths + 1)
    worthless = [np.where(is_clean, 0.98, 0.02), np.clip(at_random, 0.02, 0.98)]
    likelihoods = [float(np.log(np.where(right, chance, 1 - chance)).sum()) for chance in worthless]
    best = sum(_log_likelihood_above_floor(right[part]) for part in (is_clean, ~is_clean))
    return SignalEvidence(_log_sum(np.array(likelihoods)) - np.log(len(worthless)) - best, len(rows))


def _log_likelihood_above_floor(right: Bools) -> float:
    if not len(right):
        return 0.0
    share = min(max(float(right.mean()), GOLD_FLOOR), 1 - 1e-9)
    return float(np.log(np.where(right, share, 1 - share)).sum())


# Agreement with others at the same traces


class _AgreementTest:
    """The likelihood of a rater's reports over a grid of rates, given the other raters' reports and gold for each
    trace."""

    def __init__(self, work: ObservedWork, fit: FirstErrorFit) -> None:
        self.reports, self.rates = work.reports, fit.rates
        events = first_error_dawid_skene.count_events(work.reports, fit.places)
        self.counts = events.counts
        own = np.einsum("re,re->r", events.counts, first_error_dawid_skene.event_logs(fit.rates)[events.raters])
        with np.errstate(divide="ignore"):
            self.others = np.log(fit.posterior)[events.places] - own
        sizes = work.reports.lengths[work.reports.traces] + 1
        self.ends = np.cumsum(sizes)
        self.starts = self.ends - sizes
        n_reports = np.bincount(work.reports.traces, minlength=work.reports.n_traces)
        is_known = np.isin(np.arange(work.reports.n_traces), list(work.known))
        self.is_comparable = (n_reports >= 2) | is_known
        self.readers = _list_readers(work.reports)
        self.grid, self.bad, self.ordinary = _build_grid(float(np.median(fit.rates[np.unique(work.reports.raters), 1])))
        self.of_shapes: dict[bytes, Floats] = {}  # likelihoods by event counts: raters have the same few shapes

    def weigh(self, rater: int, rows: Ints) -> SignalEvidence:
        traces = self.reports.traces[rows]
        rows = rows[self.is_comparable[traces]]
        partners = {other for trace in traces.tolist() for other in self.readers[trace]} - {rater}
        if len(partners) < MIN_PARTNERS or not len(rows):
            return SignalEvidence(0.0, len(rows))
        likelihood = sum(self._log_likelihood(same) for same in self._group_by_shape(rows))
        factor = _log_sum(likelihood + self.bad) - _log_sum(likelihood + self.ordinary)
        return SignalEvidence(float(factor), len(rows))

    def _group_by_shape(self, rows: Ints) -> list[Ints]:
        """Group reports with the same end on traces of the same length: they share the likelihood of each place."""
        reports = self.reports
        lengths = reports.lengths[reports.traces[rows]]
        key = (lengths * (int(lengths.max()) + 2) + reports.ends[rows]) * 2 + reports.says_error[rows]
        order = np.argsort(key, kind="stable")
        return np.split(rows[order], np.flatnonzero(np.diff(key[order])) + 1)

    def _log_likelihood(self, rows: Ints) -> Floats:
        """Return the log-likelihood of reports of one shape at each point of the grid."""
        start, size = self.starts[rows[0]], self.ends[rows[0]] - self.starts[rows[0]]
        logs = self.others[self.starts[rows][:, None] + np.arange(size)]
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):  # 0 for rates that make hundreds of steps impossible
            likelihoods = np.log(weights @ self._find_likelihoods(self.counts[start : start + size]))
        return np.asarray(likelihoods.sum(axis=0))

    def _find_likelihoods(self, counts: Floats) -> Floats:
        """Return the likelihood of a report at each place and each point of the grid."""
        key = counts.tobytes()
        if key not in self.of_shapes:
            self.of_shapes[key] = np.exp(counts @ self.grid.T)
        return self.of_shapes[key]


def _list_readers(reports: ReportArrays) -> list[set[int]]:
    readers: list[set[int]] = [set() for _ in range(reports.n_traces)]
    for trace, rater in zip(reports.traces.tolist(), reports.raters.tolist(), strict=True):
        readers[trace].add(rater)
    return readers


def _log_sum(logs: Floats) -> float:
    """Return log Σ exp."""
    highest = float(logs.max())
    return highest + float(np.log(np.exp(logs - highest).sum()))


def _build_grid(usual_detection: float) -> tuple[Floats, Floats, Floats]:
    """Return the event logs of the grid's rates, and the log-priors of worthless and of ordinary raters over it.

    Ordinary raters are spread around the project's own detection, in limits: in a project of bad raters, the usual
    detection must not excuse them.
    """
    detections = np.linspace(0.02, 0.98, 17)
    false_alarms, late = np.array([0.005, 0.02, 0.05, 0.1, 0.18]), np.array([0.01, 0.1, 0.3, 0.6])
    random_stops = np.array([0.005, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7])
    usual = min(max(usual_detection, _LOWEST_USUAL), _HIGHEST_USUAL)
    mesh = np.stack(np.meshgrid(false_alarms, detections, late, indexing="ij"), axis=-1).reshape(-1, 3)
    rates = np.concatenate([mesh, np.repeat(random_stops[:, None], 3, axis=1)])
    is_random = np.arange(len(rates)) >= len(mesh)
    finds_few = ~is_random & (rates[:, 1] <= WORTHLESS * usual) & (rates[:, 0] <= 0.05)
    # More weight on the better ones: they are harder to tell from ordinary raters.
    few = np.where(finds_few, rates[:, 1], 0.0)
    bad = 0.8 * few / few.sum() + 0.2 * is_random / is_random.sum()
    a, b = _PRIOR_STRENGTH * usual, _PRIOR_STRENGTH * (1 - usual)
    density = rates[:, 1] ** (a - 1) * (1 - rates[:, 1]) ** (b - 1)
    weight = np.array([0.3, 0.3, 0.25, 0.12, 0.03])[np.searchsorted(false_alarms, np.minimum(rates[:, 0], 0.18))]
    ordinary = np.where(is_random, 0.0, density * weight)
    with np.errstate(divide="ignore"):
        return first_error_dawid_skene.event_logs(rates), np.log(bad), np.log(ordinary / ordinary.sum())


# Behavior


def _widen(share: float) -> float:
    """Return the share with three times the odds."""
    odds = _MARGIN * share / (1 - share)
    return odds / (1 + odds)


def _weigh_events(happened: Bools, at_most: Floats) -> SignalEvidence:
    """Bet that events happen more often than `at_most`: the e-value is below 1 on average unless they do."""
    if not len(happened):
        return SignalEvidence()
    bets = np.maximum(_BETS[:, None], at_most)
    logs = np.where(happened, np.log(bets / at_most), np.log((1 - bets) / (1 - at_most))).sum(axis=1)
    return SignalEvidence(_log_sum(logs) - np.log(len(_BETS)), len(happened))


def _weigh_speed(work: ObservedWork, rater: int, rows: Ints) -> SignalEvidence:
    is_others = work.is_timed & (work.reports.raters != rater)
    usual = float(work.is_impossible[is_others].sum() + 1) / float(is_others.sum() + 20)
    own = rows[work.is_timed[rows]]
    return _weigh_events(work.is_impossible[own], np.full(len(own), _widen(usual)))


class _RepeatTest:
    """How often each rater has the same result as on the trace before, and how often the others have it."""

    def __init__(self, reports: ReportArrays) -> None:
        self.reports = reports
        self.results = np.where(reports.says_error, reports.ends, -1)
        self.domains = reports.domains[reports.traces]
        self.readers: dict[tuple[int, int], set[int]] = defaultdict(set)  # by trace and result
        self.counts: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)  # of raters, by domain and result
        self.in_domain: dict[int, Counter[int]] = defaultdict(Counter)
        columns = (reports.traces, self.results, reports.raters, self.domains, reports.is_censored)
        for trace, result, rater, domain, is_censored in zip(*(each.tolist() for each in columns), strict=True):
            if not is_censored:
                self.readers[trace, result].add(rater)
                self.counts[domain, result][rater] += 1
                self.in_domain[domain][rater] += 1
        self.totals = {key: counts.total() for key, counts in self.counts.items()}
        self.domain_totals = {domain: counts.total() for domain, counts in self.in_domain.items()}

    def weigh(self, rater: int, rows: Ints) -> SignalEvidence:
        rows = rows[~self.reports.is_censored[rows]]
        before = self.results[rows][:-1].tolist()
        traces, domains = (values[rows][1:].tolist() for values in (self.reports.traces, self.domains))
        at_most = [self._usual_share(rater, *row) for row in zip(traces, domains, before, strict=True)]
        return _weigh_events(self.results[rows][1:] == self.results[rows][:-1], np.array(at_most))

    def _usual_share(self, rater: int, trace: int, domain: int, result: int) -> float:
        readers = self.readers.get((trace, result), ())
        if len(readers) > (rater in readers):
            return _SHARED_RESULT
        counts = self.counts.get((domain, result))
        own, in_domain = counts[rater] if counts else 0, self.in_domain[domain][rater]
        n = self.domain_totals.get(domain, 0) - in_domain
        share = (self.totals.get((domain, result), 0) - own + 5) / (n + 10)  # one in two without others
        return _widen(share)
