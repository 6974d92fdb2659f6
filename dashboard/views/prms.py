"""The page of one PRM: figures on the held-out set and on files, audits, contamination of the training data, and the
promotion to the current PRM, with or against the gate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from charts import number_format
from dashboard import render
from dashboard.access import post_view, safe_view
from dashboard.canary_figures import build_canary_summary
from jobs.models import Job, JobState
from labeling.traces import locations
from people import roles
from people.models import Membership
from people.roles import Action
from prm import canaries as prm_canaries
from prm import file_evaluation, promotion
from prm.evaluation import audits
from prm.evaluation.gate import GateReason
from prm.models import PRM, FileEvaluation, Generation
from prm.promotion import Concern


@dataclass(frozen=True)
class PRMFigure(number_format.ValueWithInterval):
    """A value with its interval; `reason` explains a missing value."""

    n: int = 0
    reason: str = ""


def build_prm_figure(figure: dict[str, Any] | None) -> PRMFigure:
    if not figure:
        return PRMFigure(None, None, None)
    low, high = figure.get("interval") or (None, None)
    return PRMFigure(figure.get("value"), low, high, figure.get("n", 0), figure.get("reason", ""))


GATE_REASONS: dict[str, Any] = {
    GateReason.BETTER: gettext_lazy("better than the previous PRM"),
    GateReason.NOT_WORSE: gettext_lazy("not worse than the previous PRM by more than the margin"),
    GateReason.FIRST: gettext_lazy("first PRM trained on this project’s labels"),
    GateReason.FIRST_UNEVALUATED: gettext_lazy("first PRM; the held-out set has too few labels to evaluate it"),
    GateReason.SAME: gettext_lazy("the current PRM, evaluated again"),
    GateReason.WORSE: gettext_lazy("worse than the current PRM, which was kept"),
    GateReason.ALARM: gettext_lazy("an audit raised an alarm; the current PRM was kept"),
    GateReason.TOO_FEW: gettext_lazy("the held-out set is too small to tell; the current PRM was kept"),
    GateReason.NOT_COMPARABLE: gettext_lazy(
        "no held-out step pairs are available to compare the two; the current PRM was kept"
    ),
    GateReason.NO_SCORES: gettext_lazy("not evaluated: no scores were pushed for the held-out traces"),
}


@dataclass(frozen=True)
class GatePower:
    """The comparison of a candidate with the then current PRM, and what its data could show."""

    difference: PRMFigure
    margin: float
    n_pairs: int
    n_problems: int
    detectable: float | None
    missing: int


def build_gate_power(gate: dict[str, Any]) -> GatePower | None:
    """Return None if nothing was compared."""
    comparison = gate.get("comparison")
    if not comparison:
        return None
    difference = PRMFigure(comparison["difference"], comparison["low"], comparison["high"])
    return GatePower(
        difference, *(comparison[name] for name in ("margin", "n_pairs", "n_problems", "detectable", "missing"))
    )


HEADLINE_FIGURE = "risk_set_auc_length_matched"
FIGURE_LABELS: dict[str, Any] = {
    "f1": gettext_lazy("First-error F1"),
    "accuracy_erroneous": gettext_lazy("Traces with errors: exact step found"),
    "accuracy_correct": gettext_lazy("Error-free traces: no false alarm"),
    "auc": gettext_lazy("Step AUC"),
    "risk_set_auc": gettext_lazy("Risk-set AUC"),
    HEADLINE_FIGURE: gettext_lazy("Length-matched risk-set AUC"),
    "risk_set_auc_length_only": gettext_lazy("Length only, on the same pairs"),
    "ece": gettext_lazy("Calibration error (ECE)"),
    "over_credit": gettext_lazy("Missed errors"),
    "over_blame": gettext_lazy("False alarms"),
    "false_confidence": gettext_lazy("False confidence"),
}
AUDIT_LABELS: dict[str, tuple[Any, Any]] = {
    "last_step_ratio": (
        gettext_lazy("Lowest score on the last step, relative to chance"),
        gettext_lazy(
            "Measured on traces with an incorrect answer. A value above 1.5 means that the score"
            " depends on the final answer."
        ),
    ),
    "outcome_slope": (
        gettext_lazy("Effect of the final answer on the score, for the same label"),
        gettext_lazy(
            "In logits. A value significantly above 0 means that the score depends on the final answer and not"
            " only on the step."
        ),
    ),
    "auc_right_answers": (
        gettext_lazy("AUC for errors in traces with a correct answer"),
        gettext_lazy("The final answer does not reveal these errors."),
    ),
    "auc_wrong_answers": (
        gettext_lazy("AUC for traces with an incorrect answer"),
        gettext_lazy(
            "For comparison: a model that judges only the final answer does well on these traces but not on the others."
        ),
    ),
    "false_confidence": (
        gettext_lazy("False confidence"),
        gettext_lazy("Share of wrong steps with a score of 0.9 or more. Raises an alarm when significantly above 0.3."),
    ),
    "length_matched": (
        gettext_lazy("Length-matched risk-set AUC"),
        gettext_lazy("Raises an alarm when significantly below 0.5."),
    ),
    "length_alone": (
        gettext_lazy("Risk-set AUC of step length alone"),
        gettext_lazy("Baseline that scores each step by its length only."),
    ),
    "canaries": (
        gettext_lazy("Gaming canaries that fool it"),
        gettext_lazy(
            "Share of hidden edits. Raises an alarm when the PRM is significantly easier to fool than the current one."
        ),
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
    "last_step_ratio": gettext_lazy("last score depends on the final answer"),
    "outcome_slope": gettext_lazy("scores depend on the final answer"),
    "false_confidence": gettext_lazy("false confidence"),
    "length_matched": gettext_lazy("worse than chance among steps of similar length"),
    "length_drift": gettext_lazy("selects traces by length"),
    "contamination": gettext_lazy("trained on evaluation problems"),
    "canaries": gettext_lazy("easier to fool than the PRM before"),
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
        n = each["n_found"]
        if n:
            text = ngettext("trained on %(n)d problem from %(what)s", "trained on %(n)d problems from %(what)s", n)
            yield text % {"n": n, "what": each["name"]}


def list_contamination(contamination: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each non-empty evaluation set and benchmark list, and always the sets that decide the gate.

    Each has its name, its number of problems, and how many of them are in the training data.
    """
    return [
        judge
        | {
            "name": judge["name"] or str(_JUDGE_LABELS.get(judge["kind"], judge["kind"])),
            "n_found": judge["n_equal"] + judge["n_overlapping"],
            "decides_gate": judge["kind"] in audits.GATING_KINDS,
        }
        for judge in contamination.get("judges", [])
        if judge["n"] or judge["kind"] in audits.GATING_KINDS
    ]


