"""Measure the statistics of machine raters on simulated worlds with known truth: `python -m bench.machine_raters`.

    passport   coverage of the passport's 95 % intervals
    licenses   worlds in which every licensed stratum delivers the promised precision, with blind spots that people and
               machine share
    drift      how soon a drop by ten points is caught, and how often an unchanged machine is suspended
    powered    coverage and length of prediction-powered intervals, with uniform and with chosen labels, without and
               with recorded outcomes and lengths
    harm       how often the test for harm stops suggestions with an effect of 15 points, and harmless ones

Prints a line per measurement, and one line of JSON.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stats import (
    alternative_annotator,
    drift,
    exposure_effects,
    machine_agreement,
    machine_licenses,
    prediction_powered,
    reliability,
)
from stats.alternative_annotator import ItemAnswers
from stats.arrays import Floats, Ints
from stats.drift import DriftPlan
from stats.estimates import Estimate, Interval
from stats.machine_agreement import MachinePairs
from stats.machine_licenses import StratumEvidence
from stats.prediction_powered import PoweredEstimate

STEPS, VOTES, PEOPLE = 12, 8, 4
PROMISED = 0.9


# --- the passport -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgedWorld:
    """Traces of problems that differ, with the first errors by truth, a machine of several votes, and people."""

    problems: Ints
    lengths: Ints
    truth: Ints
    machine: Ints
    confidences: Floats
    people: Ints  # (traces, people)


def draw_world(n_problems: int, random: np.random.Generator) -> JudgedWorld:
    problems = np.repeat(np.arange(n_problems), random.integers(1, 5, n_problems))
    n = len(problems)
    lengths = random.integers(4, STEPS + 1, n)
    hazard = random.beta(1.2, 10, n_problems)[problems]
    truth = _draw_ends(lengths, lengths, hazard, hazard, random)
    # How visible the errors of a problem are changes all answers; how visible one is to the machine, all its votes.
    ease = random.beta(8, 3, n_problems)[problems]
    seen = np.clip(ease * random.beta(6, 2, n), 0, 1)
    seduced = random.beta(1, 30, n)
    votes = np.column_stack([_draw_ends(truth, lengths, seen, seduced, random) for _ in range(VOTES)])
    counts = (votes[:, :, None] == np.arange(STEPS + 1)).sum(axis=1)
    people = [_draw_ends(truth, lengths, np.clip(ease * 1.1, 0, 1), np.full(n, 0.02), random) for _ in range(PEOPLE)]
    machine = counts.argmax(axis=1)
    return JudgedWorld(problems, lengths, truth, machine, counts.max(axis=1) / VOTES, np.column_stack(people))


def _draw_ends(truth: Ints, lengths: Ints, seen: Floats, alarm: Floats, random: np.random.Generator) -> Ints:
    """Return where a rater stops who sees the error with probability `seen` and alarms at other steps."""
    ends = lengths.copy()
    for step in range(STEPS - 1, -1, -1):
        stops = random.random(len(truth)) < np.where(truth == step, seen, alarm)
        ends = np.where(stops & (step < lengths), step, ends)
    return ends


def estimate_passport(world: JudgedWorld) -> dict[str, tuple[float, Interval | None]]:
    """Return the figures of a passport by name, with their intervals."""
    two = np.repeat(np.arange(len(world.truth)), 2)
    persons = world.people[:, :2].ravel()
    pairs = MachinePairs(
        world.machine[two], persons, np.zeros(len(two), dtype=np.bool_), world.lengths[two], world.problems[two]
    )
    first_errors = machine_agreement.estimate_first_errors(pairs)
    errors = machine_agreement.estimate_errors(world.machine, world.truth, world.lengths, world.problems)
    stated = reliability.estimate_reliability(
        confidences=world.confidences, is_right=world.machine == world.truth, problems=world.problems
    )
    test = alternative_annotator.compare_with_people(
        ItemAnswers(
            items=np.repeat(np.arange(len(world.truth)), PEOPLE),
            people=np.tile(np.arange(PEOPLE), len(world.truth)),
            answers=world.people.ravel(),
            machine=world.machine,
            problems=world.problems,
        ),
        epsilon=0.1,
    )
    estimates: dict[str, Estimate] = {
        "first_error_exact": first_errors.exact,
        "has_error_kappa": first_errors.has_error_kappa,
        **machine_agreement.estimate_steps(*_pair_steps(pairs)),
        "missed": errors.missed,
        "false_alarms": errors.false_alarms,
        "missed_3_to_5": errors.missed_by_position[1].estimate,
        "brier": stated.brier,
        "calibration_error": stated.calibration_error,
    }
    found = {name: (each.value or 0.0, each.interval) for name, each in estimates.items()}
    return found | {"advantage": (test.advantage or 0.0, test.interval)}


def _pair_steps(pairs: MachinePairs) -> tuple[Ints, Ints, Ints]:
    """Return the ratings of machine and person on the steps that both rated, and their problems."""
    places = np.arange(STEPS)[None, :]
    both = (places <= np.minimum(pairs.machine_ends, pairs.person_ends)[:, None]) & (places < pairs.lengths[:, None])
    machine = np.where(places == pairs.machine_ends[:, None], -1, 1)[both]
    person = np.where(places == pairs.person_ends[:, None], -1, 1)[both]
    return machine, person, np.broadcast_to(pairs.problems[:, None], both.shape)[both]


def measure_passport(*, sizes: tuple[int, ...] = (60, 150), worlds: int = 400, seed: int = 1) -> dict[str, float]:
    """Return the coverage of each interval, by name and number of problems."""
    random = np.random.default_rng(seed)
    truth = {name: value for name, (value, _) in estimate_passport(draw_world(60_000, random)).items()}
    covered: dict[str, list[bool]] = defaultdict(list)
    for size in sizes:
        for _ in range(worlds):
            for name, (_value, interval) in estimate_passport(draw_world(size, random)).items():
                if interval is not None:
                    covered[f"{name} {size}"].append(interval.low <= truth[name] <= interval.high)
    return {name: float(np.mean(hits)) for name, hits in covered.items()}


# --- licenses ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LicensedWorld:
    delivers: bool  # every licensed stratum keeps the promise
    n_licensed: int
    n_worthy: int  # strata whose precision is at least .97


def run_licenses(
    random: np.random.Generator, *, n_strata: int = 6, n_people: int = 500, is_hostile: bool = False
) -> LicensedWorld:
    """License the strata of one world. Precisions lie around the promise; in a hostile world all lie just below it, and
    people make most of the machine's errors too."""
    precisions = np.full(n_strata, PROMISED - 0.005) if is_hostile else random.uniform(0.84, 1.0, n_strata)
    # The share of the machine's errors that people make too.
    shared = np.full(n_strata, 0.9) if is_hostile else random.choice([0.0, 0.3, 0.6, 0.9], n_strata)
    evidence = {key: _draw_evidence(precisions[key], shared[key], n_people, random) for key in range(n_strata)}
    bounds = machine_licenses.bound_strata(evidence, promised=PROMISED)
    licensed = [key for key in range(n_strata) if bounds[key].keeps_promise]
    delivers = all(precisions[key] >= PROMISED for key in licensed)
    return LicensedWorld(delivers, len(licensed), int((precisions >= 0.97).sum()))


