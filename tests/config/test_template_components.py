"""The tags for repeated markup."""

import re

import pytest
from django import forms
from django.template import Context, Template
from django.test.utils import override_script_prefix
from django.urls import NoReverseMatch


def render(source: str, **context: object) -> str:
    return re.sub(r"\s+", " ", Template(source).render(Context(context)))


def test_panel_names_its_section_by_its_title() -> None:
    html = render(
        '{% panel title id="files" css="panel--table" note="why" %}<b>{{ n }}</b>{% endpanel %}', n="<1>", title="A & B"
    )
    assert '<section class="panel panel--table" aria-labelledby="files">' in html
    assert '<h2 id="files">A &amp; B</h2>' in html
    assert '<span class="what">why</span>' in html
    assert "<b>&lt;1&gt;</b>" in html


def test_panel_can_be_the_page_title() -> None:
    assert '<h1 id="x">T</h1>' in render('{% panel "T" id="x" level=1 %}{% endpanel %}')


def test_panel_head_belongs_to_its_own_panel() -> None:
    html = render(
        '{% panel "A" id="a" %}{% panel_head %}<i>head</i>{% endpanel_head %}1{% endpanel %}'
        '{% panel "B" id="b" %}2{% endpanel %}'
    )
    first, second = html.split("</section>")[:2]
    assert first.index("<i>head</i>") < first.index("1 ")
    assert "<i>" not in second


def test_data_table_lists_its_columns_once() -> None:
    html = render(
        '{% data_table labelledby="t" %}{% column "A" %}{% column "B" css="r" %}{% column "C" is_hidden=True %}'
        "{% for n in rows %}<tr><td>{{ n }}</td></tr>{% endfor %}{% enddata_table %}"
        '{% data_table label="other" %}{% column "D" %}{% enddata_table %}',
        rows=[1, 2],
    )
    first, second = html.split("</table>")[:2]
    assert first.count("<th ") == 3
    assert second.count("<th ") == 1
    assert 'class="r"' in first
    assert '<span class="sr">C</span>' in first
    assert first.count("<tr><td>") == 2
    assert 'aria-labelledby="t"' in first
    assert 'aria-label="other"' in second


class ComponentForm(forms.Form):
    text = forms.CharField(required=False, help_text="why")
    secret = forms.CharField(widget=forms.PasswordInput)
    yes = forms.BooleanField()
    many = forms.MultipleChoiceField(choices=[("a", "A")], widget=forms.CheckboxSelectMultiple)


def test_field_connects_label_help_and_errors() -> None:
    form = ComponentForm({"text": "x"})
    html = render("{% field form.secret %}{% field form.text %}", form=form)
    assert 'for="id_secret"' in html
    assert 'id="id_secret_error"' in html
    assert 'data-reveal="id_secret"' in html
    assert 'id="id_text_helptext"' in html


@pytest.mark.parametrize(("name", "part"), [("yes", 'class="check"'), ("many", "<fieldset"), ("text", "<label for")])
def test_field_fits_its_widget(name: str, part: str) -> None:
    assert part in render("{% field field %}", field=ComponentForm()[name])


def test_field_marks_only_what_may_stay_empty() -> None:
    form = ComponentForm()
    assert '<span class="muted">' in render("{% field f.text %}", f=form)
    assert '<span class="muted">' not in render("{% field f.text is_choice=True %}", f=form)
    assert '<span class="muted">' not in render("{% field f.secret %}", f=form)


def test_post_button_carries_the_token() -> None:
    html = render('{% post_button "/x" "Go" subject="row 3" %}', csrf_token="t0k3n")
    assert 'action="/x"' in html
    assert 'value="t0k3n"' in html
    assert '<span class="sr"> row 3</span>' in html


@pytest.mark.parametrize(("rating", "css"), [(-1, "mark--neg"), (0, "mark--neu"), (1, "mark--pos")])
def test_rating_mark_has_a_shape_for_each_rating(rating: int, css: str) -> None:
    html = render("{% rating_mark r %}", r=rating)
    assert css in html
    assert 'role="img"' in html
    assert 'aria-hidden="true"' in render("{% rating_mark r is_decorative=True %}", r=rating)


def test_missing_rating_is_text() -> None:
    assert "<svg" not in render("{% rating_mark r %}", r=None)


def test_address_is_escaped_kept_or_missing() -> None:
    for _ in range(2):  # the second one is remembered
        assert render('{% url "dashboard:trace" slug 7 %}', slug="a") == "/projects/a/traces/7/"
    assert render('{% url "dashboard:trace" slug=slug trace=7 %}', slug="b") == "/projects/b/traces/7/"
    assert render('{% url "nowhere" 1 as address %}[{{ address }}]') == "[]"
    with pytest.raises(NoReverseMatch):
        render('{% url "nowhere" 1 %}')


def test_remembered_address_has_the_prefix_of_its_request() -> None:
    for prefix, start in (("/", "/projects"), ("/below/", "/below/projects"), ("/", "/projects")):
        with override_script_prefix(prefix):
            assert render('{% url "dashboard:trace" slug 7 %}', slug="c") == f"{start}/c/traces/7/"
