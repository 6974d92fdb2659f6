"""Snapshots: order, follow, download and deliver them; edit the disclosures of their cards."""

import re
from contextlib import suppress
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST, require_safe

from dashboard.access import membership_or_404
from dashboard.render import project_page
from dashboard.snapshots.forms import DisclosureForm, SnapshotOrderForm
from exports import deliveries, destinations, disclosures, file_response, snapshot_status, snapshots
from exports.models import Snapshot
from exports.orders import InvalidOrder
from jobs import control
from labeling.projects.guidelines import rendering
from people.models import Membership
from people.roles import Action

MAX_SNAPSHOTS = 50
MAX_CARD_CHARACTERS = 200_000
_FIGURE = re.compile(r"^!\[([^\]]+)\]\(([a-z_]+\.svg)\)$", re.M)  # caption, file name


@require_safe
@never_cache
def show_snapshots(request: HttpRequest, slug: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.TAKE_OUT)
    name = snapshots.suggest_name(actor.project)
    return _render_snapshots(request, actor, SnapshotOrderForm(project=actor.project, initial={"name": name}))


@require_POST
def order_snapshot(request: HttpRequest, slug: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.TAKE_OUT)
    form = SnapshotOrderForm(request.POST, project=actor.project)
    if not form.is_valid():
        return _render_snapshots(request, actor, form, status=422)
    try:
        made = snapshots.order_snapshot(
            project=actor.project,
            name=form.cleaned_data["name"],
            purpose=form.cleaned_data["purpose"],
            order=form.order(),
            by=actor.user,
            now=timezone.now(),
        )
    except InvalidOrder as error:
        form.add_error(None, str(error))
        return _render_snapshots(request, actor, form, status=422)
    return redirect("dashboard:snapshot", slug, made.name)


@require_safe
@never_cache
def show_snapshot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    actor, snapshot = _load_snapshot(request, slug, name)
    return project_page(
        request, actor, "dashboard/snapshot.html", here="snapshots", **_build_snapshot_context(snapshot)
    )


@require_GET
@never_cache
def show_snapshot_progress(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Render the part that polls while the snapshot is built or delivered."""
    actor, snapshot = _load_snapshot(request, slug, name)
    return render(
        request, "dashboard/snapshots/_progress.html", {"project": actor.project, **_build_snapshot_context(snapshot)}
    )


@require_POST
def cancel_snapshot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    actor, snapshot = _load_snapshot(request, slug, name)
    snapshots.cancel_snapshot(snapshot=snapshot, by=actor.user, now=timezone.now())
    return redirect("dashboard:snapshot", slug, name)


@require_POST
def retry_snapshot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    actor, snapshot = _load_snapshot(request, slug, name)
    failed = snapshot_status.load_snapshot_status(snapshot).failed
    if failed is not None:
        with suppress(control.JobNotRetryable):  # someone else retried it
            control.retry_job(job=failed, by=actor.user, now=timezone.now())
    return redirect("dashboard:snapshot", slug, name)


@require_POST
def deliver_snapshot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Deliver to a configured destination, or retry a failed delivery."""
    actor, snapshot = _load_snapshot(request, slug, name)
    if snapshot.built_at is None:
        raise Http404
    try:
        deliveries.request_delivery(
            snapshot=snapshot, destination=request.POST.get("destination", ""), by=actor.user, now=timezone.now()
        )
    except InvalidOrder as error:
        return project_page(
            request,
            actor,
            "dashboard/snapshot.html",
            here="snapshots",
            status=422,
            **_build_snapshot_context(snapshot, error),
        )
    return redirect("dashboard:snapshot", slug, name)


@require_safe
def download_snapshot_file(request: HttpRequest, slug: str, name: str, file: str) -> HttpResponseBase:
    _actor, snapshot = _load_snapshot(request, slug, name)
    listed = snapshots.find_file(snapshot, file)
    if listed is None:
        raise Http404
    path = snapshots.snapshot_folder(snapshot) / listed.name
    plain = listed.name.replace("/", "-")
    # Figures are shown beside the card; other files are only downloaded.
    kind = "image/svg+xml" if plain.endswith(".svg") else "application/octet-stream"
    return file_response.send_file(
        request, path, sha256=listed.sha256, name=f"{snapshot.name}-{plain}", content_type=kind
    )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def edit_disclosure(request: HttpRequest, slug: str) -> HttpResponse:
    actor = membership_or_404(request, slug, Action.TAKE_OUT)
    form = DisclosureForm(request.POST or None, initial=disclosures.load_disclosure(actor.project))
    if form.is_valid():
        disclosures.save_disclosure(project=actor.project, texts=form.cleaned_data, by=actor.user, now=timezone.now())
        messages.success(request, _("Saved. New snapshots include these disclosures."))
        return redirect("dashboard:disclosure", slug)
    status = 422 if form.is_bound else 200
    return project_page(request, actor, "dashboard/disclosure.html", here="snapshots", status=status, form=form)


def _load_snapshot(request: HttpRequest, slug: str, name: str) -> tuple[Membership, Snapshot]:
    actor = membership_or_404(request, slug, Action.TAKE_OUT)
    rows = Snapshot.objects.select_related("manifest", "asked_by")
    return actor, get_object_or_404(rows, project=actor.project, name=name)


def _build_snapshot_context(snapshot: Snapshot, refusal: InvalidOrder | None = None) -> dict[str, Any]:
    path = snapshots.snapshot_folder(snapshot) / "README.md"
    is_built = snapshot.built_at is not None and path.is_file()
    statuses = deliveries.list_delivery_statuses(snapshot)
    used = {each.delivery.destination for each in statuses}
    return {
        "refusal": refusal,
        "deliveries": statuses,
        "is_delivering": any(each.is_at_work for each in statuses),
        "destinations": [name for name in destinations.configured_destinations() if name not in used],
        "snapshot": snapshot,
        "build": snapshot_status.load_snapshot_status(snapshot),
        "files": list(snapshot.files.order_by("name")),
        "left_out": sorted(snapshot.manifest.left_out.items()) if snapshot.manifest else [],
        "figures": _FIGURE.findall(path.read_text(encoding="utf-8")[:MAX_CARD_CHARACTERS]) if is_built else [],
        "card": _render_card(path.read_text(encoding="utf-8")[:MAX_CARD_CHARACTERS]) if is_built else "",
    }


def _render_card(text: str) -> SafeString:
    """Render the card without its front matter and title. Disclosures are untrusted, so only allowed HTML remains."""
    body = text.split("---\n", 2)[-1].strip().partition("\n")[2]
    return mark_safe(rendering.to_html(_FIGURE.sub("", body)))  # noqa: S308  sanitized by to_html


def _render_snapshots(
    request: HttpRequest, actor: Membership, form: SnapshotOrderForm, *, status: int = 200
) -> HttpResponse:
    rows = Snapshot.objects.filter(project=actor.project).select_related("manifest", "asked_by")
    disclosure = disclosures.load_disclosure(actor.project)
    return project_page(
        request,
        actor,
        "dashboard/snapshots.html",
        here="snapshots",
        status=status,
        form=form,
        snapshots=list(rows.order_by("-asked_at", "-pk")[:MAX_SNAPSHOTS]),
        n_stated=sum(bool(disclosure[name]) for name in disclosures.CARD_FIELDS),
        n_disclosures=len(disclosures.CARD_FIELDS),
    )
