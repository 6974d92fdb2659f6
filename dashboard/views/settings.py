"""Settings of a project: general settings, overlap, guideline and consent."""

from copy import copy
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from dashboard import money
from dashboard.access import form_view, post_view, safe_view
from dashboard.guideline_versions import report_new_version
from dashboard.render import project_page
from labeling import overlap_change
from labeling.models import Guideline, Project
from labeling.projects import guidelines, lifecycle, taxonomies
from labeling.projects.guidelines import rendering
from people import roles
from people.models import Membership
from people.roles import Action

_SETTING_GROUPS = (
    (_("Project"), ("name", "description", "protocol")),
    (_("Shown to annotators"), ("shows_reference_answer", "shows_final_verdict", "reveals_one_step_at_a_time")),
    (
        _("Questions about errors"),
        (
            "asks_error_category",
            "needs_error_category",
            "takes_several_kinds",
            "asks_severity",
            "asks_reason",
            "asks_corrected_step",
            "asks_evidence",
            "asks_omissions",
            "asks_clauses",
        ),
    ),
    (_("Limits"), ("open_limit", "traces_per_day", "skip_limit_per_day", "correction_days")),
    (
        _("Gold and screening"),
        (
            *("gold_share", "proven_gold_share", "gold_bar", "screening_pass_share", "screening_attempts"),
            *("uses_protection", "shows_weekly_gold", "shows_retired_gold", "uses_probability"),
        ),
    ),
    (_("Sampling"), ("uniform_share", "reserve_share", "reserve_problem_share")),
    (_("Pay"), ("pay_per_hour", "currency")),
    (
        _("Crowd platform"),
        (
            *("takes_worker_ids", "worker_parameter", "study_parameter", "session_parameter"),
            *("signature_parameter", "completion_traces", "completion_url", "completion_code"),
            *("screened_out_url", "screened_out_code", "no_consent_url", "no_consent_code"),
            *("failed_checks_url", "failed_checks_code"),
        ),
    ),
)


