"""Template tags for the markup that repeats on every page: panels, tables, fields, rating marks and the like.

A tag's markup is `templates/components/<tag>.html`. The tags are builtins, so no template loads them:

    {% panel _("Files") id="files" css="panel--table" %}
      {% panel_head %}<a class="end small" href="…">{% translate "All files" %}</a>{% endpanel_head %}
      {% data_table labelledby="files" %}
        {% column _("File") %}{% column _("Rows") css="r" %}{% column _("Actions") is_hidden=True %}
        {% for file in files %}<tr>…</tr>{% endfor %}
      {% enddata_table %}
    {% endpanel %}

`panel_head` and `column` print nothing themselves: they leave their part to the tag around them.
"""

import json
from functools import lru_cache
from typing import Any, cast

from django import forms, template
from django.conf import settings
from django.forms import BoundField
from django.template import Context, defaulttags, loader
from django.template.base import Parser, Token
from django.template.defaulttags import URLNode
from django.urls import NoReverseMatch, get_script_prefix, reverse
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from config.static_files import choose_scripts, choose_sheets

register = template.Library()

_FIELD_TEMPLATES: tuple[tuple[type[forms.Widget], str], ...] = (
    (forms.CheckboxSelectMultiple, "components/field_choices.html"),  # a RadioSelect too, so it comes first
    (forms.RadioSelect, "components/field_choices.html"),
    (forms.CheckboxInput, "components/field_checkbox.html"),
)
_MARKS = {-1: ("neg", _("negative")), 0: ("neu", _("neutral")), 1: ("pos", _("positive"))}
MAX_PICTURE_HEIGHT = 448  # pixels
_PANEL_HEAD = "panel_head"
_COLUMNS = "data_table_columns"


class AddressNode(URLNode):
    """Django's `url` with positional arguments only, remembering addresses: a list has several links in each row."""

    def render(self, context: Context) -> str:
        arguments = [argument.resolve(context) for argument in self.args]
        try:
            address = _reverse_view(get_script_prefix(), self.view_name.resolve(context), *arguments)
        except NoReverseMatch:
            if self.asvar is None:
                raise
            address = ""
        if self.asvar:
            context[self.asvar] = address
            return ""
        return conditional_escape(address) if context.autoescape else address


@lru_cache(maxsize=5000, typed=True)
def _reverse_view(_prefix: str, name: str, *arguments: Any) -> str:
    return reverse(name, args=arguments)  # begins with the prefix, which a request can choose


@register.tag
def url(parser: Parser, token: Token) -> URLNode:
    node = defaulttags.url(parser, token)
    return node if node.kwargs else AddressNode(node.view_name, node.args, node.kwargs, node.asvar)


@register.simple_block_tag(takes_context=True)
def panel(context: Context, content: str, title: str, *, id: str, css: str = "", note: str = "", level: int = 2) -> str:
    """Print a titled section. `note` is the sentence beside the title; `panel_head` adds markup there."""
    head = _parts(context).pop(_PANEL_HEAD, "")
    return _render("panel", content=content, title=title, id=id, css=css, note=note, level=level, head=head)


@register.simple_block_tag(takes_context=True)
def panel_head(context: Context, content: str) -> str:
    """Add markup beside the title of the panel around this tag."""
    _parts(context)[_PANEL_HEAD] = content
    return ""


@register.simple_block_tag(takes_context=True)
def data_table(context: Context, content: str, *, labelledby: str = "", label: str = "", css: str = "") -> str:
    """Print a table that scrolls in its own frame: the columns named inside it, then the rows."""
    columns = _parts(context).pop(_COLUMNS, ())
    return _render("data_table", content=content, columns=columns, labelledby=labelledby, label=label, css=css)


@register.simple_tag
def picture(image: Any, description: str, route: str, *arguments: Any) -> str:
    """Print an image of a trace at a size that fits on the screen, with its description. A click enlarges it."""
    scale = min(1.0, MAX_PICTURE_HEIGHT / image.height)
    return _render(
        "picture",
        address=reverse(route, args=[*arguments, image.digest]),
        width=round(image.width * scale),
        height=round(image.height * scale),
        description=description,
    )


