"""Render the widgets of forms without templates: Django includes two templates for each option of a select, and a page
can have hundreds of options."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.forms.renderers import DjangoTemplates
from django.utils.html import conditional_escape, escape
from django.utils.safestring import SafeString


class WidgetRenderer(DjangoTemplates):
    """Write the common widgets in Python, and all others with Django's templates. The markup is the same."""

    def render(self, template_name: str, context: dict[str, Any], request: Any = None) -> str:
        write = _WRITERS.get(template_name)
        return write(context["widget"]) if write else super().render(template_name, context, request)


def _write_name(widget: Mapping[str, Any]) -> str:
    return f' name="{conditional_escape(widget["name"])}"'


def _escape_value(value: Any) -> str:
    """Escape as the templates do: they write the value as a text first, so `__html__` of an object does not count."""
    return value if isinstance(value, SafeString) else escape(str(value))


def _write_attributes(attributes: Mapping[str, Any]) -> str:
    shown = ((conditional_escape(name), value) for name, value in attributes.items() if value is not False)
    return "".join(f" {name}" if value is True else f' {name}="{_escape_value(value)}"' for name, value in shown)


def _write_input(widget: Mapping[str, Any]) -> str:
    value = "" if widget["value"] is None else f' value="{_escape_value(widget["value"])}"'
    kind = conditional_escape(widget["type"])
    return f'<input type="{kind}"{_write_name(widget)}{value}{_write_attributes(widget["attrs"])}>'


def _write_choice(widget: Mapping[str, Any]) -> str:
    """Write a radio button or check box of several, with its label if that is wanted."""
    if not widget.get("wrap_label"):
        return _write_input(widget)
    key = widget["attrs"].get("id")
    reference = f' for="{conditional_escape(key)}"' if key else ""
    return f"<label{reference}>{_write_input(widget)} {conditional_escape(widget['label'])}</label>"


def _write_textarea(widget: Mapping[str, Any]) -> str:
    text = conditional_escape(widget["value"] or "")
    return f"<textarea{_write_name(widget)}{_write_attributes(widget['attrs'])}>\n{text}</textarea>"


def _write_select(widget: Mapping[str, Any]) -> str:
    options = "".join(_list_options(widget["optgroups"]))
    return f"<select{_write_name(widget)}{_write_attributes(widget['attrs'])}>{options}</select>"


def _list_options(groups: Any) -> Iterator[str]:
    for name, options, _index in groups:
        yield f'<optgroup label="{conditional_escape(name)}">' if name else ""
        for option in options:
            value, label = _escape_value(option["value"]), conditional_escape(option["label"])
            yield f'<option value="{value}"{_write_attributes(option["attrs"])}>{label}</option>'
        yield "</optgroup>" if name else ""


_INPUTS = ("text", "number", "email", "url", "password", "hidden", "date", "datetime", "time", "checkbox", "file")
_WRITERS = {
    **{f"django/forms/widgets/{name}.html": _write_input for name in _INPUTS},
    **{f"django/forms/widgets/{name}.html": _write_choice for name in ("radio_option", "checkbox_option")},
    "django/forms/widgets/textarea.html": _write_textarea,
    "django/forms/widgets/select.html": _write_select,
}
