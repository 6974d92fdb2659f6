"""The form to write a message."""

from django import forms
from django.utils.translation import gettext_lazy as _

from people import member_messages


class MessageForm(forms.Form):
    text = forms.CharField(
        label=_("Message"),
        max_length=member_messages.MAX_LENGTH,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("Shown on the home page and beside the work until it is read."),
        error_messages={"required": _("Enter a message.")},
    )
