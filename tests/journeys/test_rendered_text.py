"""How the work page shows texts: Markdown, folded outputs, long texts. The modules run without a trace."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page

from tests import factories
from tests.journeys.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)

MARKDOWN = """async (sources) => {
  const { renderMarkdown } = await import('/static/js/work/markdown.js');
  return sources.map((source) => {
    const box = document.createElement('div');
    box.append(renderMarkdown(source));
    return box.innerHTML.replaceAll(/ class="[^"]*"| tabindex="0"| role="group"/g, '');
  });
}"""

RENDERED = [
    ("**Step 1:** then *so*", "<p><b>Step 1:</b> then <i>so</i></p>"),
    ("# Policy\nRules", "<p>Policy</p><p>Rules</p>"),
    ("3. c\n4. d", '<ol><li data-mark="3."><p>c</p></li><li data-mark="4."><p>d</p></li></ol>'),
    ("- a\n  - b", '<ul><li data-mark="–"><p>a</p><ul><li data-mark="–"><p>b</p></li></ul></li></ul>'),
    (
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "<div><table><thead><tr><th>a</th><th>b</th></tr></thead>"
        "<tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>",
    ),
    ("> said\n> so", "<blockquote><p>said\nso</p></blockquote>"),
    ("```py\n**x**\n```", "<pre>**x**</pre>"),
    ("`a*b*c` costs \\$5", "<p><code>a*b*c</code> costs $5</p>"),
    ("[x](https://e.org)", "<p><span>x<span> (https://e.org)</span></span></p>"),
]
# What may be a calculation, a name or markup in another language stays as it is.
UNCHANGED = [
    "2*3*4 = 24 and (2*3)*4",
    "a * b * c",
    "call __init__ of snake_case_name",
    "x = 5\n- 3 = 2",
    "if x\n> 3 then",
    "in the year\n1984. So",
    "<img src=x onerror=alert(1)> & <script>alert(1)</script>",
    "[x](javascript:alert(1)) ![y](https://e.org/y.png)",
]


@pytest.fixture
def page(visit: Visit) -> Page:
    return visit(factories.make_user(), "/")


def test_markdown_is_rendered(page: Page) -> None:
    assert page.evaluate(MARKDOWN, [source for source, _ in RENDERED]) == [html for _, html in RENDERED]


def test_markdown_changes_no_calculation_and_makes_no_link_or_image(page: Page) -> None:
    shown = page.evaluate(
        """async (sources) => {
          const { renderMarkdown } = await import('/static/js/work/markdown.js');
          return sources.map((source) => {
            const box = document.createElement('div');
            box.append(renderMarkdown(source));
            return [box.textContent, box.querySelectorAll('a, img, script, [href], [src]').length];
          });
        }""",
        UNCHANGED,
    )
    assert [active for _, active in shown] == [0] * len(UNCHANGED)
    assert [text for text, _ in shown[:-1]] == UNCHANGED[:-1]
    assert "javascript:alert(1)" in shown[-1][0]  # the address is text


def test_formulas_inside_markdown_are_kept_whole(page: Page) -> None:
    source = "**So** $a_1 * b_1 * c$:\n\n- \\[\n- x + 1\n\\]\n\n`$5`"
    texs = page.evaluate(
        """async (source) => {
          const { renderMarkdown } = await import('/static/js/work/markdown.js');
          const box = document.createElement('div');
          box.append(renderMarkdown(source));
          return [[...box.querySelectorAll('[data-tex]')].map((each) => each.dataset.tex), box.textContent];
        }""",
        source,
    )
    assert texs[0] == ["a_1 * b_1 * c", "\n- x + 1\n"]
    assert "`$5`" not in texs[1]


def fold(page: Page, text: str, **options: Any) -> dict[str, Any]:
    return page.evaluate(  # type: ignore[no-any-return]  # evaluate returns Any
        """async ([text, options]) => {
          const { foldOutput } = await import('/static/js/work/folds.js');
          const node = foldOutput(text, (name) => name, options);
          const pre = node.matches('pre') ? node : node.querySelector('pre');
          document.body.append(node);
          const shown = [...pre.children].filter((each) => each.matches('.block')).map((each) => each.textContent);
          const used = [...pre.querySelectorAll('.used')].map((each) => each.textContent);
          const hidden = pre.querySelectorAll('.gap').length;
          const all = [...pre.children].filter((each) => !each.matches('.gap__mark'));
          const whole = all.flatMap((each) => each.matches('.gap') ? [...each.children] : [each]);
          const { size } = node.dataset;
          return { shown, used, hidden, size, whole: whole.map((each) => each.textContent).join('\\n') };
        }""",
        [text, options],
    )


def test_output_is_folded_around_the_lines_that_the_next_step_uses(page: Page) -> None:
    lines = [f"row {n}: flight HAT{n:03} costs {100 + n}" for n in range(200)]
    folded = fold(page, "\n".join(lines), next="I book flight HAT077.")
    assert folded["used"] == [lines[77]]
    assert lines[75:80] == folded["shown"][4:9]
    assert folded["shown"][:4] == lines[:4]
    assert folded["shown"][-6:] == lines[-6:]
    assert folded["whole"] == "\n".join(lines)  # nothing is lost


def test_size_of_formatted_output_is_that_of_its_source(page: Page) -> None:
    source = json.dumps(dict.fromkeys((f"field {n}" for n in range(60)), "value"), separators=(",", ":"))
    folded = fold(page, json.dumps(json.loads(source), indent=2), source=source)
    assert folded["size"] == f"{len(source) / 1000:.1f} kB"


def test_short_output_is_not_folded_and_huge_one_is_laid_out_in_blocks(page: Page) -> None:
    assert fold(page, "\n".join(["line"] * 24))["hidden"] == 0
    huge = fold(page, "\n".join(f"record {n} of the output" for n in range(10_000)))
    assert huge["hidden"] == 1
    assert huge["whole"].count("record") == 10_000
    blocks = page.locator(".gap .block")
    assert blocks.count() > 40
    assert max(len(text) for text in blocks.all_text_contents()) < 9_000


def test_hostile_texts_do_not_freeze_the_page(page: Page) -> None:
    """Unclosed openings once took the square of the text's length: 27 seconds for the first of these."""
    texts = ["\\$" * 100_000, "`" * 200_000, "\\(" * 100_000, "\\[" * 50_000, "$a " * 60_000, "**a " * 50_000]
    milliseconds = page.evaluate(
        """async (texts) => {
          const { renderMarkdown } = await import('/static/js/work/markdown.js');
          const { problemBody } = await import('/static/js/work/rendering.js');
          const began = performance.now();
          for (const text of texts) renderMarkdown(text), problemBody(text);
          return performance.now() - began;
        }""",
        texts,
    )
    assert milliseconds < 20_000


def test_escaped_dollars_and_line_breaks_are_no_openings(page: Page) -> None:
    sources = ["\\$5 and $x$", "a \\\\$y$", "\\[ a \\\\[2pt] b \\]", "\\(f(x) \\\\ g\\)", "\\(a \\(b\\)"]
    found = page.evaluate(
        """async (sources) => {
          const { splitMath } = await import('/static/js/work/nodes.js');
          return sources.map((source) => splitMath(source).filter((each) => each.tex).map((each) => each.tex));
        }""",
        sources,
    )
    assert found == [["x"], ["y"], [" a \\\\[2pt] b "], ["f(x) \\\\ g"], ["b"]]
