"""Render Markdown of a project as safe HTML: tags and attributes outside the allow-list are removed."""

from functools import cache, lru_cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

_TAGS = {
    *("a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "div", "dl", "dt", "em", "h2", "h3", "h4", "h5", "h6"),
    *("hr", "i", "li", "ol", "p", "pre", "s", "section", "span", "strong", "sub", "sup", "table", "tbody", "td", "th"),
    *("thead", "tr", "ul"),
}
_ATTRIBUTES = {
    "a": {"href", "title", "id", "aria-label"},
    "span": {"class", "data-tex"},
    "div": {"class", "data-tex", "data-display", "tabindex", "role"},
    "ol": {"start"},
    "li": {"id"},
    "sup": {"class"},
    "section": {"class"},
    "th": {"scope"},
}

# A line of code can be wider than the page, so the box must be scrollable by keyboard.
_SCROLLING_PRE = '<pre tabindex="0" role="group">'


@lru_cache(maxsize=16)  # pages of a project render the same guideline again and again
def to_html(markdown: str) -> str:
    """Render Markdown. Headings are lowered by one level, because the page has its own first one. Formulas show their
    source until a script typesets them."""
    html = nh3.clean(
        _markdown().render(markdown),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )
    return html.replace("<pre>", _SCROLLING_PRE)


@cache
def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.use(footnote_plugin).use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    parser.add_render_rule("math_inline", _formula)
    parser.add_render_rule("math_inline_double", _display)
    parser.add_render_rule("math_block", _display)
    parser.add_render_rule("heading_open", _heading)
    parser.add_render_rule("heading_close", _heading)
    parser.add_render_rule("table_open", _table)
    parser.add_render_rule("table_close", _table)
    parser.add_render_rule("th_open", _header_cell)
    return parser


def _formula(self: RendererProtocol, tokens: list[Token], at: int, options: object, env: object) -> str:
    source = nh3.clean_text(tokens[at].content)
    return f'<span class="tex" data-tex="{source}">{source}</span>'


def _display(self: RendererProtocol, tokens: list[Token], at: int, options: object, env: object) -> str:
    source = nh3.clean_text(tokens[at].content.strip())
    return f'<span class="tex tex--display" data-tex="{source}">{source}</span>'


def _heading(self: RendererProtocol, tokens: list[Token], at: int, options: object, env: object) -> str:
    level = min(6, int(tokens[at].tag[1:]) + 1)
    return f"<{'/' * (tokens[at].nesting < 0)}h{level}>" + "\n" * (tokens[at].nesting < 0)


def _table(self: RendererProtocol, tokens: list[Token], at: int, options: object, env: object) -> str:
    """Wrap wide tables in a box that can be scrolled by keyboard."""
    if tokens[at].nesting > 0:
        return '<div class="tablewrap" tabindex="0" role="group"><table>\n'
    return "</table></div>\n"


def _header_cell(self: RendererProtocol, tokens: list[Token], at: int, options: object, env: object) -> str:
    return '<th scope="col">'
