"""What audits of a PRM found, in words: figures, alarms, and whether it was trained on what judges."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from prm.evaluation import audits
from prm.models import PRM


@dataclass(frozen=True)
class PRMFigure:
    """A value with the interval beside it; `reason` where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    reason: str = ""


def build_prm_figure(told: dict[str, Any] | None) -> PRMFigure:
    if not told:
        return PRMFigure(None)
    low, high = told.get("interval") or (None, None)
    return PRMFigure(told.get("value"), low, high, told.get("n", 0), told.get("reason", ""))


AUDIT_LABELS: dict[str, tuple[Any, Any]] = {
    "last_step_ratio": (
        gettext_lazy("Lowest score on the last step, against chance"),
        gettext_lazy("where the answer is wrong; above 1.5 it reads the outcome"),
    ),
    "outcome_slope": (
        gettext_lazy("What the answer adds beside the label"),
        gettext_lazy("in logits; above 0 beyond doubt it reads the outcome"),
    ),
    "auc_right_answers": (
        gettext_lazy("AUC of errors behind right answers"),
        gettext_lazy("traces with an error that the outcome does not show"),
    ),
    "auc_wrong_answers": (
        gettext_lazy("AUC of wrong answers"),
        gettext_lazy("for comparison: what has become an outcome model is good at this alone"),
    ),
    "false_confidence": (
        gettext_lazy("False confidence"),
        gettext_lazy("score of .9 or more on a wrong step; alarm where it is above .3 beyond doubt"),
    ),
    "length_matched": (
        gettext_lazy("Length-matched risk-set AUC"),
        gettext_lazy("alarm where it is below .5 beyond doubt"),
    ),
    "length_alone": (gettext_lazy("Risk-set AUC of length alone"), gettext_lazy("what an untrained ruler reaches")),
}


def build_audit_rows(prm: PRM) -> list[dict[str, Any]]:
    """Each audit with its name in words, its figure, and whether its alarm rings."""
    found = prm.audits.get("audits", {})
    return [
        {
            "name": str(label),
            "what": str(what),
            "figure": build_prm_figure(found[key]),
            "is_alarming": found[key]["is_alarming"],
        }
        for key, (label, what) in AUDIT_LABELS.items()
        if key in found
    ]


ALARM_LABELS: dict[str, Any] = {
    "last_step_ratio": gettext_lazy("it reads the outcome off the last step"),
    "outcome_slope": gettext_lazy("it reads the outcome"),
    "false_confidence": gettext_lazy("false confidence"),
    "length_matched": gettext_lazy("worse than chance among steps of like length"),
    "length_drift": gettext_lazy("what is served is chosen by length"),
    "contamination": gettext_lazy("trained on problems that judge"),
}
_JUDGE_LABELS: dict[str, Any] = {
    "reserve": gettext_lazy("the reserve"),
    "gold": gettext_lazy("gold"),
    "canary": gettext_lazy("canaries"),
    "other_reserve": gettext_lazy("reserves of other projects"),
    "other_gold": gettext_lazy("gold of other projects"),
}


def list_alarms(told: dict[str, Any]) -> list[str]:
    """Those that ring, as a PRM's audits keep them."""
    return [str(ALARM_LABELS.get(name, name)) for name in told.get("alarms", [])]


def list_gate_alarms(gate: dict[str, Any]) -> list[str]:
    """What a generation's gate was told besides its figures."""
    names = [name for name in gate.get("alarms", []) if name != "contamination"]
    drift = ["length_drift"] if gate.get("length_drift", {}).get("is_alarming") else []
    said = [str(ALARM_LABELS.get(name, name)) for name in [*names, *drift]]
    return said + list(_list_contamination_alarms(gate.get("contamination", {})))


def _list_contamination_alarms(told: dict[str, Any]) -> Iterator[str]:
    if told.get("is_stated") is False:
        yield _("what it was trained on is not stated")
    for each in list_contamination(told):
        if each.n_found:
            text = ngettext(
                "trained on %(n)d problem of %(what)s", "trained on %(n)d problems of %(what)s", each.n_found
            )
            yield text % {"n": each.n_found, "what": each.name}


@dataclass(frozen=True)
class JudgeContamination:
    """Problems that judge, and how many of them training holds."""

    name: str
    n: int
    n_by_digest: int
    n_equal: int
    n_overlapping: int
    holds: bool  # the gate

    @property
    def n_found(self) -> int:
        return self.n_equal + self.n_overlapping


def list_contamination(told: dict[str, Any]) -> list[JudgeContamination]:
    """Each kind of them that there is, and each list of a benchmark; what judges here always, were there none."""
    kept = (each for each in told.get("judges", []) if each["n"] or each["kind"] in audits.GATING_KINDS)
    return [_build_contamination(each) for each in kept]


def _build_contamination(told: dict[str, Any]) -> JudgeContamination:
    name = told["name"] or str(_JUDGE_LABELS.get(told["kind"], told["kind"]))
    counts = (told["n"], told["n_by_digest"], told["n_equal"], told["n_overlapping"])
    return JudgeContamination(name, *counts, holds=told["kind"] in audits.GATING_KINDS)
