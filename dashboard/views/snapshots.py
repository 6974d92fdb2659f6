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

from dashboard import door, page
from dashboard.ordering import OrderForm, StatementForm
from exports import deliveries, destinations, following, ranges, snapshots, statements
from exports.models import Snapshot
from exports.orders import Unfit
from jobs import work
from labeling.guidelines import rendering
from people.models import Membership
from people.roles import Action

SHOWN = 50
CARD_SHOWN = 200_000
_FIGURE = re.compile(r"^!\[([^\]]+)\]\(([a-z_]+\.svg)\)$", re.M)  # what it shows, and its file


@require_safe
@never_cache
def listed(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.TAKE_OUT)
    name = snapshots.next_name(actor.project)
    return _list(request, actor, OrderForm(project=actor.project, initial={"name": name}))


@require_POST
def order(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.TAKE_OUT)
    form = OrderForm(request.POST, project=actor.project)
    if not form.is_valid():
        return _list(request, actor, form, status=422)
    try:
        made = snapshots.order(
            project=actor.project,
            name=form.cleaned_data["name"],
            purpose=form.cleaned_data["purpose"],
            wanted=form.order(),
            by=actor.user,
            now=timezone.now(),
        )
    except Unfit as error:
        form.add_error(None, str(error))
        return _list(request, actor, form, status=422)
    return redirect("dashboard:snapshot", slug, made.name)


@require_safe
@never_cache
def one(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    actor, found = _pair(request, slug, name)
    return page.show(request, actor, "dashboard/snapshot.html", here="snapshots", **_told(found))


@require_GET
@never_cache
def standing(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """How far it is: asked for again and again while it is built."""
    actor, found = _pair(request, slug, name)
    return render(request, "dashboard/_snapshot_standing.html", {"project": actor.project, **_told(found)})


@require_POST
def cancel(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    actor, found = _pair(request, slug, name)
    snapshots.cancel(snapshot=found, by=actor.user, now=timezone.now())
    return redirect("dashboard:snapshot", slug, name)


@require_POST
def retry(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    actor, found = _pair(request, slug, name)
    failed = following.of(found).failed
    if failed is not None:
        with suppress(work.NotRetryable):  # somebody else has asked for it meanwhile
            work.retry(job=failed, by=actor.user, now=timezone.now())
    return redirect("dashboard:snapshot", slug, name)


@require_POST
def deliver(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """To a place that is set up; what failed on its way there is tried again."""
    actor, found = _pair(request, slug, name)
    if found.built_at is None:
        raise Http404
    try:
        deliveries.ask(
            snapshot=found, destination=request.POST.get("destination", ""), by=actor.user, now=timezone.now()
        )
    except Unfit as error:
        return page.show(request, actor, "dashboard/snapshot.html", here="snapshots", status=422, **_told(found, error))
    return redirect("dashboard:snapshot", slug, name)


@require_safe
def download(request: HttpRequest, slug: str, name: str, file: str) -> HttpResponseBase:
    _actor, found = _pair(request, slug, name)
    listed = snapshots.file_of(found, file)
    if listed is None:
        raise Http404
    path = snapshots.folder(found) / listed.name
    plain = listed.name.replace("/", "-")
    # Figures are shown beside the card; whatever else is only fetched.
    kind = "image/svg+xml" if plain.endswith(".svg") else "application/octet-stream"
    return ranges.send(request, path, sha256=listed.sha256, name=f"{found.name}-{plain}", content_type=kind)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def statement(request: HttpRequest, slug: str) -> HttpResponse:
    actor = door.enter(request, slug, Action.TAKE_OUT)
    form = StatementForm(request.POST or None, initial=statements.of(actor.project))
    if form.is_valid():
        statements.state(project=actor.project, said=form.cleaned_data, by=actor.user, now=timezone.now())
        messages.success(request, _("Stated. Snapshots that are made from now on carry it."))
        return redirect("dashboard:statement", slug)
    status = 422 if form.is_bound else 200
    return page.show(request, actor, "dashboard/statement.html", here="snapshots", status=status, form=form)


def _pair(request: HttpRequest, slug: str, name: str) -> tuple[Membership, Snapshot]:
    actor = door.enter(request, slug, Action.TAKE_OUT)
    made = Snapshot.objects.select_related("manifest", "asked_by")
    return actor, get_object_or_404(made, project=actor.project, name=name)


def _told(found: Snapshot, refusal: Unfit | None = None) -> dict[str, Any]:
    path = snapshots.folder(found) / "README.md"
    is_built = found.built_at is not None and path.is_file()
    sent = deliveries.of(found)
    there = {each.delivery.destination for each in sent}
    return {
        "refusal": refusal,
        "deliveries": sent,
        "is_delivering": any(each.is_at_work for each in sent),
        "destinations": [name for name in destinations.named() if name not in there],
        "snapshot": found,
        "standing": following.of(found),
        "files": list(found.files.order_by("name")),
        "left_out": sorted(found.manifest.left_out.items()) if found.manifest else [],
        "figures": _FIGURE.findall(path.read_text(encoding="utf-8")[:CARD_SHOWN]) if is_built else [],
        "card": _card(path.read_text(encoding="utf-8")[:CARD_SHOWN]) if is_built else "",
    }


def _card(text: str) -> SafeString:
    """The words without the head, through the allow-list: what a lead stated may be anything."""
    words = text.split("---\n", 2)[-1].strip().partition("\n")[2]
    return mark_safe(rendering.to_html(_FIGURE.sub("", words)))  # noqa: S308  from the allow-list


def _list(request: HttpRequest, actor: Membership, form: OrderForm, *, status: int = 200) -> HttpResponse:
    made = Snapshot.objects.filter(project=actor.project).select_related("manifest", "asked_by")
    told = statements.of(actor.project)
    return page.show(
        request,
        actor,
        "dashboard/snapshots.html",
        here="snapshots",
        status=status,
        form=form,
        made=list(made.order_by("-asked_at", "-pk")[:SHOWN]),
        n_stated=sum(bool(told[name]) for name in statements.ELEVEN),
        n_asked=len(statements.ELEVEN),
    )
