"""Forms of the submission page."""

from django import forms


class CorrectionRequestForm(forms.Form):
    note = forms.CharField(max_length=1000)
