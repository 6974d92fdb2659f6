"""Audits of a PRM in words: figures, alarms, and contamination of its training data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from prm.evaluation import audits
from prm.models import PRM


@dataclass(frozen=True)
class PRMFigure:
    """A value with its interval; `reason` explains a missing value."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    reason: str = ""


def build_prm_figure(figure: dict[str, Any] | None) -> PRMFigure:
    if not figure:
        return PRMFigure(None)
    low, high = figure.get("interval") or (None, None)
    return PRMFigure(figure.get("value"), low, high, figure.get("n", 0), figure.get("reason", ""))


AUDIT_LABELS: dict[str, tuple[Any, Any]] = {
    "last_step_ratio": (
        gettext_lazy("Lowest score on the last step, relative to chance"),
        gettext_lazy("On traces with a wrong answer. Above 1.5 the PRM reacts to the outcome."),
    ),
    "outcome_slope": (
        gettext_lazy("Effect of the final answer on the score, given the label"),
        gettext_lazy("In logits. A value significantly above 0 means that the PRM reacts to the outcome."),
    ),
    "auc_right_answers": (
        gettext_lazy("AUC for errors in traces with a right answer"),
        gettext_lazy("The outcome does not reveal these errors."),
    ),
    "auc_wrong_answers": (
        gettext_lazy("AUC for traces with a wrong answer"),
        gettext_lazy("For comparison: an outcome model does well on these only."),
    ),
    "false_confidence": (
        gettext_lazy("False confidence"),
        gettext_lazy("Share of wrong steps scored 0.9 or more. Alarm when significantly above 0.3."),
    ),
    "length_matched": (
        gettext_lazy("Length-matched risk-set AUC"),
        gettext_lazy("Alarm when significantly below 0.5."),
    ),
    "length_alone": (
        gettext_lazy("Risk-set AUC of length only"),
        gettext_lazy("Baseline: a score computed from the length of the step."),
    ),
}


def build_audit_rows(prm: PRM) -> list[dict[str, Any]]:
    results = prm.audits.get("audits", {})
    return [
        {
            "name": str(label),
            "what": str(what),
            "figure": build_prm_figure(results[key]),
            "is_alarming": results[key]["is_alarming"],
        }
        for key, (label, what) in AUDIT_LABELS.items()
        if key in results
    ]


ALARM_LABELS: dict[str, Any] = {
    "last_step_ratio": gettext_lazy("reads the outcome from the last step"),
    "outcome_slope": gettext_lazy("reads the outcome"),
    "false_confidence": gettext_lazy("false confidence"),
    "length_matched": gettext_lazy("worse than chance among steps of similar length"),
    "length_drift": gettext_lazy("selects traces by length"),
    "contamination": gettext_lazy("trained on evaluation problems"),
}
_JUDGE_LABELS: dict[str, Any] = {
    "reserve": gettext_lazy("the held-out set"),
    "gold": gettext_lazy("gold"),
    "canary": gettext_lazy("canaries"),
    "other_reserve": gettext_lazy("held-out sets of other projects"),
    "other_gold": gettext_lazy("gold of other projects"),
}


def list_alarms(audit_results: dict[str, Any]) -> list[str]:
    return [str(ALARM_LABELS.get(name, name)) for name in audit_results.get("alarms", [])]


def list_gate_alarms(gate: dict[str, Any]) -> list[str]:
    """Return the alarms of a generation's gate, contamination last."""
    names = [name for name in gate.get("alarms", []) if name != "contamination"]
    if gate.get("length_drift", {}).get("is_alarming"):
        names.append("length_drift")
    alarms = [str(ALARM_LABELS.get(name, name)) for name in names]
    return alarms + list(_list_contamination_alarms(gate.get("contamination", {})))


def _list_contamination_alarms(contamination: dict[str, Any]) -> Iterator[str]:
    if contamination.get("is_stated") is False:
        yield _("training data not stated")
    for each in list_contamination(contamination):
        if each.n_found:
            text = ngettext(
                "trained on %(n)d problem of %(what)s", "trained on %(n)d problems of %(what)s", each.n_found
            )
            yield text % {"n": each.n_found, "what": each.name}


@dataclass(frozen=True)
class JudgeContamination:
    """A set of evaluation problems, and how many of them are in the training data."""

    name: str
    n: int
    n_by_digest: int
    n_equal: int
    n_overlapping: int
    holds: bool  # the gate

    @property
    def n_found(self) -> int:
        return self.n_equal + self.n_overlapping


def list_contamination(contamination: dict[str, Any]) -> list[JudgeContamination]:
    """Return each non-empty evaluation set and benchmark list, and always the sets that decide the gate."""
    return [
        JudgeContamination(
            name=judge["name"] or str(_JUDGE_LABELS.get(judge["kind"], judge["kind"])),
            n=judge["n"],
            n_by_digest=judge["n_by_digest"],
            n_equal=judge["n_equal"],
            n_overlapping=judge["n_overlapping"],
            holds=judge["kind"] in audits.GATING_KINDS,
        )
        for judge in contamination.get("judges", [])
        if judge["n"] or judge["kind"] in audits.GATING_KINDS
    ]
