"""Whether a PRM is right for the wrong reason: every audit with its figure, its count, and whether its alarm rings.

    collapse          last-step ratio; what the answer adds to a score beside the label; how P(some step wrong) tells
                      traces with an error among right answers, beside how well it tells wrong answers (a PRM that has
                      become an outcome model keeps the second and loses the first)
    false confidence  P(score ≥ .9 | wrong), over all, per domain and per place; alarm where its lower end is above .3
    shortcut          the length-matched figure beside length alone; alarm where its interval lies below .5
    transfer          the figure of every domain; nothing is claimed of all while the worst one's interval holds .5
    contamination     problems of reserves, of gold, of canaries and of benchmarks that training has seen; alarm for
                      any. Where figures of this very project rest on them it holds the gate, else it is said there

An alarm needs 30 cases: figures of fewer are shown and ring nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeling.agreement.arrays import Bools
from labeling.agreement.result import Estimate
from prm.evaluation import audits, concordance, shares
from prm.evaluation.audits import Audit
from prm.evaluation.report import Judged
from prm.evaluation.steps import NONE, Labelled, is_labelled

LEAST_CASES = 30
HOLDING = frozenset({"reserve", "gold", "canary"})  # what judges here: figures of such a PRM are worth nothing
_SURE_ALARM = 0.3
_PLACES = 6


@dataclass(frozen=True)
class Outcomes:
    """Per trace of what is judged: the domain's number, and whether its answer is right, as far as that is known."""

    domains: Sequence[str]
    domain: Sequence[int]
    is_answer_right: Sequence[bool | None]


def make(judged: Judged, outcomes: Outcomes, *, contamination: dict[str, Any]) -> dict[str, Any]:
    """JSON; `alarms` names the audits that ring, `said` those of them that let pass and are told there."""
    found = {
        **_collapse(judged, outcomes),
        **_confidence(judged, outcomes),
        **_shortcut(judged),
        "contamination": _contamination(contamination),
    }
    return {
        "audits": found,
        "domains": _transfer(judged, outcomes),
        "alarms": sorted(name for name, each in found.items() if each["is_alarming"]),
        "said": sorted(name for name, each in found.items() if each["is_alarming"] and not each.get("holds", True)),
    }


def _contamination(told: dict[str, Any]) -> dict[str, Any]:
    """Of a PRM that was trained elsewhere nothing is known, and nothing rings."""
    found = {each["kind"] for each in told.get("judges", []) if each["n_equal"] + each["n_overlapping"]}
    return {**told, "is_alarming": bool(found), "holds": not found.isdisjoint(HOLDING)}


def _collapse(judged: Judged, outcomes: Outcomes) -> dict[str, Any]:
    is_known = np.array([each is not None for each in outcomes.is_answer_right], dtype=np.bool_)
    is_right = np.array([bool(each) for each in outcomes.is_answer_right], dtype=np.bool_)
    known = judged.keep(is_known)
    ratio = audits.last_step_ratio(p_wrong=known.p_wrong, lengths=known.lengths, is_answer_right=is_right[is_known])
    labelled = known.labelled()
    kept = is_labelled(lengths=known.lengths, first_errors=known.truth)
    slope = audits.outcome_slope(
        p_wrong=labelled.p_wrong,
        is_wrong=labelled.is_wrong,
        is_answer_right=np.repeat(is_right[is_known], known.lengths)[kept],
    )
    return {
        "last_step_ratio": _audit(ratio),
        "outcome_slope": _audit(slope),
        "auc_right_answers": {**figure(_auc(judged.keep(is_known & is_right), None)), "is_alarming": False},
        "auc_wrong_answers": {**figure(_auc(known, ~is_right[is_known])), "is_alarming": False},
    }


def _auc(judged: Judged, is_case: Bools | None) -> Estimate:
    """Of traces by P(some step wrong); without cases told, those with an error."""
    n = len(judged.lengths)
    passed = np.bincount(judged.traces, weights=np.log1p(-np.minimum(judged.p_wrong, 1 - 1e-9)), minlength=n)
    nothing, cases = np.zeros(n, dtype=np.int64), judged.truth != NONE if is_case is None else is_case
    return concordance.auc(
        Labelled(1 - np.exp(passed), cases, np.zeros(n), nothing, np.arange(n), judged.problems, judged.sources)
    )


def _confidence(judged: Judged, outcomes: Outcomes) -> dict[str, Any]:
    steps = judged.labelled()
    sure = shares.false_confidence(steps)
    told = {**figure(sure), "is_alarming": _rings(sure)}
    domain = np.array(outcomes.domain, dtype=np.int64)[steps.traces]
    told["domains"] = {name: figure(_sure(steps, domain == n)) for n, name in enumerate(outcomes.domains)}
    told["places"] = {
        str(place + 1): figure(_sure(steps, steps.indexes == place))
        for place in range(min(int(steps.indexes.max(initial=-1)) + 1, _PLACES))
    }
    return {"false_confidence": told}


def _sure(steps: Labelled, is_kept: Bools) -> Estimate:
    return shares.of_steps(steps, is_case=steps.is_wrong & is_kept, is_counted=1 - steps.p_wrong >= 0.9)


def _rings(sure: Estimate) -> bool:
    is_enough = sure.counts.pairable >= LEAST_CASES
    return is_enough and sure.interval is not None and sure.interval.low > _SURE_ALARM


def _shortcut(judged: Judged) -> dict[str, Any]:
    steps = judged.labelled()
    matched, alone = concordance.length_matched_auc(steps), concordance.length_only_auc(steps)
    is_enough = int(steps.is_wrong.sum()) >= LEAST_CASES and matched.interval is not None
    is_alarming = bool(is_enough and matched.interval and matched.interval.high < 0.5)
    return {
        "length_matched": {**figure(matched), "is_alarming": is_alarming},
        "length_alone": {**figure(alone), "is_alarming": False},
    }


def _transfer(judged: Judged, outcomes: Outcomes) -> dict[str, Any]:
    """The length-matched figure of every domain, and whether anything may be said of all of them."""
    domain = np.array(outcomes.domain, dtype=np.int64)
    found = {
        name: concordance.length_matched_auc(judged.keep(domain == n).labelled())
        for n, name in enumerate(outcomes.domains)
    }
    figures = {name: figure(each) for name, each in found.items()}
    return {"figures": figures, "may_claim_all": holds_everywhere(figures)}


def holds_everywhere(figures: dict[str, Any]) -> bool:
    """Nothing is claimed of all domains while the worst one's interval holds .5, or one has none."""
    return all(each["interval"] is not None and each["interval"][0] > 0.5 for each in figures.values())


def _audit(found: Audit) -> dict[str, Any]:
    is_alarming = bool(found.is_alarming and found.n >= LEAST_CASES)
    return {"value": found.value, "n": found.n, "interval": None, "is_alarming": is_alarming}


def figure(found: Estimate) -> dict[str, Any]:
    """An estimate as JSON keeps it."""
    interval = [found.interval.low, found.interval.high] if found.interval else None
    reason = found.reason or (found.interval_reason if found.interval is None else None)
    return {"value": found.value, "interval": interval, "n": found.counts.pairable, "reason": str(reason or "")}
