"""Widgets that are written in Python have the markup of Django's templates."""

import pytest
from django import forms
from django.forms.renderers import DjangoTemplates
from django.test.html import parse_html
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy

from config.form_renderer import WidgetRenderer

HOSTILE = '"><script>alert(1)</script>&amp;'
CHOICES = [("", gettext_lazy("any")), (1, 1), ("2", HOSTILE), (HOSTILE, mark_safe("<b>safe</b>")), ("G", [("a", "A")])]


class Marked:
    """A value that claims to be HTML."""

    def __html__(self) -> str:
        return HOSTILE


WIDGETS = (
    forms.TextInput(attrs={"a&b": Marked(), "title": mark_safe("&amp;")}),
    forms.TextInput(attrs={"maxlength": 10, "required": True, "disabled": False, "title": HOSTILE}),
    forms.NumberInput(attrs={"min": 0, "step": "any"}),
    forms.CheckboxInput(),
    forms.HiddenInput(),
    forms.PasswordInput(),
    forms.DateTimeInput(),
    forms.FileInput(),
    forms.Textarea(attrs={"rows": 2}),
    forms.Select(choices=CHOICES),
    forms.SelectMultiple(choices=CHOICES),
    forms.RadioSelect(choices=CHOICES[:3]),
)


@pytest.mark.parametrize("widget", WIDGETS, ids=lambda widget: type(widget).__name__)
def test_markup_is_that_of_django(widget: forms.Widget) -> None:
    for value in (None, "", "2", HOSTILE, 1, Marked(), ("a", 1)):
        written, expected = (
            widget.render("a&b", value, {"id": "id_a"}, renderer=renderer)
            for renderer in (WidgetRenderer(), DjangoTemplates())
        )
        assert parse_html(written) == parse_html(expected)


def test_one_radio_button_has_the_markup_of_django() -> None:
    for option in forms.RadioSelect(choices=CHOICES[:4]).subwidgets("a", HOSTILE, {"id": "id_a"}):
        for has_label in (False, True):
            name, context = option["template_name"], {"widget": {**option, "wrap_label": has_label}}
            written, expected = (each.render(name, context) for each in (WidgetRenderer(), DjangoTemplates()))
            assert parse_html(written) == parse_html(expected)
