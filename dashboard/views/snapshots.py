"""Snapshots: order, follow, download and deliver them; edit the disclosures of their cards."""

import re
from contextlib import suppress
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.validators import validate_slug
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from accounts.confirmation import require_confirmation
from dashboard import rater_names
from dashboard.access import form_view, membership_or_404, post_view, safe_view
from dashboard.render import project_page
from exports import card, deliveries, file_response, orders, snapshots
from exports.card import DISCLOSURE_FIELDS, DISCLOSURE_LABELS
from exports.models import Snapshot, SnapshotPurpose
from exports.orders import ENDINGS, InvalidOrder, SnapshotOrder
from formats import integers
from formats.catalog import OUTPUT_FORMATS
from formats.examples import LabelRule
from jobs import control
from labeling.datasets.selection import ManifestFilters
from labeling.models import Problem, Project, Rater
from labeling.models.assignment import FinishReason
from labeling.models.queue import SamplingSource
from labeling.models.rater import RaterKind
from labeling.projects.guidelines import rendering
from labeling.traces import tags
from people.models import Membership
from people.roles import Action

MAX_SNAPSHOTS = 50
MAX_RATERS = 200  # in the list of annotators to leave out
MAX_CARD_CHARACTERS = 200_000
_FIGURE = re.compile(r"^!\[([^\]]+)\]\(([a-z_]+\.svg)\)$", re.M)  # caption, file name
_SIDE_CHOICES = [("in", _("include")), ("out", _("exclude")), ("only", _("only these"))]


class SnapshotOrderForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=100, validators=[validate_slug])
    purpose = forms.ChoiceField(label=_("Purpose"), choices=SnapshotPurpose.choices, initial=SnapshotPurpose.TRAINING)
    formats = forms.MultipleChoiceField(
        label=_("Formats"),
        choices=[(name, each.label) for name, each in OUTPUT_FORMATS.items()],
        initial=["trl"],
        widget=forms.CheckboxSelectMultiple,
    )
    ratings = forms.ChoiceField(
        label=_("Ratings"),
        choices=[("raters", _("Every annotator, by pseudonym")), ("consensus", _("Consensus, one rating per step"))],
        initial="raters",
        widget=forms.RadioSelect,
    )
    has_labeler_names = forms.BooleanField(
        label=_("Export the names of imported labelers"),
        required=False,
        help_text=_(
            "Uses the names from the imported files. Otherwise, imported labelers get pseudonyms, as annotators do."
        ),
    )
    ending = forms.ChoiceField(label=_("File type"), choices=[(each, each) for each in ENDINGS])
    neutral = forms.ChoiceField(
        label=_("Neutral steps, in formats without a neutral rating"),
        choices=[
            ("positive", _("count as correct")),
            ("negative", _("count as incorrect")),
            ("drop", _("end the row before the step")),
        ],
    )
    human_steps = forms.ChoiceField(
        label=_("Steps written by an annotator"),
        choices=[("omit", _("end the row before the step")), ("positive", _("count as correct"))],
        required=False,
    )
    label_set = forms.ChoiceField(
        label=_("Steps after the first error"),
        choices=[
            ("as_rated", _("as rated")),
            ("stop", _("no label (stop)")),
            ("carried_forward", _("incorrect while they depend on the error (carried forward)")),
            ("propagated_ternary", _("negative while they depend on the error, otherwise as rated (propagated)")),
            ("decisive_error", _("only the error from which the trace never recovers (decisive error)")),
        ],
        required=False,
        help_text=_("Most label sets need a protocol that rates every step. The card says which one was used."),
    )
    has_no_alternatives = forms.BooleanField(label=_("Exclude alternatives"), required=False)
    generations = forms.CharField(
        label=_("Generations"),
        required=False,
        max_length=200,
        help_text=_("Enter numbers separated by commas, or “none” for traces that belong to no generation."),
    )
    finish_reasons = forms.MultipleChoiceField(
        label=_("Finish reasons"), required=False, choices=FinishReason.choices, widget=forms.CheckboxSelectMultiple
    )
    domains = forms.MultipleChoiceField(label=_("Domains"), required=False, widget=forms.CheckboxSelectMultiple)
    tags = forms.MultipleChoiceField(
        label=_("Only traces with one of these tags"), required=False, widget=forms.CheckboxSelectMultiple
    )
    without_tags = forms.MultipleChoiceField(
        label=_("Tags to leave out"), required=False, widget=forms.CheckboxSelectMultiple
    )
    arms = forms.MultipleChoiceField(
        label=_("Sampling sources"), required=False, choices=SamplingSource.choices, widget=forms.CheckboxSelectMultiple
    )
    contested = forms.ChoiceField(label=_("Contested traces"), choices=_SIDE_CHOICES)
    gold = forms.ChoiceField(label=_("Gold"), choices=_SIDE_CHOICES)
    rater_kinds = forms.MultipleChoiceField(
        label=_("Kinds of raters"), required=False, choices=RaterKind.choices, widget=forms.CheckboxSelectMultiple
    )
    is_blind = forms.BooleanField(label=_("Only labels by people who saw no PRM scores"), required=False)
    agreeing_machines = forms.MultipleChoiceField(
        label=_("Only traces for which these machines find the same first error"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Choose a judge and Monte Carlo rollouts, for example. Other traces are counted as left out."),
    )
    set_aside = forms.ChoiceField(
        label=_("Labels that were set aside"), choices=_SIDE_CHOICES, initial="out", required=False
    )
    labelers = forms.MultipleChoiceField(
        label=_("Only these annotators"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Consensus ratings are inferred again from their labels only."),
    )
    without_labelers = forms.MultipleChoiceField(
        label=_("Annotators to leave out"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_(
            "Consensus ratings are inferred again from the other labels. Traces for which these labels "
            "determine no consensus are left out and counted on the dataset card."
        ),
    )
    min_raters = forms.IntegerField(label=_("Minimum labels per trace"), min_value=0, max_value=20, initial=0)
    submitted_from = forms.DateTimeField(
        label=_("Submitted from"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    submitted_until = forms.DateTimeField(
        label=_("Submitted until"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    validation = forms.IntegerField(label=_("Validation split, % of problems"), min_value=0, max_value=50, initial=0)
    test = forms.IntegerField(label=_("Test split, % of problems"), min_value=0, max_value=50, initial=0)
    without_duplicates = forms.BooleanField(label=_("Remove duplicate traces"), required=False)
    taken_in = forms.MultipleChoiceField(
        label=_("Include traces that training sets exclude by default"),
        required=False,
        choices=[(each, orders.EXCLUSION_LABELS[each]) for each in orders.OVERRIDABLE_EXCLUSIONS],
        widget=forms.CheckboxSelectMultiple,
    )
    reason = forms.CharField(label=_("Reason for including them"), max_length=500, required=False)
    deliver_to = forms.MultipleChoiceField(
        label=_("Deliver to (after the build)"), required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        domains = Problem.objects.filter(project=project).exclude(domain="").values_list("domain", flat=True)
        choices = [(each, each) for each in domains.order_by("domain").distinct()[:50]]
        self.fields["domains"].choices = choices  # type: ignore[attr-defined]  # it is a ChoiceField
        names = [(name, name) for name in tags.list_tags(project_id=project.pk)]
        self.fields["tags"].choices = self.fields["without_tags"].choices = names  # type: ignore[attr-defined]  # as above
        raters = Rater.objects.filter(project=project, labeler__isnull=False).order_by("pk")[:MAX_RATERS]
        labelers = [(each.labeler, rater_names.get_pseudonym(each)) for each in raters]
        for name in ("labelers", "without_labelers"):
            self.fields[name].choices = labelers  # type: ignore[attr-defined]  # as above
        machines = [(each.labeler, each.machine) for each in raters if each.kind == RaterKind.MACHINE]
        self.fields["agreeing_machines"].choices = machines  # type: ignore[attr-defined]  # as above
        destinations = [(name, name) for name in settings.DESTINATIONS]
        self.fields["deliver_to"].choices = destinations  # type: ignore[attr-defined]  # as above

    def clean_generations(self) -> list[int | None] | None:
        words = [word.strip() for word in self.cleaned_data["generations"].split(",") if word.strip()]
        numbers = [None if word == "none" else integers.parse_integer(word, digits=9) for word in words]
        if numbers.count(None) > words.count("none"):
            raise forms.ValidationError(_("Enter numbers separated by commas, for example 0, 1, 2."))
        return numbers or None

    def order(self) -> SnapshotOrder:
        data = self.cleaned_data
        as_given = ("generations", "contested", "gold", "min_raters", "submitted_from", "submitted_until")
        empty_means_all = (
            *("finish_reasons", "domains", "tags", "without_tags", "arms", "rater_kinds", "is_blind"),
            *("labelers", "without_labelers", "agreeing_machines"),
        )
        options = ("formats", "ending", "without_duplicates", "has_labeler_names", "taken_in", "reason", "deliver_to")
        limits: dict[str, Any] = {name: data[name] or None for name in empty_means_all}
        filters = ManifestFilters(
            **limits,
            **{name: data[name] for name in as_given},
            unit="submissions" if OUTPUT_FORMATS[data["formats"][0]].wants_raters else "traces",
            set_aside=data["set_aside"] or "out",
            is_consensus=data["ratings"] == "consensus",
        )
        rule = LabelRule(
            neutral=data["neutral"],
            human_steps=data["human_steps"] or "omit",
            label_set=data["label_set"] or "as_rated",
            has_alternatives=not data["has_no_alternatives"],
        )
        shares = {name: data[name] / 100 for name in ("validation", "test")}
        return SnapshotOrder(filters=filters, rule=rule, **shares, **{name: data[name] for name in options})


_DISCLOSURE_LABELS: dict[str, Any] = {
    **DISCLOSURE_LABELS,
    "raters": _("Annotators: background, training and screening"),
    "pay": _("Pay"),
    "domains_not_covered": _("Domains not covered"),
    "licence": _("License of the labels"),
}


class DisclosureForm(forms.Form):
    """One field per disclosure. The card prints an empty one as not stated."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in DISCLOSURE_FIELDS:
            max_length = 200 if name == "licence" else 2000
            widget = None if name == "licence" else forms.Textarea(attrs={"rows": 2})
            self.fields[name] = forms.CharField(
                label=_DISCLOSURE_LABELS[name], required=False, max_length=max_length, widget=widget
            )


@safe_view(Action.TAKE_OUT)
def show_snapshots(request: HttpRequest, actor: Membership) -> HttpResponse:
    name = snapshots.suggest_name(actor.project)
    return _render_snapshots(request, actor, SnapshotOrderForm(project=actor.project, initial={"name": name}))


@post_view(Action.TAKE_OUT)
def order_snapshot(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = SnapshotOrderForm(request.POST, project=actor.project)
    if not form.is_valid():
        return _render_snapshots(request, actor, form, status=422)
    chosen = {name: form.cleaned_data[name] for name in ("name", "purpose")}
    try:
        made = snapshots.order_snapshot(
            project=actor.project, order=form.order(), by=actor.user, now=timezone.now(), **chosen
        )
    except InvalidOrder as error:
        form.add_error(None, str(error))
        return _render_snapshots(request, actor, form, status=422)
    return redirect("dashboard:snapshot", actor.project.slug, made.name)


@safe_view(Action.TAKE_OUT)
def show_snapshot(request: HttpRequest, actor: Membership, name: str) -> HttpResponse:
    return _render_snapshot(request, actor, _load_snapshot(actor, name))


@safe_view(Action.TAKE_OUT)
def show_snapshot_progress(request: HttpRequest, actor: Membership, name: str) -> HttpResponse:
    """Render the part that polls while the snapshot is built or delivered."""
    context = {"project": actor.project, **_build_snapshot_context(_load_snapshot(actor, name))}
    return render(request, "dashboard/snapshots/_progress.html", context)


@post_view(Action.TAKE_OUT)
def cancel_snapshot(request: HttpRequest, actor: Membership, name: str) -> HttpResponse:
    snapshots.cancel_snapshot(snapshot=_load_snapshot(actor, name), by=actor.user, now=timezone.now())
    return redirect("dashboard:snapshot", actor.project.slug, name)


@post_view(Action.TAKE_OUT)
def retry_snapshot(request: HttpRequest, actor: Membership, name: str) -> HttpResponse:
    failed = snapshots.load_snapshot_status(_load_snapshot(actor, name)).failed
    if failed is not None:
        with suppress(control.JobNotRetryable):  # someone else retried it
            control.retry_job(job=failed, by=actor.user, now=timezone.now())
    return redirect("dashboard:snapshot", actor.project.slug, name)


@require_confirmation()
@post_view(Action.TAKE_OUT)
def deliver_snapshot(request: HttpRequest, actor: Membership, name: str) -> HttpResponse:
    """Deliver to a configured destination, or retry a failed delivery."""
    snapshot = _load_snapshot(actor, name)
    if snapshot.built_at is None:
        raise Http404
    try:
        deliveries.request_delivery(
            snapshot=snapshot, destination=request.POST.get("destination", ""), by=actor.user, now=timezone.now()
        )
    except InvalidOrder as error:
        return _render_snapshot(request, actor, snapshot, status=422, refusal=error)
    return redirect("dashboard:snapshot", actor.project.slug, name)


@require_confirmation(is_download=True, is_exempt=lambda *, file, **others: file.endswith(".svg"))
@require_safe
def download_snapshot_file(request: HttpRequest, slug: str, name: str, file: str) -> HttpResponseBase:
    actor = membership_or_404(request, slug, Action.TAKE_OUT)
    snapshot = _load_snapshot(actor, name)
    listed = snapshots.find_file(snapshot, file)
    if listed is None:
        raise Http404
    if request.method == "GET":
        snapshots.log_download(snapshot=snapshot, file=listed.name, by=actor.user, now=timezone.now())
    path = snapshots.snapshot_folder(snapshot) / listed.name
    plain = listed.name.replace("/", "-")
    # Figures are shown beside the card; other files are only downloaded.
    kind = "image/svg+xml" if plain.endswith(".svg") else "application/octet-stream"
    return file_response.send_file(
        request, path, sha256=listed.sha256, name=f"{snapshot.name}-{plain}", content_type=kind
    )


@form_view(Action.TAKE_OUT)
def edit_disclosure(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = DisclosureForm(request.POST or None, initial=card.load_disclosure(actor.project))
    if form.is_valid():
        card.save_disclosure(project=actor.project, texts=form.cleaned_data, by=actor.user, now=timezone.now())
        messages.success(request, _("Saved. New snapshots include these disclosures."))
        return redirect("dashboard:disclosure", actor.project.slug)
    status = 422 if form.is_bound else 200
    return project_page(request, actor, "dashboard/disclosure.html", here="snapshots", status=status, form=form)


def _load_snapshot(actor: Membership, name: str) -> Snapshot:
    rows = Snapshot.objects.select_related("manifest", "asked_by")
    return get_object_or_404(rows, project=actor.project, name=name)


def _render_snapshot(
    request: HttpRequest, actor: Membership, snapshot: Snapshot, *, status: int = 200, **context: Any
) -> HttpResponse:
    context |= _build_snapshot_context(snapshot)
    return project_page(request, actor, "dashboard/snapshot.html", here="snapshots", status=status, **context)


def _build_snapshot_context(snapshot: Snapshot) -> dict[str, Any]:
    path = snapshots.snapshot_folder(snapshot) / "README.md"
    is_built = snapshot.built_at is not None and path.is_file()
    card = path.read_text(encoding="utf-8")[:MAX_CARD_CHARACTERS] if is_built else ""
    statuses = deliveries.list_delivery_statuses(snapshot)
    used = {each.delivery.destination for each in statuses}
    return {
        "deliveries": statuses,
        "is_delivering": any(each.is_at_work for each in statuses),
        "destinations": [name for name in settings.DESTINATIONS if name not in used],
        "snapshot": snapshot,
        "build": snapshots.load_snapshot_status(snapshot),
        "files": list(snapshot.files.order_by("name")),
        "is_empty": not snapshots.has_rows(snapshot),
        "lost_files": snapshots.list_lost_files(snapshot),
        "left_out": sorted(snapshot.manifest.left_out.items()) if snapshot.manifest else [],
        "figures": _FIGURE.findall(card),
        "card": _render_card(card),
    }


def _render_card(text: str) -> SafeString:
    """Render the card without its front matter and title. Disclosures are untrusted, so only allowed HTML remains."""
    body = text.split("---\n", 2)[-1].strip().partition("\n")[2]
    return mark_safe(rendering.to_html(_FIGURE.sub("", body)))  # noqa: S308  sanitized by to_html


def _render_snapshots(
    request: HttpRequest, actor: Membership, form: SnapshotOrderForm, *, status: int = 200
) -> HttpResponse:
    rows = Snapshot.objects.filter(project=actor.project).select_related("manifest", "asked_by")
    disclosure = card.load_disclosure(actor.project)
    return project_page(
        request,
        actor,
        "dashboard/snapshots.html",
        here="snapshots",
        status=status,
        form=form,
        snapshots=list(rows.order_by("-asked_at", "-pk")[:MAX_SNAPSHOTS]),
        n_stated=sum(bool(disclosure[name]) for name in card.DISCLOSURE_LABELS),
        n_disclosures=len(card.DISCLOSURE_LABELS),
    )
