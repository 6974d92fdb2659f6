"""Judges PRMs on the reserve, and says whether one may take over. Reads alone: verbs keep what is said here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeling.agreement.arrays import Bools, Floats, Ints
from labeling.agreement.result import Interval, Reason
from labeling.models import Manifest
from prm import hazards, packing, registry
from prm import labels as labels_
from prm.backends import asked
from prm.evaluation import audit_report, best_of_n, concordance, gate, report
from prm.evaluation.audit_report import Outcomes, figure
from prm.evaluation.report import Judged
from prm.labels import Labels
from prm.models import PRM, Score
from prm.models.prm import BackendKind
from prm.selection import platt
from prm.selection.platt import Calibration
from prm.texts import Text

BATCH, _CHUNK = 64, 2000
_CANDIDATES, _LEAST_PROBLEMS = (2, 4, 8, 16), 5


@dataclass(frozen=True)
class Reserve:
    """The labelled part of it, read once for all PRMs that are judged."""

    texts: list[Text]
    labels: Labels

    def keep(self, is_kept: Bools) -> "Reserve":
        texts = [text for text, kept in zip(self.texts, is_kept, strict=True) if kept]
        return Reserve(texts, self.labels.keep(is_kept))


@dataclass(frozen=True)
class Found:
    """What was found of one PRM."""

    judged: Judged
    evaluation: dict[str, Any]
    audits: dict[str, Any]
    calibration: dict[str, Any]
    threshold: float | None


def reserve_of(manifest: Manifest) -> Reserve:
    labels = labels_.of_manifest(manifest)
    kept = labels.keep(labels.is_reserve)
    return Reserve(labels_.read(kept), kept)


def known_to(reserve: Reserve, *prms: PRM | None) -> Reserve:
    """What all of these PRMs can be judged on: one whose scores are pushed says nothing of what was not pushed."""
    for prm in prms:
        if prm is not None and prm.backend == BackendKind.PUSHED:
            there = _pushed(prm, reserve.texts)
            reserve = reserve.keep(np.array([text.trace in there for text in reserve.texts], dtype=np.bool_))
    return reserve


def _pushed(prm: PRM, texts: Sequence[Text]) -> dict[int, Floats]:
    """The scores of each trace; context stays NaN."""
    found: dict[int, Floats] = {}
    for start in range(0, len(texts), _CHUNK):
        ids = [text.trace for text in texts[start : start + _CHUNK]]
        for trace, kept in Score.objects.filter(prm=prm, trace__in=ids).values_list("trace_id", "numbers"):
            found[trace] = packing.unpack([bytes(kept)])[0][:, 0]
    return found


def scores(prm: PRM, texts: Sequence[Text]) -> tuple[Floats, Ints]:
    """One number of every step, end to end, NaN for context; and how many each trace has."""
    lengths = np.array([len(text.steps) for text in texts], dtype=np.int64)
    if prm.backend == BackendKind.PUSHED:
        there = _pushed(prm, texts)
        return np.concatenate([np.zeros(0), *(there[text.trace] for text in texts)]), lengths
    backend, parts = registry.backend_of(prm), []
    for start in range(0, len(texts), BATCH):
        some = [text.asked for text in texts[start : start + BATCH]]
        parts += asked.checked(backend.score(some), some, prm.semantics)
    is_rateable = np.array([each for text in texts for each in text.is_rateable], dtype=np.bool_)
    return np.where(is_rateable, np.concatenate(parts) if parts else np.zeros(0), np.nan), lengths


def judge(prm: PRM, reserve: Reserve, *, contamination: dict[str, Any] | None = None) -> Found:
    """`contamination` is what `contaminating.look` told; without it that audit is left open."""
    said, lengths = scores(prm, reserve.texts)
    first_value = hazards.first_value(prm, said, lengths)
    p_wrong = hazards.raw(prm, said, lengths, first_value=first_value)
    found = labels_.judged(reserve.texts, reserve.labels.first_errors, p_wrong)
    steps = found.labelled()
    line = platt.fit(hazards=steps.p_wrong, is_wrong=steps.is_wrong, n_traces=len(found.lengths))
    has_both = bool(steps.is_wrong.any() and not steps.is_wrong.all())
    estimates = report.by_threshold_of_others(found) if len(found.lengths) else {}
    return Found(
        judged=found,
        evaluation={
            "figures": {name: figure(each) for name, each in estimates.items()},
            "counts": report.counts(found) if len(found.lengths) else {"traces": 0},
            "domains": _by_domain(found, reserve.texts),
            "best_of_n": _best_of_n(found, reserve.texts),
        },
        audits=_audits(found, reserve.texts, contamination or {}),
        calibration=_calibration(line, first_value),
        threshold=report.best_threshold(found) if has_both else None,
    )


def _calibration(line: Calibration, first_value: float) -> dict[str, Any]:
    told = {"intercept": line.intercept, "slope": line.slope, "n": line.n_traces, "is_fitted": line.is_fitted}
    return {**told, "first_value": first_value}


def compare(candidate: Found, current: Found | None, *, is_current: bool) -> gate.Verdict:
    """The gate, on the very same labelled steps."""
    steps = candidate.judged.labelled()
    difference: Interval | Reason | None = None
    if current is not None:
        difference = concordance.length_matched_difference(steps, current.judged.labelled().p_wrong)
    return gate.decide(
        candidate=concordance.length_matched_auc(steps),
        difference=difference,
        alarms=candidate.audits.get("alarms", []),
        said=candidate.audits.get("said", []),
        is_current=is_current,
    )


def _by_domain(found: Judged, texts: Sequence[Text]) -> dict[str, Any]:
    told = {}
    for domain in sorted({text.domain for text in texts}):
        kept = found.keep(np.array([text.domain == domain for text in texts], dtype=np.bool_))
        told[domain or "-"] = {name: figure(each) for name, each in report.of_steps(kept.labelled()).items()}
    return told


def _best_of_n(found: Judged, texts: Sequence[Text]) -> list[dict[str, float]]:
    """Does it pay to take the candidate that is likeliest right throughout? Where problems have several with a known
    outcome."""
    is_known = np.array([text.is_right is not None for text in texts], dtype=np.bool_)
    known = found.keep(is_known)
    if not len(known.lengths):
        return []
    starts = np.cumsum(known.lengths) - known.lengths
    passed = np.log1p(-np.minimum(known.p_wrong, 1 - 1e-9))
    points = best_of_n.curve(
        scores=np.add.reduceat(passed, starts),
        is_right=np.array([bool(text.is_right) for text in texts if text.is_right is not None]),
        problems=known.problems,
        sizes=_CANDIDATES,
    )
    return [vars(point) for point in points if point.problems >= _LEAST_PROBLEMS]


def _audits(found: Judged, texts: Sequence[Text], contamination: dict[str, Any]) -> dict[str, Any]:
    domains = sorted({text.domain for text in texts})
    outcomes = Outcomes(
        domains=[domain or "-" for domain in domains],
        domain=[domains.index(text.domain) for text in texts],
        is_answer_right=[text.is_right for text in texts],
    )
    return audit_report.make(found, outcomes, contamination=contamination)
