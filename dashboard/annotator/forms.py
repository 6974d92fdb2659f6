"""Forms of the annotator page."""

from django import forms


class PauseAnnotatorForm(forms.Form):
    reason = forms.CharField(max_length=300)
