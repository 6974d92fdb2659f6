"""Templates: pages and fragments, no code inline, every word translatable."""

import re
from collections.abc import Iterator

from tests.conventions.rule import Example, Finding, Rule

COMMENTS = re.compile(r"{#.*?#}|{%\s*comment\b.*?{%\s*endcomment\s*%}|<!--.*?-->", re.S)
BLOCKS = re.compile(r"{%\s*blocktranslate\b.*?{%\s*endblocktranslate\s*%}", re.S)
TAGS = re.compile(r"{%.*?%}|{{.*?}}", re.S)
CODE = re.compile(r"<(script|style|code|kbd|svg)\b.*?</\1>", re.S)
ELEMENTS = re.compile(r"""<(?:[^<>"']|"[^"]*"|'[^']*')*>""", re.S)
WORDS = re.compile(r"[^\W\d_]{2,}")
ROOT = re.compile(r"<[a-zA-Z][^>]*>", re.S)
INLINE = (
    (re.compile(r"<script\b(?![^>]*\bsrc=)", re.I), "inline script: the page runs under script-src 'self'"),
    (re.compile(r"<style\b", re.I), "inline style sheet"),
    (re.compile(r"\sstyle\s*=", re.I), "inline style"),
    (re.compile(r"\son[a-z]+\s*=", re.I), "inline event handler"),
    (re.compile(r"\shx-on\b|javascript:|\bjs:", re.I), "code in an attribute"),
)
# What stands between elements but is not for a translator.
NAMES = {"Stepmark", "nbsp", "middot", "ndash", "mdash", "times", "hellip", "larr", "rarr", "copy", "amp", "PRM"}


def is_template(path: str) -> bool:
    return path.endswith(".html") and "templates/" in path


def is_fragment(path: str) -> bool:
    return is_template(path) and path.rpartition("/")[2].startswith("_")


def bare(text: str) -> str:
    """Without comments, with as many lines as before."""
    return COMMENTS.sub(lambda match: "\n" * match[0].count("\n"), text)


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def inline(path: str, text: str) -> Iterator[Finding]:
    text = bare(text)
    for pattern, what in INLINE:
        for match in pattern.finditer(text):
            yield Finding(match[0].strip(), line_of(text, match.start()), what)


def rootless(path: str, text: str) -> Iterator[Finding]:
    root = ROOT.search(TAGS.sub(_inner, bare(text)))
    if root is None or not re.search(r"\sid=", root[0]):
        yield Finding("root", 1, "a fragment is swapped whole: its root element carries an id")


def _inner(match: re.Match[str]) -> str:
    """A tag inside an attribute leaves a letter there, so that `id="step-{{ n }}"` stays an attribute."""
    return "x"


def tokenless(path: str, text: str) -> Iterator[Finding]:
    text = bare(text)
    for match in re.finditer(r"<form\b[^>]*method=.post.*?</form>", text, re.S | re.I):
        if "csrf_token" not in match[0]:
            yield Finding("form", line_of(text, match.start()), "a form that posts carries {% csrf_token %}")


def untranslated(path: str, text: str) -> Iterator[Finding]:
    seen = bare(text)
    for pattern in (BLOCKS, CODE, TAGS, ELEMENTS):
        seen = pattern.sub(lambda match: "\n" * match[0].count("\n"), seen)
    for number, line in enumerate(seen.splitlines(), start=1):
        words = [word for word in WORDS.findall(line) if word not in NAMES]
        if words:
            yield Finding(words[0], number, f"not translatable: {line.strip()[:60]!r}")


PAGE = "templates/annotate/work.html"
FRAGMENT = "templates/annotate/_step.html"

RULES = (
    Rule(
        name="templates carry no code inline",
        looks_at=is_template,
        find=inline,
        good=(Example(PAGE, '<script type="module" src="{% static "js/work.js" %}"></script><p class="on">1</p>'),),
        bad=(
            Example(PAGE, "<script>go()</script>"),
            Example(PAGE, "<p style='color: red'>1</p>"),
            Example(PAGE, "<style>p {}</style>"),
            Example(PAGE, '<a href="#" onclick="go()">1</a>'),
            Example(PAGE, '<a href="javascript:go()">1</a>'),
        ),
    ),
    Rule(
        name="a fragment's root carries its id",
        looks_at=is_fragment,
        find=rootless,
        good=(Example(FRAGMENT, '{% load i18n %}{# why #}\n<li id="step-{{ step.position }}"><b>1</b></li>'),),
        bad=(Example(FRAGMENT, '{% load i18n %}<li><b id="x">1</b></li>'), Example(FRAGMENT, "{{ text }}")),
    ),
    Rule(
        name="forms that post carry their token",
        looks_at=is_template,
        find=tokenless,
        good=(Example(PAGE, '<form method="post">{% csrf_token %}<button>1</button></form>'),),
        bad=(Example(PAGE, '<form method="post"><button>1</button></form>'),),
    ),
    Rule(
        name="every word in a template goes through translation",
        looks_at=is_template,
        find=untranslated,
        good=(
            Example(PAGE, '<title>Stepmark</title><p>{% translate "Nothing left" %} · {{ n }}</p>'),
            Example(PAGE, "{% blocktranslate %}Nothing left for {{ name }}{% endblocktranslate %}"),
        ),
        bad=(Example(PAGE, "<p>Nothing left</p>"),),
    ),
)
