"""Forms of the trace page."""

from django import forms


class WithdrawTraceForm(forms.Form):
    reason = forms.CharField(max_length=200)
