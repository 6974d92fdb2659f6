"""The search form of the trace list."""

from django import forms
from django.utils.translation import gettext_lazy as _

from labeling.models.consensus import SettlementState

STATE_CHOICES = (
    ("", _("any state")),
    ("unread", _("not labeled yet")),
    ("in_hand", _("assigned now")),
    *((state.value, state.label) for state in SettlementState if state is not SettlementState.LIVE),
    ("bad_problem", _("bad problem reported")),
    ("gold", _("gold")),
    ("withdrawn", _("withdrawn")),
)


class TraceSearchForm(forms.Form):
    q = forms.CharField(label=_("Number, reference or words in the problem"), max_length=200, required=False)
    state = forms.ChoiceField(label=_("State"), choices=STATE_CHOICES, required=False)
    domain = forms.CharField(label=_("Domain"), max_length=100, required=False)
    source = forms.IntegerField(required=False, min_value=1, max_value=2**62, widget=forms.HiddenInput)
