"""Guidelines render as intended, without anything unsafe."""

from html.parser import HTMLParser

import pytest

from labeling.projects import guidelines
from labeling.projects.guidelines import rendering


class Elements(HTMLParser):
    """Parse the HTML like a browser: elements with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, name) for name, _ in attrs} or {(tag, "")}


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![x](https://elsewhere.example/pixel.png)",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>1</script>)",
        '<a href="#" onclick="go()">x</a>',
        "<style>p {}</style>",
        "<iframe src='//elsewhere.example'></iframe>",
        "$\\text{<img src=x onerror=alert(1)>}$",
        '$"><script>alert(1)</script>$',
    ],
)
def test_to_html_removes_scripts_and_external_content(hostile: str) -> None:
    elements = Elements()
    elements.feed(rendering.to_html(hostile))
    assert elements.found <= {("p", ""), ("a", "rel"), ("span", "class"), ("span", "data-tex")}


def test_to_html_keeps_formulas_with_their_source() -> None:
    html = rendering.to_html("So $a*b*c < 4$, which costs $5 and $6.\n\n$$\nx_1 = 2\n$$\n")
    assert '<span class="tex" data-tex="a*b*c&lt;4">' in html.replace(" < ", "<").replace(" &lt; ", "&lt;")
    assert "$5 and $6." in html
    assert 'class="tex tex--display" data-tex="x_1 = 2"' in html


def test_to_html_wraps_tables_and_lowers_headings() -> None:
    html = rendering.to_html("# A\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    assert "<h2>A</h2>" in html
    assert '<div class="tablewrap" tabindex="0" role="group"><table>' in html
    assert html.count('<th scope="col">') == 2


@pytest.mark.parametrize("code", ["```py\n<pre>x\n```", "    <pre>x\n"])
def test_scrolling_code_is_reachable_by_keyboard(code: str) -> None:
    assert rendering.to_html(code) == '<pre tabindex="0" role="group"><code>&lt;pre&gt;x\n</code></pre>\n'


@pytest.mark.parametrize("name", guidelines.TEMPLATES)
def test_templates_come_with_worked_examples(name: str) -> None:
    html = rendering.to_html(guidelines.load_guideline_template(name))
    assert html.startswith("<h2>")
    for rating in ("positive", "neutral", "negative"):
        assert f"<td>{rating}</td>" in html
    assert "Example" in html


def test_unknown_template_is_refused() -> None:
    with pytest.raises(guidelines.GuidelineTemplateUnknown) as refusal:
        guidelines.load_guideline_template("../../../etc/passwd")
    assert refusal.value.template == "../../../etc/passwd"