def _draw_evidence(precision: float, shared: float, n: int, random: np.random.Generator) -> StratumEvidence:
    problems = random.integers(0, n // 2, n)  # two traces per problem
    is_right = _draw_clustered(precision, problems, random)
    agrees = np.where(is_right, random.random(n) < 0.985, random.random(n) < shared)
    # Labels by people are drawn with unequal probabilities that know nothing of the outcome.
    weights = random.choice([0.5, 1.0, 2.0], n)
    gold_problems = random.integers(0, 100, 150)
    wrong_on_gold = ~_draw_clustered(precision, gold_problems, random)  # no richer in errors: the harder case
    return StratumEvidence(agrees, problems, weights, wrong_on_gold & (random.random(150) < shared), gold_problems)


def _draw_clustered(share: float, problems: Ints, random: np.random.Generator) -> np.ndarray:
    """Draw hits whose probability differs between problems, with the given mean."""
    if share >= 1:
        return np.ones(len(problems), dtype=np.bool_)
    by_problem = random.beta(8 * share, 8 * (1 - share), int(problems.max()) + 1)
    return np.asarray(random.random(len(problems)) < by_problem[problems])


def measure_licenses(*, worlds: int = 400, seed: int = 2) -> dict[str, float]:
    random = np.random.default_rng(seed)
    found = [run_licenses(random) for _ in range(worlds)]
    hostile = [run_licenses(random, is_hostile=True) for _ in range(worlds)]
    return {
        "delivers_hostile": float(np.mean([each.delivers for each in hostile])),
        "delivers": float(np.mean([each.delivers for each in found])),
        "licensed_per_world": float(np.mean([each.n_licensed for each in found])),
        "worthy_per_world": float(np.mean([each.n_worthy for each in found])),
    }


# --- drift ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DriftFigures:
    caught: float  # within 60 re-tests after the drop
    false_alarms: float  # within 60 re-tests of an unchanged machine


def measure_drift(precision: float, *, n_licensed: int = 300, runs: int = 2000, seed: int = 3) -> DriftFigures:
    """License a machine from `n_licensed` traces, so its precision is known only roughly, then re-test it."""
    random = np.random.default_rng(seed)
    caught = false = 0
    for _ in range(runs):
        plan: DriftPlan = drift.plan_drift_test(float(random.binomial(n_licensed, precision) / n_licensed))
        unchanged = random.random(drift.HORIZON) < precision
        worse = random.random(drift.HORIZON) < precision - drift.DROP
        caught += drift.find_alarm(worse.tolist(), plan) is not None
        false += drift.find_alarm(unchanged.tolist(), plan) is not None
    return DriftFigures(caught / runs, false / runs)


# --- prediction-powered figures ---------------------------------------------------------------------------------------

# Judges with an AUC of .8: a graded score with two normal distributions, a verdict that errs both ways alike, and a
# verdict without false alarms.
JUDGES = ("graded", "balanced", "sparing")


@dataclass(frozen=True)
class PoweredFigures:
    covered: float
    human_covered: float
    shorter: float  # mean share by which the interval is shorter
    auc: float


def draw_estimate(
    judge: str,
    random: np.random.Generator,
    *,
    n_pool: int = 3000,
    n_labels: int = 200,
    is_chosen: bool = False,
    knows_outcome: bool = False,
) -> tuple[PoweredEstimate, float]:
    """Return the estimate of the error rate in one world, and the judge's AUC there.

    Where outcomes are known, 60 % of the traces with an error have a wrong final answer, and 2 % of the others; longer
    traces err more often."""
    problems = random.integers(0, n_pool // 2, n_pool)
    rate = random.beta(2, 8, n_pool // 2)[problems]
    wrong = random.random(n_pool) < rate
    predicted = _predict(judge, wrong, random)
    chance = np.ones(n_pool)
    if is_chosen:  # labels go to likely errors first, with known probabilities
        chance = 1 + predicted / predicted.mean()
    chance = np.minimum(chance * n_labels / chance.sum(), 1.0)
    is_labeled = random.random(n_pool) < chance
    pool = prediction_powered.label_pool(
        values=np.where(is_labeled, wrong, 0).astype(np.float64),
        weights=np.where(is_labeled, 1 / chance, 0.0),
        predicted=predicted,
        problems=problems,
        covariates=_record_covariates(wrong, random) if knows_outcome else None,
    )
    return prediction_powered.estimate_with_predictions(pool), _auc(predicted, wrong)


def _record_covariates(wrong: np.ndarray, random: np.random.Generator) -> Floats:
    has_wrong_answer = random.random(len(wrong)) < np.where(wrong, 0.6, 0.02)
    log_length = random.normal(2 + 0.3 * wrong, 0.5)
    return np.stack([has_wrong_answer.astype(np.float64), log_length], axis=1)


def _predict(judge: str, wrong: np.ndarray, random: np.random.Generator) -> Floats:
    n = len(wrong)
    if judge == "graded":
        logit = random.normal(1.19 * wrong, 1.0)
        return np.asarray(1 / (1 + np.exp(-(1.19 * logit - 2.1))))
    detection, alarm = (0.8, 0.2) if judge == "balanced" else (0.605, 0.005)
    return (random.random(n) < np.where(wrong, detection, alarm)).astype(np.float64)


def _auc(score: Floats, wrong: np.ndarray) -> float:
    high, low = score[wrong][:400], score[~wrong][:1600]
    return float((high[:, None] > low).mean() + (high[:, None] == low).mean() / 2)


def measure_powered(
    judge: str, *, is_chosen: bool = False, knows_outcome: bool = False, worlds: int = 1000, seed: int = 4
) -> PoweredFigures:
    random = np.random.default_rng(seed)
    covered, human, shorter, aucs = [], [], [], []
    for _ in range(worlds):
        found, auc = draw_estimate(judge, random, is_chosen=is_chosen, knows_outcome=knows_outcome)
        if found.interval is None or found.human_interval is None or found.saved_share is None:
            continue
        covered.append(found.interval.low <= 0.2 <= found.interval.high)
        human.append(found.human_interval.low <= 0.2 <= found.human_interval.high)
        shorter.append(found.saved_share)
        aucs.append(auc)
    return PoweredFigures(*(float(np.mean(values)) for values in (covered, human, shorter, aucs)))


# --- harm of suggestions ----------------------------------------------------------------------------------------------

BLIND_RATES = (0.05, 0.1, 0.15, 0.2, 0.3)
# Exposed arms, and blind decisions for each one of an exposed arm.
ALLOCATIONS = ((1, 1.0), (1, 2.0), (1, 3.0), (2, 1.0), (2, 2.0))


@dataclass(frozen=True)
class HarmFigures:
    """By `BLIND_RATES`. The Monte Carlo error of each share is at most `error`."""

    found: list[float]  # effects of 15 points with 111 decisions of the exposed arm
    false_alarms: list[float]  # within 2,000
    error: float


def measure_harm(n_arms: int, ratio: float, *, runs: int = 20_000) -> HarmFigures:
    alpha = exposure_effects.ALPHA / n_arms

    def simulate(blind: float, effect: float, n: int) -> float:
        stops = exposure_effects.simulate_stops(
            blind, blind + effect, n=n, runs=runs, blind_ratio=ratio, alpha=alpha, seed=n
        )
        return float(stops.mean())

    return HarmFigures(
        [simulate(rate, exposure_effects.EFFECT, exposure_effects.HORIZON) for rate in BLIND_RATES],
        [simulate(rate, 0.0, 2000) for rate in BLIND_RATES],
        0.5 / runs**0.5,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=400)
    worlds = parser.parse_args().worlds
    passport = measure_passport(worlds=worlds)
    licenses = measure_licenses(worlds=worlds)
    drifts = {str(p): vars(measure_drift(p)) for p in (0.9, 0.95, 0.98)}
    powered = {
        f"{judge}{' chosen' * is_chosen}{' with outcomes' * knows_outcome}": vars(
            measure_powered(judge, is_chosen=is_chosen, knows_outcome=knows_outcome, worlds=worlds)
        )
        for judge in JUDGES
        for is_chosen in (False, True)
        for knows_outcome in (False, True)
    }
    harm = {f"{n_arms} exposed, blind × {ratio:g}": vars(measure_harm(n_arms, ratio)) for n_arms, ratio in ALLOCATIONS}
    figures: dict[str, Mapping[str, object]] = {
        "passport": passport,
        "licenses": licenses,
        "drift": drifts,
        "powered": powered,
        "harm": harm,
    }
    for part, values in figures.items():
        for name, value in values.items():
            print(f"{part:10} {name:28} {value}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