def get_prm(actor: Membership, version: int | None) -> PRM:
    rows = PRM.objects.defer("weights").select_related("project", "registered_by", "made_current_by", "predecessor")
    return get_object_or_404(rows, project=actor.project, version=version)


@safe_view(Action.READ)
def show_prm(request: HttpRequest, actor: Membership, version: int) -> HttpResponse:
    return _render_prm(request, actor, get_prm(actor, version))


def _render_prm(
    request: HttpRequest, actor: Membership, prm: PRM, *, status: int = 200, **context: Any
) -> HttpResponse:
    values = prm.evaluation.get("figures", {})
    contamination = prm.audits.get("audits", {}).get("contamination", {})
    return render.project_page(
        request,
        actor,
        "dashboard/prm.html",
        here="generations",
        status=status,
        prm=prm,
        figures=[(label, build_prm_figure(values[name])) for name, label in FIGURE_LABELS.items() if name in values],
        domains=_build_domain_rows(prm),
        counts=prm.evaluation.get("counts", {}),
        audits=build_audit_rows(prm),
        contamination=contamination,
        benchmarks=list_contamination(contamination),
        alarms=list_alarms(prm.audits),
        canaries=build_canary_summary(_load_canary_report(prm)),
        may_claim_all=prm.audits.get("domains", {}).get("may_claim_all"),
        uses=prm.uses.order_by("-day", "purpose")[:30],
        overrides=promotion.list_overrides(project_id=prm.project_id, prm=prm),
        verdict=_load_verdict(prm),
        may_train=roles.membership_may(actor, Action.TRAIN),
        **{"file_form": EvaluateOnFileForm(), **_load_file_evaluations(prm), **context},
    )


def _load_canary_report(prm: PRM) -> dict[str, Any] | None:
    """Return the report of the gate; of a PRM that no gate tested, the one on the current canaries."""
    judged = Generation.objects.filter(candidate=prm, gate__canaries__isnull=False).exclude(gate__canaries=None)
    gate = judged.order_by("-number").values_list("gate__canaries", flat=True).first()
    return gate or prm_canaries.build_prm_report(prm, prm_canaries.find_version_before(prm))


def _load_verdict(prm: PRM) -> dict[str, Any] | None:
    """Load the latest decision of the gate about this PRM."""
    judged = Generation.objects.filter(candidate=prm).exclude(verdict="").order_by("-number").first()
    if judged is None:
        return None
    reason = judged.gate.get("why", "")
    return {
        "generation": judged,
        "reason": GATE_REASONS.get(reason, reason),
        "power": build_gate_power(judged.gate),
    }


def _build_domain_rows(prm: PRM) -> list[tuple[str, PRMFigure, PRMFigure, PRMFigure]]:
    left_out = prm.audits.get("left_out", {})
    return [
        (
            name,
            build_prm_figure(values.get(HEADLINE_FIGURE)),
            build_prm_figure(values.get("false_confidence")),
            build_prm_figure(left_out.get(name)),
        )
        for name, values in prm.evaluation.get("domains", {}).items()
    ]


