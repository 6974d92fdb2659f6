"""Notices of a project: a lead's own choice of emails, webhooks, and the log of deliveries."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

import outbound
from accounts.confirmation import require_confirmation
from dashboard import paging
from dashboard.access import post_view, safe_view
from dashboard.render import project_page
from notices import outbox, subscriptions
from notices.kinds import NOTICE_KINDS, label_kind
from notices.models import NoticeDelivery, NoticeState, Webhook
from people.models import Membership
from people.roles import Action

PAGE_SIZE = 30
_CHOICES = [(kind, each.label) for kind, each in NOTICE_KINDS.items()]


class MailForm(forms.Form):
    mail = forms.MultipleChoiceField(
        label=gettext_lazy("Send me an email"),
        choices=_CHOICES,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )


class WebhookForm(forms.Form):
    address = forms.CharField(
        label=gettext_lazy("URL"),
        max_length=500,
        help_text=gettext_lazy("Receives a signed POST request for each notice, for example https://example.org/hook"),
        widget=forms.URLInput(attrs={"autocomplete": "off"}),
    )
    kinds = forms.MultipleChoiceField(
        label=gettext_lazy("Notices"), choices=_CHOICES, widget=forms.CheckboxSelectMultiple
    )

    def clean_address(self) -> str:
        try:
            return outbound.check_address(self.cleaned_data["address"])
        except outbound.AddressRefused as error:
            raise ValidationError(str(error), code=error.code) from None


@safe_view(Action.NOTIFY)
def show_notices(request: HttpRequest, actor: Membership) -> HttpResponse:
    return _render_notices(request, actor)


@post_view(Action.NOTIFY)
def choose_mail(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = MailForm(request.POST)
    if not form.is_valid():
        return _render_notices(request, actor, status=422, mail_form=form)
    subscriptions.choose_mail(membership=actor, kinds=form.cleaned_data["mail"], now=timezone.now())
    messages.success(request, _("Saved."))
    return redirect("dashboard:notices", actor.project.slug)


@require_confirmation()
@post_view(Action.NOTIFY)
def create_webhook(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Show the secret once, in the response to the request that creates the webhook."""
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return _render_notices(request, actor, status=422, form=form)
    try:
        created = subscriptions.create_webhook(
            project=actor.project, by=actor.user, now=timezone.now(), **form.cleaned_data
        )
    except subscriptions.TooManyWebhooks as error:
        form.add_error(None, ValidationError(str(error), code="too_many"))
        return _render_notices(request, actor, status=422, form=form)
    return _render_notices(request, actor, status=201, created=created)


@post_view(Action.NOTIFY)
def test_webhook(request: HttpRequest, actor: Membership, webhook: int) -> HttpResponse:
    row = _get_webhook(actor, webhook)
    outbox.send_test(webhook=row, by=actor.user, now=timezone.now())
    messages.success(request, _("A test notice is on its way. Reload this page to see whether it was delivered."))
    return redirect("dashboard:notices", actor.project.slug)


@post_view(Action.NOTIFY)
def delete_webhook(request: HttpRequest, actor: Membership, webhook: int) -> HttpResponse:
    subscriptions.delete_webhook(webhook=_get_webhook(actor, webhook), by=actor.user, now=timezone.now())
    messages.success(request, _("Webhook deleted. Its pending notices will not be sent."))
    return redirect("dashboard:notices", actor.project.slug)


@post_view(Action.NOTIFY)
def send_notice_again(request: HttpRequest, actor: Membership, delivery: int) -> HttpResponse:
    rows = NoticeDelivery.objects.filter(notice__project=actor.project, state=NoticeState.FAILED)
    outbox.send_again(delivery=get_object_or_404(rows, pk=delivery), by=actor.user, now=timezone.now())
    messages.success(request, _("The notice is being sent again. Reload this page to see whether it was delivered."))
    return redirect("dashboard:notices", actor.project.slug)


def _get_webhook(actor: Membership, webhook: int) -> Webhook:
    return get_object_or_404(subscriptions.list_webhooks(actor.project).select_related("project"), pk=webhook)


def _render_notices(
    request: HttpRequest,
    actor: Membership,
    *,
    status: int = 200,
    form: WebhookForm | None = None,
    mail_form: MailForm | None = None,
    **context: Any,
) -> HttpResponse:
    deliveries = NoticeDelivery.objects.filter(notice__project=actor.project)
    rows = deliveries.select_related("notice", "webhook", "membership__user")
    page = paging.paginate(rows, request.GET, size=PAGE_SIZE)
    webhooks = subscriptions.list_webhooks(actor.project)
    return project_page(
        request,
        actor,
        "dashboard/notices.html",
        here="settings",
        tab="notices",
        status=status,
        form=form or WebhookForm(),
        mail_form=mail_form or MailForm(initial={"mail": subscriptions.find_mail_choice(actor)}),
        can_send_mail=subscriptions.can_send_mail(),
        webhooks=[(row, [label_kind(kind) for kind in row.kinds]) for row in webhooks],
        rows=page,
        deliveries=[(row, label_kind(row.notice.kind)) for row in page.rows],
        **context,
    )