class SettingsForm(forms.ModelForm):  # type: ignore[type-arg]  # takes no parameter when it runs
    """All settings that need no preview, in groups."""

    completion_url = forms.URLField(label=_("Completion URL"), required=False, assume_scheme="https")
    no_consent_url = forms.URLField(label=_("No-consent URL"), required=False, assume_scheme="https")
    failed_checks_url = forms.URLField(label=_("Failed-checks URL"), required=False, assume_scheme="https")
    screened_out_url = forms.URLField(label=_("Screen-out URL"), required=False, assume_scheme="https")

    class Meta:
        model = Project
        fields: ClassVar = [name for _label, names in _SETTING_GROUPS for name in names]
        widgets: ClassVar = {"description": forms.Textarea(attrs={"rows": 2})}
        labels: ClassVar = {
            "name": _("Name"),
            "description": _("Description"),
            "protocol": _("Labeling protocol"),
            "shows_reference_answer": _("Show the reference answer"),
            "shows_final_verdict": _("Show whether the final answer is correct"),
            "reveals_one_step_at_a_time": _("Reveal one step at a time"),
            "asks_error_category": _("Ask for the error category"),
            "needs_error_category": _("Require the error category"),
            "takes_several_kinds": _("Let annotators choose several categories for one error"),
            "asks_severity": _("Ask for the severity of the error"),
            "asks_reason": _("Ask for a reason"),
            "asks_corrected_step": _("Ask for a corrected step"),
            "asks_evidence": _("Ask for quotes that show the error"),
            "asks_omissions": _("Let annotators note what is missing after a step"),
            "asks_clauses": _("Ratings that cite a clause of the guideline"),
            "open_limit": _("Maximum open traces per annotator"),
            "traces_per_day": _("Maximum traces per annotator per day"),
            "skip_limit_per_day": _("Maximum skips per day"),
            "correction_days": _("Correction period (days)"),
            "gold_share": _("Share of hidden gold"),
            "proven_gold_share": _("Share of hidden gold for trusted annotators"),
            "gold_bar": _("Gold threshold"),
            "screening_pass_share": _("Screening pass mark"),
            "screening_attempts": _("Screening attempts"),
            "uses_protection": _("Pause annotators if the evidence is overwhelming"),
            "uses_probability": _("Settle traces by probability"),
            "shows_weekly_gold": _("Show annotators their weekly gold score"),
            "shows_retired_gold": _("Explain retired gold"),
            "uniform_share": _("Share of uniform samples"),
            "reserve_share": _("Share of work from the held-out set"),
            "reserve_problem_share": _("Share of problems in the held-out set"),
            "pay_per_hour": _("Pay per active hour"),
            "currency": _("Currency"),
            "takes_worker_ids": _("Accept worker IDs"),
            "worker_parameter": _("URL parameter for the worker ID"),
            "study_parameter": _("URL parameter for the study ID"),
            "session_parameter": _("URL parameter for the session ID"),
            "signature_parameter": _("URL parameter for the signature"),
            "completion_traces": _("Submissions required for completion"),
            "completion_code": _("Completion code"),
            "no_consent_code": _("No-consent code"),
            "failed_checks_code": _("Failed-checks code"),
            "screened_out_code": _("Screen-out code"),
        }
        help_texts: ClassVar = {
            "protocol": _("Cannot be changed after the first trace is assigned."),
            "asks_clauses": _(
                "The headings of the guideline are its clauses. A change publishes a new version of the guideline."
            ),
            "proven_gold_share": _("Annotators become trusted after 14 days of work without being paused."),
            "gold_bar": _(
                "Annotators whose accuracy on gold is below this value are paused. Enter 0.2 to 0.99, or leave empty"
                " to derive it from the first 200 answers of at least five annotators."
            ),
            "uses_protection": _(
                "Can pause an annotator after only a few submissions, if hidden gold, comparison with"
                " others and behavior leave no doubt. Designed to pause no more than 2 in 100 ordinary"
                " annotators by mistake."
            ),
            "uses_probability": _(
                "Settles a trace once the probability of its consensus reaches the level at which the consensus"
                " is right on 90% of hidden gold traces. Takes effect once there is enough gold."
            ),
            "shows_weekly_gold": _(
                "Shown only for weeks with at least five gold traces. Does not reveal which traces were gold."
            ),
            "shows_retired_gold": _(
                "Annotators see the answer to a hidden gold trace once it is retired and they can no longer"
                " edit their submission."
            ),
            "uniform_share": _("Keeps estimates unbiased when active selection is used."),
            "open_limit": _(
                "Includes the next trace, which is reserved in advance. A value of 2 or more avoids waiting."
            ),
            "traces_per_day": _("Leave empty for no limit. Days are in UTC; skipped and expired traces do not count."),
            "pay_per_hour": _(
                "Leave empty to hide costs. A new rate takes effect today (UTC); earlier days keep the rate they had."
            ),
            "currency": _("Three letters, for example EUR."),
            "signature_parameter": _(
                "Only for platforms that can sign links. If set, unsigned links are rejected. The key is "
                "on the Members page."
            ),
            "completion_traces": _("Traces that the annotator gave up on do not count."),
            "failed_checks_code": _(
                "For annotators who were paused by a quality check before they had submitted enough traces."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            if name.endswith("_share"):
                field.widget.attrs.update({"min": "0", "max": "1", "step": "0.01"})

    @classmethod
    def for_project(cls, project: Project, data: QueryDict | None = None) -> "SettingsForm":
        """Build the form on a copy, because validation would change the project that the page shows."""
        return cls(data, instance=copy(project))

    def clean_currency(self) -> str:
        currency: str = self.cleaned_data["currency"].upper()
        if len(currency) != 3 or not currency.isascii() or not currency.isalpha():
            raise forms.ValidationError(_("Enter a three-letter currency code, for example EUR."))
        return currency

    @cached_property
    def groups(self) -> list[tuple[Any, list[forms.BoundField]]]:
        return [(label, [self[name] for name in names]) for label, names in _SETTING_GROUPS]


class OverlapForm(forms.Form):
    """Settings that affect open work, so their effect is shown before they change."""

    overlap = forms.IntegerField(label=_("Labels per trace"), min_value=1, max_value=20)
    overlap_limit = forms.IntegerField(
        label=_("Maximum labels if annotators disagree"),
        min_value=1,
        max_value=20,
        help_text=_("After that, the trace goes to adjudication."),
    )
    lease_minutes = forms.IntegerField(label=_("Lease (minutes)"), min_value=1, max_value=10_080)
    includes_settled = forms.BooleanField(
        label=_("Include settled traces"),
        required=False,
        help_text=_(
            "If you increase the labels per trace, settled traces with fewer labels are reopened to collect more."
        ),
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if {"overlap", "overlap_limit"} <= data.keys() and data["overlap_limit"] < data["overlap"]:
            self.add_error("overlap_limit", _("Enter a number that is at least the number of labels per trace."))
        return data

    @classmethod
    def for_project(cls, project: Project, data: QueryDict | None = None) -> "OverlapForm":
        lease_minutes = max(project.lease_seconds // 60, 1)
        initial = {"overlap": project.overlap, "overlap_limit": project.overlap_limit, "lease_minutes": lease_minutes}
        return cls(data, initial=initial)


class GuidelineForm(forms.Form):
    changes = forms.CharField(
        label=_("Summary of changes"),
        max_length=500,
        required=False,
        help_text=_("Annotators see this above the new version."),
    )
    body = forms.CharField(
        label=_("Guideline (Markdown with $formulas$)"), max_length=200_000, widget=forms.Textarea(attrs={"rows": 24})
    )


class ConsentForm(forms.Form):
    body = forms.CharField(
        label=_("Consent text (Markdown)"),
        max_length=100_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=_("Annotators must agree to it before they start. Leave empty if no consent is needed."),
    )


@form_view(Action.GUIDE, shown_to=Action.READ_SETTINGS)
def edit_settings(request: HttpRequest, actor: Membership) -> HttpResponse:
    if request.method != "POST":
        return _render_settings(request, actor)
    form = SettingsForm.for_project(actor.project, request.POST)
    if not form.is_valid():
        return _render_settings(request, actor, status=422, form=form)
    changed = {name: form.cleaned_data[name] for name in form.changed_data}
    before = actor.project.guideline_id
    try:
        lifecycle.change_settings(project=actor.project, by=actor.user, now=timezone.now(), **changed)
    except lifecycle.SettingNotChangeable as error:
        return _render_settings(request, actor, status=422, form=form, problem=str(error))
    messages.success(request, _("Saved. Traces already open keep their previous settings."))
    report_new_version(request, actor.project, before=before)
    return redirect("dashboard:settings", actor.project.slug)


@post_view(Action.GUIDE)
def edit_overlap(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Show the effect on open work; apply the change after it is confirmed."""
    form = OverlapForm.for_project(actor.project, request.POST)
    if not form.is_valid():
        return _render_settings(request, actor, status=422, overlap_form=form)
    if not form.has_changed():
        return redirect("dashboard:settings", actor.project.slug)
    if "confirmed" not in request.POST:
        under_way = overlap_change.measure_overlap_impact(project_id=actor.project.pk)
        overlap = form.cleaned_data["overlap"]
        settled = overlap_change.measure_settled_impact(project_id=actor.project.pk, overlap=overlap)
        ms = settled.n_labels * (settled.ms_per_label or 0)
        cost = money.compute_labor_cost(actor.project, ms) if ms else None
        return project_page(
            request,
            actor,
            "dashboard/confirm_overlap.html",
            here="settings",
            form=form,
            under_way=under_way,
            settled=settled,
            cost=money.format_amount(actor.project, cost) if cost else "",
        )
    overlap_change.change_overlap(
        project=actor.project,
        overlap=form.cleaned_data["overlap"],
        overlap_limit=form.cleaned_data["overlap_limit"],
        lease_seconds=form.cleaned_data["lease_minutes"] * 60,
        includes_settled=form.cleaned_data["includes_settled"],
        by=actor.user,
        now=timezone.now(),
    )
    messages.success(request, _("Saved. Unsettled traces are updated in the background; see Jobs."))
    return redirect("dashboard:settings", actor.project.slug)


@form_view(Action.GUIDE, shown_to=Action.READ_SETTINGS)
def edit_guideline(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Edit, preview and publish the next version of the guideline."""
    if request.method != "POST":
        initial = {"body": _get_initial_body(actor, request.GET.get("template"))}
        return _render_guideline_editor(request, actor, GuidelineForm(initial=initial))
    form = GuidelineForm(request.POST)
    if not form.is_valid():
        return _render_guideline_editor(request, actor, form, status=422)
    if "preview" in request.POST:
        return _render_guideline_editor(request, actor, form, preview=rendering.to_html(form.cleaned_data["body"]))
    guideline = lifecycle.publish_guideline(
        project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data
    )
    messages.success(
        request,
        _("Version %(n)d published. Annotators must read it before their next trace.") % {"n": guideline.version},
    )
    return redirect("dashboard:guideline", actor.project.slug)


def _get_initial_body(actor: Membership, template: str | None) -> str:
    """Return the current version, or a bundled template."""
    if template in guidelines.TEMPLATES:
        return guidelines.load_guideline_template(str(template))
    return actor.project.guideline.body if actor.project.guideline else ""


@post_view(Action.GUIDE)
def save_consent_text(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = ConsentForm(request.POST)
    if not form.is_valid():
        return _render_guideline_editor(request, actor, GuidelineForm(), status=422, consent_form=form)
    lifecycle.publish_consent_text(project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data)
    messages.success(request, _("Consent text published. Annotators must agree to it before their next trace."))
    return redirect("dashboard:guideline", actor.project.slug)


@safe_view(Action.READ)
def show_guideline_version(request: HttpRequest, actor: Membership, version: int) -> HttpResponse:
    guideline = get_object_or_404(Guideline, project=actor.project, version=version)
    html = rendering.to_html(guideline.body)
    return project_page(
        request,
        actor,
        "dashboard/guideline_version.html",
        here="settings",
        version=guideline,
        html=html,
        taxonomy=taxonomies.parse_taxonomy(guideline.taxonomy),
    )


def _render_settings(request: HttpRequest, actor: Membership, *, status: int = 200, **context: Any) -> HttpResponse:
    context.setdefault("form", SettingsForm.for_project(actor.project))
    context.setdefault("overlap_form", OverlapForm.for_project(actor.project))
    if not roles.membership_may(actor, Action.GUIDE):
        for name in ("form", "overlap_form"):
            for field in context[name].fields.values():
                field.disabled = True
    return project_page(
        request, actor, "dashboard/settings.html", here="settings", tab="settings", status=status, **context
    )


def _render_guideline_editor(
    request: HttpRequest,
    actor: Membership,
    form: GuidelineForm,
    *,
    status: int = 200,
    preview: str = "",
    consent_form: ConsentForm | None = None,
) -> HttpResponse:
    consent_text = actor.project.consent_text
    initial = {"body": consent_text.body if consent_text else ""}
    versions = Guideline.objects.filter(project=actor.project).defer("body").select_related("published_by")
    return project_page(
        request,
        actor,
        "dashboard/guideline.html",
        here="settings",
        tab="guideline",
        status=status,
        form=form,
        preview=preview,
        consent_form=consent_form or ConsentForm(initial=initial, prefix=None, auto_id="id_consent_%s"),
        templates=guidelines.TEMPLATES.items(),
        versions=versions.order_by("-version")[:50],
        **_render_texts(actor, initial["body"]),
    )


def _render_texts(actor: Membership, consent: str) -> dict[str, Any]:
    """Render guideline and consent for members who only read them."""
    if roles.membership_may(actor, Action.GUIDE):
        return {}
    guideline = actor.project.guideline
    return {
        "current": rendering.to_html(guideline.body) if guideline else "",
        "consent": rendering.to_html(consent),
    }