# --- promote a PRM ----------------------------------------------------------------------------------------------------

CONCERN_LABELS: dict[str, Any] = {
    Concern.UNEVALUATED: gettext_lazy("This PRM has never been evaluated on this project’s held-out set."),
    Concern.UNREACHABLE: gettext_lazy(
        "This PRM returns no scores: its server is not responding, or no scores were pushed."
    ),
    Concern.REJECTED: gettext_lazy("The gate rejected this PRM."),
    Concern.UNDECIDED: gettext_lazy("The gate could not tell whether this PRM is worse than the current one."),
}
CONCERN_NAMES: dict[str, Any] = {
    Concern.UNEVALUATED: gettext_lazy("unevaluated"),
    Concern.UNREACHABLE: gettext_lazy("unreachable"),
    Concern.REJECTED: gettext_lazy("rejected"),
    Concern.UNDECIDED: gettext_lazy("undecided"),
}


class PromotionForm(forms.Form):
    reason = forms.CharField(max_length=1000, required=False)


@post_view(Action.TRAIN)
def make_prm_current(request: HttpRequest, actor: Membership, version: int) -> HttpResponse:
    """Make a PRM current. If there are concerns, ask for a confirmation or a reason first."""
    prm, is_confirmed, form = get_prm(actor, version), "confirmed" in request.POST, PromotionForm(request.POST)
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    try:
        promotion.promote_prm(prm=prm, by=actor.user, now=timezone.now(), is_confirmed=is_confirmed, reason=reason)
    except promotion.PromotionRefused as refused:
        return render.project_page(
            request,
            actor,
            "dashboard/confirm_prm.html",
            here="generations",
            status=422 if is_confirmed else 200,
            prm=prm,
            concerns=[(each.value, CONCERN_LABELS[each]) for each in refused.concerns],
            needs_reason=promotion.needs_reason(refused.concerns),
            is_reason_missing=is_confirmed,
            verdict=_load_verdict(prm),
        )
    messages.success(request, _("PRM %(n)d is now current. It scores the next batch.") % {"n": version})
    return redirect("dashboard:generations", actor.project.slug)


# --- evaluate on a file -----------------------------------------------------------------------------------------------


class EvaluateOnFileForm(forms.Form):
    file = forms.FileField(
        label=gettext_lazy("File in ProcessBench format"),
        help_text=gettext_lazy("One trace per line: id, problem, steps, label. May be compressed (.gz, .zst)."),
    )

    def clean_file(self) -> "UploadedFile[bytes]":
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        if (file.size or 0) > file_evaluation.MAX_FILE_BYTES:
            most = file_evaluation.MAX_FILE_BYTES // 1024**2
            raise forms.ValidationError(
                _("The file is larger than %(n)d MB. Split it into smaller files.") % {"n": most}, code="size"
            )
        return file


@post_view(Action.TRAIN, accepts_files=True)
def evaluate_prm_on_file(request: HttpRequest, actor: Membership, version: int) -> HttpResponse:
    prm, form = get_prm(actor, version), EvaluateOnFileForm(request.POST, request.FILES)
    if not form.is_valid():
        return _render_prm(request, actor, prm, status=422, file_form=form)
    try:
        file_evaluation.refuse_pushed(prm)
    except file_evaluation.NotEvaluable as error:
        form.add_error("file", str(error))
        return _render_prm(request, actor, prm, status=422, file_form=form)
    file: UploadedFile[bytes] = form.cleaned_data["file"]
    path = locations.save_upload(name=file.name or "", parts=file.chunks(), size=file.size)
    file_evaluation.request_file_evaluation(prm=prm, path=path, by=actor.user, now=timezone.now())
    return redirect("dashboard:prm", actor.project.slug, version)


def _load_file_evaluations(prm: PRM) -> dict[str, Any]:
    """Load the newest evaluations on files, and the newest job if it has not ended well."""
    jobs = Job.objects.filter(kind=file_evaluation.KIND, subject=f"prm:{prm.pk}").order_by("-pk")
    newest = jobs.first()
    rows = prm.file_evaluations.select_related("evaluated_by").order_by("-pk")[:_MAX_FILE_EVALUATIONS]
    return {
        "file_job": newest if newest is not None and newest.state != JobState.DONE else None,
        "file_percent": int(100 * (newest.share_done() or 0.0)) if newest else 0,
        "file_evaluations": [(row, _build_file_figures(row)) for row in rows],
    }


_MAX_FILE_EVALUATIONS = 20
_FILE_FIGURES = ("f1", "accuracy_erroneous", "accuracy_correct", HEADLINE_FIGURE, "risk_set_auc_length_only")


def _build_file_figures(row: FileEvaluation) -> list[PRMFigure]:
    intervals = row.figures["intervals"]
    return [PRMFigure(row.figures[name], *(intervals[name] or (None, None))) for name in _FILE_FIGURES]
