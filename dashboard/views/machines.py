"""One machine rater: its passports, and its licenses by stratum."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from charts.number_format import ValueWithInterval, format_share
from dashboard import rater_names, statistics
from dashboard.access import post_view, safe_view
from dashboard.canary_figures import build_canary_summary
from dashboard.figures import DataTable, TableColumn, number_columns
from dashboard.render import project_page
from dashboard.statistics import StatisticEstimate
from jobs.models import Job
from labeling.models import Rater
from labeling.models.rater import RaterKind
from labeling.models.trace import StepKind
from machines import licenses, passports
from machines.license_strata import PROMISES, Stratum
from machines.licenses import LicenseRefused
from machines.models import MachineLicense, MachinePassport
from machines.passport_models import LicenseEnd
from people import roles
from people.models import Membership
from people.roles import Action
from stats import drift
from stats.alternative_annotator import EPSILONS
from stats.drift import DriftPlan

_MAX_LICENSES = 20
_MAX_PASSPORTS = 50
_OVERALL = ("exact", "within_one", "has_error_kappa")
_AGAINST_CONSENSUS = ("accuracy", "step_accuracy", "missed", "false_alarms")


class PassportForm(forms.Form):
    epsilon = forms.TypedChoiceField(
        label=gettext_lazy("People who label this project"),
        coerce=float,
        choices=[
            (EPSILONS["expert"], gettext_lazy("experts (ε = 0.2)")),
            (EPSILONS["skilled"], gettext_lazy("trained annotators (ε = 0.15)")),
            (EPSILONS["crowd"], gettext_lazy("crowd workers (ε = 0.1)")),
        ],
        initial=passports.DEFAULT_EPSILON,
        help_text=gettext_lazy("The more expensive people are, the larger the lead that they may have over a machine."),
    )


class LicenseForm(forms.Form):
    stratum = forms.TypedChoiceField(label=gettext_lazy("Stratum"), coerce=int)
    may_settle = forms.TypedChoiceField(
        label=gettext_lazy("The machine"),
        coerce=lambda text: text == "True",
        choices=[(False, gettext_lazy("counts as one label")), (True, gettext_lazy("settles traces alone"))],
    )
    promised = forms.TypedChoiceField(
        label=gettext_lazy("Promised precision"),
        coerce=float,
        choices=[(each, f"{each:.2f}") for each in PROMISES],
        initial=0.9,
    )
    retest_share = forms.FloatField(
        label=gettext_lazy("Re-test share"),
        initial=0.1,
        min_value=licenses.MIN_RETEST_SHARE,
        max_value=1,
        help_text=gettext_lazy("Share of the traces that people label as usual, to check the machine."),
    )

    def __init__(self, passport: MachinePassport, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        strata = passport.content["strata"]
        choices = [(number, _name_stratum(Stratum(**row["stratum"]))) for number, row in enumerate(strata)]
        cast(forms.TypedChoiceField, self.fields["stratum"]).choices = choices


@dataclass(frozen=True)
class LicenseSummary:
    license: MachineLicense
    stratum: str
    roles: dict[str, int]
    n_retests: int
    n_disagreements: int
    plan: DriftPlan


@safe_view(Action.READ)
def show_machine(request: HttpRequest, actor: Membership, rater: int) -> HttpResponse:
    return _render_machine(request, actor, _get_machine(actor, rater))


@safe_view(Action.READ)
def show_passport(request: HttpRequest, actor: Membership, rater: int, passport: int) -> HttpResponse:
    """Show the machine with one of its passports, which may have expired."""
    machine = _get_machine(actor, rater)
    row = get_object_or_404(machine.passports.select_related("issued_by"), pk=passport)
    return _render_machine(request, actor, machine, passport=row)


@post_view(Action.TRAIN)
def issue_passport(request: HttpRequest, actor: Membership, rater: int) -> HttpResponse:
    machine, form = _get_machine(actor, rater), PassportForm(request.POST)
    if not form.is_valid():
        return _render_machine(request, actor, machine, status=422, passport_form=form)
    passports.request_passport(rater=machine, epsilon=form.cleaned_data["epsilon"], by=actor.user, now=timezone.now())
    return redirect("dashboard:machine", actor.project.slug, machine.pk)


@post_view(Action.LICENSE)
def grant_license(request: HttpRequest, actor: Membership, rater: int) -> HttpResponse:
    machine = _get_machine(actor, rater)
    passport = passports.find_valid_passport(machine)
    if passport is None:
        problem = _("This machine has no valid passport. Issue one first.")
        return _render_machine(request, actor, machine, status=422, problem=problem)
    form = LicenseForm(passport, request.POST)
    if not form.is_valid():
        return _render_machine(request, actor, machine, status=422, license_form=form)
    values = dict(form.cleaned_data)
    stratum = Stratum(**passport.content["strata"][values.pop("stratum")]["stratum"])
    try:
        licenses.grant_license(passport=passport, stratum=stratum, by=actor.user, now=timezone.now(), **values)
    except LicenseRefused as error:
        return _render_machine(request, actor, machine, status=422, license_form=form, problem=str(error))
    messages.success(request, _("License granted."))
    return redirect("dashboard:machine", actor.project.slug, machine.pk)


@post_view(Action.LICENSE)
def revoke_license(request: HttpRequest, actor: Membership, license: int) -> HttpResponse:
    """End a license. With `returns`, traces that it settled go back to people, also after it has ended."""
    rows = MachineLicense.objects.select_related("rater")
    row = get_object_or_404(rows, project=actor.project, pk=license)
    returns = request.POST.get("returns") == "1"
    licenses.end_license(
        license=row, because=LicenseEnd.REVOKED, by=actor.user, now=timezone.now(), returns_traces=returns
    )
    messages.success(request, _("Traces returned to people.") if returns else _("License revoked."))
    return redirect("dashboard:machine", actor.project.slug, row.rater_id)


def _get_machine(actor: Membership, pk: int) -> Rater:
    rows = Rater.objects.filter(project=actor.project, kind=RaterKind.MACHINE)
    return get_object_or_404(rows.select_related("project", "judge"), pk=pk)


def _render_machine(
    request: HttpRequest,
    actor: Membership,
    machine: Rater,
    *,
    status: int = 200,
    problem: str = "",
    passport_form: PassportForm | None = None,
    license_form: LicenseForm | None = None,
    passport: MachinePassport | None = None,
) -> HttpResponse:
    history = list(passports.list_history(machine)[:_MAX_PASSPORTS])
    passport = passport or next(iter(history), None)
    job = Job.objects.filter(subject=f"machine_rater:{machine.pk}").order_by("-pk").first()
    may_license = roles.membership_may(actor, Action.LICENSE)
    if license_form is None and passport is not None and passport.expired_at is None and may_license:
        license_form = LicenseForm(passport, auto_id="id_license_%s")
    return project_page(
        request,
        actor,
        "dashboard/machine.html",
        here="judges",
        status=status,
        machine=machine,
        passport=passport,
        figures=_build_figures(passport, actor) if passport else None,
        job=job,
        history=history,
        licenses=_summarize_licenses(machine),
        problem=problem,
        passport_form=passport_form or PassportForm(),
        license_form=license_form,
        may_train=roles.membership_may(actor, Action.TRAIN),
        may_license=may_license,
    )


def _build_figures(passport: MachinePassport, actor: Membership) -> dict[str, Any]:
    content = passport.content
    overall, stated = content["overall"], content["reliability"]
    estimates = [statistics.build_estimate(name, overall[name]) for name in _OVERALL]
    estimates += [statistics.build_estimate(name, row) for name, row in overall["steps"].items()]
    estimates += [statistics.build_estimate(f"machine_{name}", overall[name]) for name in _AGAINST_CONSENSUS]
    if content["gold"]["cases"]:
        estimates.append(statistics.build_estimate("machine_gold", content["gold"]))
    if stated:
        estimates += [statistics.build_estimate(f"machine_{name}", stated[name]) for name in ("brier", "ece")]
    plan = drift.plan_drift_test(passport.accuracy) if passport.accuracy is not None else None
    return {
        "content": content,
        "unread_share": content["n_unread"] / content["n_judged"] if content["n_judged"] else None,
        "estimates": estimates,
        "advantage": ValueWithInterval(*(content["test"][name] for name in ("advantage", "low", "high"))),
        "slices": _build_slices(content),
        "positions": _build_positions(content),
        "bins": _build_bins(stated) if stated else None,
        "people": _build_people(content["test"]["people"], actor),
        "strata": _build_strata(content["strata"]),
        "canaries": build_canary_summary(content["canaries"]),
        "plan": plan,
    }


@dataclass(frozen=True)
class MachineSlice:
    group: str
    name: str
    n: int
    alpha: StatisticEstimate
    exact: StatisticEstimate | None
    accuracy: StatisticEstimate | None


def _build_slices(content: dict[str, Any]) -> list[MachineSlice]:
    kinds = dict(StepKind.choices)
    rows: list[tuple[str, str, dict[str, Any]]] = [
        *((_("Domain"), row["key"] or _("none"), row) for row in content["domain"]),
        *((_("Number of steps"), _name_length(*row["key"]), row) for row in content["length"]),
        *((_("Kind of step"), str(kinds.get(row["key"], row["key"])), row) for row in content["step_kind"]),
    ]
    return [
        MachineSlice(
            group,
            name,
            row.get("n_traces") or row.get("n") or 0,
            statistics.build_estimate("alpha_nominal", row["steps"]["alpha_nominal"]),
            statistics.build_estimate("exact", row["exact"]) if "exact" in row else None,
            statistics.build_estimate("machine_accuracy", row["accuracy"]) if "accuracy" in row else None,
        )
        for group, name, row in rows
    ]


def _name_length(first: int, last: int | None) -> str:
    return f"{first}+" if last is None else f"{first} – {last}"


def _share_table(key: str, name: str, heading: str, rows: Sequence[Sequence[Any]]) -> DataTable:
    shares = number_columns(_("share"), _("from"), _("to"), reads=format_share)
    return DataTable(key, name, [TableColumn(heading), *number_columns(_("cases")), *shares], rows)


def _build_positions(content: dict[str, Any]) -> list[DataTable]:
    names = {"missed": _("Missed errors by step"), "false_alarms": _("False alarms by step")}
    return [
        _share_table(
            key,
            name,
            _("Steps"),
            [
                (_name_length(row["first"], row["last"]), row["n"], row["value"], row["low"], row["high"])
                for row in content[key]
            ],
        )
        for key, name in names.items()
    ]


def _build_bins(stated: dict[str, Any]) -> DataTable:
    columns = [
        TableColumn(_("Stated probability")),
        *number_columns(_("traces")),
        *number_columns(_("stated, mean"), _("correct"), _("from"), _("to"), reads=format_share),
    ]
    rows = [
        (
            f"{row['low']:.1f} – {row['high']:.1f}",
            *(row[name] for name in ("n", "confidence", "right", "right_low", "right_high")),
        )
        for row in stated["bins"]
    ]
    return DataTable("reliability", _("Reliability of stated probabilities"), columns, rows)


def _build_people(people: Sequence[dict[str, Any]], actor: Membership) -> DataTable:
    raters = Rater.objects.filter(project=actor.project, pk__in=[row["rater"] for row in people])
    names = rater_names.get_distinct_names(list(raters.select_related("user")), actor)
    columns = [
        TableColumn(_("Annotator")),
        *number_columns(_("traces")),
        *number_columns(_("machine is as good"), _("p"), reads=format_share),
        TableColumn(_("machine may stand in")),
    ]
    rows = [
        (
            names.get(row["rater"], "–"),
            row["n"],
            row["advantage"],
            row["p"],
            _("yes") if row["is_rejected"] else _("no"),
        )
        for row in people
    ]
    return DataTable("people", _("Comparison with each annotator"), columns, rows)


def _build_strata(strata: Sequence[dict[str, Any]]) -> DataTable:
    columns = [
        TableColumn(_("Stratum")),
        *number_columns(_("judged"), _("labeled by people"), _("gold")),
        *number_columns(_("same as people"), _("both wrong"), _("lower bound"), reads=format_share),
        TableColumn(_("promises it keeps")),
    ]
    rows = []
    for row in strata:
        kept = [each["promised"] for each in row["bounds"] if each["keeps"]]
        bound = next((each for each in row["bounds"] if each["promised"] == (kept[-1] if kept else 0.9)), None)
        why = statistics.explain_missing_value(row["bounds"][0]["reason"])
        rows.append(
            (
                _name_stratum(Stratum(**row["stratum"])),
                *(row[name] for name in ("n_judged", "n_people", "n_gold", "agreement", "shared")),
                bound["bound"] if bound else None,
                ", ".join(f"{each:.2f}" for each in kept) or why,
            )
        )
    return DataTable("strata", _("Evidence by stratum"), columns, rows)


def _name_stratum(stratum: Stratum) -> str:
    verdict = _("names an error") if stratum.says_error else _("names no error")
    length = _("%(length)s steps") % {"length": _name_length(stratum.shortest, stratum.longest)}
    return ", ".join(filter(None, (stratum.domain, length, verdict)))


def _summarize_licenses(machine: Rater) -> list[LicenseSummary]:
    rows = list(
        machine.licenses.select_related("granted_by", "route__second_passport__rater").order_by("-pk")[:_MAX_LICENSES]
    )
    counts = licenses.count_roles(rows)
    summaries = []
    for row in rows:
        retests = licenses.load_retests(row)
        stratum = Stratum(row.domain, row.shortest, row.longest, row.says_error)
        summaries.append(
            LicenseSummary(
                row,
                _name_stratum(stratum),
                counts[row.pk],
                len(retests),
                retests.count(False),
                drift.plan_drift_test(row.agreement),
            )
        )
    return summaries