@register.simple_tag
def problem_pictures(problem: Any, route: str, *arguments: Any) -> SafeString:
    """Print the images of a problem."""
    rows = problem.images.select_related("image").defer("image__data").order_by("position")
    return mark_safe("".join(picture(row.image, row.description, route, *arguments) for row in rows))  # noqa: S308  each is a rendered template


@register.simple_tag(takes_context=True)
def column(context: Context, name: str, *, css: str = "", is_hidden: bool = False) -> str:
    """Add a column to the table around this tag. A hidden name is read by screen readers only."""
    _parts(context).setdefault(_COLUMNS, []).append({"name": name, "css": css, "is_hidden": is_hidden})
    return ""


@register.simple_tag
def field(bound_field: BoundField, *, is_choice: bool = False) -> str:
    """Print a form field with its label, help text and errors. A choice is not marked as optional."""
    widget = bound_field.field.widget
    if bound_field.errors:
        widget.attrs["autofocus"] = True  # the browser focuses the first one
    name = next((name for kind, name in _FIELD_TEMPLATES if isinstance(widget, kind)), "components/field.html")
    return loader.get_template(name).render({"field": bound_field, "is_choice": is_choice})


@register.simple_tag
def error_summary(form: forms.BaseForm | None) -> str:
    """Print links to the fields of a form that have errors."""
    fields = [field for field in form.visible_fields() if field.errors] if form and form.is_bound else []
    return _render("error_summary", fields=fields)


@register.simple_block_tag
def note(content: str, *, kind: str = "warn", role: str = "") -> str:
    """Print a highlighted paragraph. Kinds: warn, done."""
    return _render("note", content=content, kind=kind, role=role)


@register.simple_tag(takes_context=True)
def post_button(
    context: Context, url: str, label: str, *, css: str = "", subject: Any = "", id: str = "", form_css: str = ""
) -> str:
    """Print a form that is one button. Screen readers also announce the subject: which of many rows it acts on."""
    token = context.get("csrf_token", "")
    button = {"url": url, "label": label, "css": css, "subject": subject, "id": id, "form_css": form_css}
    return _render("post_button", **button, csrf_token=token)


@register.simple_tag
def module_script(path: str) -> str:
    """Load a JavaScript module, and preload what it imports, so that no file waits for another."""
    script, imported = choose_scripts(path)
    return _render("module_script", path=script, imported=imported)


@register.simple_tag
def style_sheets(name: str) -> str:
    """Load the style sheets that are joined under this name."""
    return _render("style_sheets", sheets=choose_sheets(name))


@register.simple_tag
def progress_bar(done: int | None, total: int | None, *, labelledby: str = "", label: str = "") -> str:
    """Print a progress bar; without a total it shows only that something runs."""
    return _render("progress_bar", done=done, total=total, labelledby=labelledby, label=label)


@register.simple_tag
def single_sign_on_name() -> str:
    """Return the name of the organization's login, "" without one."""
    return settings.SSO.name if settings.SSO else ""


@register.filter
def to_json(value: Any) -> str:
    """Return a value for a `data-*` attribute that a script reads."""
    return json.dumps(value)


@register.simple_tag
def rating_mark(rating: Any, *, css: str = "mark--full", is_decorative: bool = False) -> str:
    """Print the mark of a rating, or a dot without one. Use a decorative mark next to text that names the rating."""
    name, label = _MARKS.get(rating, ("", ""))
    return _render("rating_mark", name=name, label=label, css=css, is_decorative=is_decorative)


def _render(component: str, **context: Any) -> str:
    return loader.get_template(f"components/{component}.html").render(context)


def _parts(context: Context) -> dict[str, Any]:
    """Parts that inner tags leave for the tag around them, per template being rendered."""
    return cast("dict[str, Any]", context.render_context.dicts[-1])
