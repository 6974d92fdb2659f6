"""Snapshots: order one, follow it, fetch its files, read its card; and what the lead states for cards."""

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

from dashboard import access
from dashboard import render as dashboard_render
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
_FIGURE = re.compile(r"^!\[([^\]]+)\]\(([a-z_]+\.svg)\)$", re.M)  # what it shows, and its file


@require_safe
@never_cache
def show_snapshots(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.TAKE_OUT)
    name = snapshots.suggest_name(actor.project)
    return _render_snapshots(request, actor, SnapshotOrderForm(project=actor.project, initial={"name": name}))


@require_POST
def order_snapshot(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.TAKE_OUT)
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
    actor, found = _load_snapshot(request, slug, name)
    return dashboard_render.project_page(
        request, actor, "dashboard/snapshot.html", here="snapshots", **_build_snapshot_context(found)
    )


@require_GET
@never_cache
def show_snapshot_progress(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """How far it is: asked for again and again while it is built."""
    actor, found = _load_snapshot(request, slug, name)
    return render(
        request, "dashboard/snapshots/_progress.html", {"project": actor.project, **_build_snapshot_context(found)}
    )


@require_POST
def cancel_snapshot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    actor, found = _load_snapshot(request, slug, name)
    snapshots.cancel_snapshot(snapshot=found, by=actor.user, now=timezone.now())
    return redirect("dashboard:snapshot", slug, name)


@require_POST
def retry_snapshot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    actor, found = _load_snapshot(request, slug, name)
    failed = snapshot_status.load_snapshot_status(found).failed
    if failed is not None:
        with suppress(control.JobNotRetryable):  # somebody else has asked for it meanwhile
            control.retry_job(job=failed, by=actor.user, now=timezone.now())
    return redirect("dashboard:snapshot", slug, name)


@require_POST
def deliver_snapshot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """To a place that is set up; what failed on its way there is tried again."""
    actor, found = _load_snapshot(request, slug, name)
    if found.built_at is None:
        raise Http404
    try:
        deliveries.request_delivery(
            snapshot=found, destination=request.POST.get("destination", ""), by=actor.user, now=timezone.now()
        )
    except InvalidOrder as error:
        return dashboard_render.project_page(
            request,
            actor,
            "dashboard/snapshot.html",
            here="snapshots",
            status=422,
            **_build_snapshot_context(found, error),
        )
    return redirect("dashboard:snapshot", slug, name)


@require_safe
def download_snapshot_file(request: HttpRequest, slug: str, name: str, file: str) -> HttpResponseBase:
    _actor, found = _load_snapshot(request, slug, name)
    listed = snapshots.find_file(found, file)
    if listed is None:
        raise Http404
    path = snapshots.snapshot_folder(found) / listed.name
    plain = listed.name.replace("/", "-")
    # Figures are shown beside the card; whatever else is only fetched.
    kind = "image/svg+xml" if plain.endswith(".svg") else "application/octet-stream"
    return file_response.send_file(request, path, sha256=listed.sha256, name=f"{found.name}-{plain}", content_type=kind)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def edit_disclosure(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.TAKE_OUT)
    form = DisclosureForm(request.POST or None, initial=disclosures.load_disclosure(actor.project))
    if form.is_valid():
        disclosures.save_disclosure(project=actor.project, texts=form.cleaned_data, by=actor.user, now=timezone.now())
        messages.success(request, _("Stated. Snapshots that are made from now on carry it."))
        return redirect("dashboard:disclosure", slug)
    status = 422 if form.is_bound else 200
    return dashboard_render.project_page(
        request, actor, "dashboard/disclosure.html", here="snapshots", status=status, form=form
    )


def _load_snapshot(request: HttpRequest, slug: str, name: str) -> tuple[Membership, Snapshot]:
    actor = access.membership_or_404(request, slug, Action.TAKE_OUT)
    made = Snapshot.objects.select_related("manifest", "asked_by")
    return actor, get_object_or_404(made, project=actor.project, name=name)


def _build_snapshot_context(found: Snapshot, refusal: InvalidOrder | None = None) -> dict[str, Any]:
    path = snapshots.snapshot_folder(found) / "README.md"
    is_built = found.built_at is not None and path.is_file()
    sent = deliveries.list_delivery_statuses(found)
    there = {each.delivery.destination for each in sent}
    return {
        "refusal": refusal,
        "deliveries": sent,
        "is_delivering": any(each.is_at_work for each in sent),
        "destinations": [name for name in destinations.configured_destinations() if name not in there],
        "snapshot": found,
        "standing": snapshot_status.load_snapshot_status(found),
        "files": list(found.files.order_by("name")),
        "left_out": sorted(found.manifest.left_out.items()) if found.manifest else [],
        "figures": _FIGURE.findall(path.read_text(encoding="utf-8")[:MAX_CARD_CHARACTERS]) if is_built else [],
        "card": _render_card(path.read_text(encoding="utf-8")[:MAX_CARD_CHARACTERS]) if is_built else "",
    }


def _render_card(text: str) -> SafeString:
    """The words without the head, through the allow-list: what a lead stated may be anything."""
    words = text.split("---\n", 2)[-1].strip().partition("\n")[2]
    return mark_safe(rendering.to_html(_FIGURE.sub("", words)))  # noqa: S308  from the allow-list


def _render_snapshots(
    request: HttpRequest, actor: Membership, form: SnapshotOrderForm, *, status: int = 200
) -> HttpResponse:
    made = Snapshot.objects.filter(project=actor.project).select_related("manifest", "asked_by")
    told = disclosures.load_disclosure(actor.project)
    return dashboard_render.project_page(
        request,
        actor,
        "dashboard/snapshots.html",
        here="snapshots",
        status=status,
        form=form,
        made=list(made.order_by("-asked_at", "-pk")[:MAX_SNAPSHOTS]),
        n_stated=sum(bool(told[name]) for name in disclosures.CARD_FIELDS),
        n_asked=len(disclosures.CARD_FIELDS),
    )
