"""Templates contain no inline code, and all their text is translatable."""

import re
from collections.abc import Iterator

from tests.conventions.rule import ConventionRule, RuleExample, RuleFinding

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
# Text that is not translated.
NAMES = {"Stepmark", "nbsp", "middot", "ndash", "mdash", "times", "hellip", "larr", "rarr", "copy", "amp", "PRM"}


def is_template(path: str) -> bool:
    return path.endswith(".html") and "templates/" in path


def is_fragment(path: str) -> bool:
    return is_template(path) and path.rpartition("/")[2].startswith("_")


def strip_comments(text: str) -> str:
    """Return the text without comments, with the same number of lines."""
    return COMMENTS.sub(lambda match: "\n" * match[0].count("\n"), text)


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def find_inline_code(path: str, text: str) -> Iterator[RuleFinding]:
    text = strip_comments(text)
    for pattern, what in INLINE:
        for match in pattern.finditer(text):
            yield RuleFinding(match[0].strip(), line_of(text, match.start()), what)


def find_rootless_templates(path: str, text: str) -> Iterator[RuleFinding]:
    if not re.search(r"\shx-(get|post|trigger)=", text):
        return  # included, never swapped
    root = ROOT.search(TAGS.sub(_inner, strip_comments(text)))
    if root is None or not re.search(r"\sid=", root[0]):
        yield RuleFinding("root", 1, "htmx swaps the whole fragment: its root element needs an id")


def _inner(match: re.Match[str]) -> str:
    """Replace a tag inside an attribute by a letter, so that `id="step-{{ n }}"` stays an attribute."""
    return "x"


def find_forms_without_token(path: str, text: str) -> Iterator[RuleFinding]:
    text = strip_comments(text)
    for match in re.finditer(r"<form\b[^>]*method=.post.*?</form>", text, re.S | re.I):
        if "csrf_token" not in match[0]:
            yield RuleFinding("form", line_of(text, match.start()), "a form that posts needs {% csrf_token %}")


def find_untranslated_text(path: str, text: str) -> Iterator[RuleFinding]:
    seen = strip_comments(text)
    for pattern in (BLOCKS, CODE, TAGS, ELEMENTS):
        seen = pattern.sub(lambda match: "\n" * match[0].count("\n"), seen)
    for number, line in enumerate(seen.splitlines(), start=1):
        words = [word for word in WORDS.findall(line) if word not in NAMES]
        if words:
            yield RuleFinding(words[0], number, f"not translatable: {line.strip()[:60]!r}")


def find_doubled_percent_signs(path: str, text: str) -> Iterator[RuleFinding]:
    text = strip_comments(text)
    for match in re.finditer(r"""\b_\(("[^"]*%[^"]*"|'[^']*%[^']*')\)""", text):
        yield RuleFinding(match[1], line_of(text, match.start()), "Django doubles a percent sign in _()")


PAGE = "templates/annotate/work.html"
FRAGMENT = "templates/annotate/_step.html"

RULES = (
    ConventionRule(
        name="templates carry no code inline",
        looks_at=is_template,
        find=find_inline_code,
        good=(RuleExample(PAGE, '<script type="module" src="{% static "js/work.js" %}"></script><p class="on">1</p>'),),
        bad=(
            RuleExample(PAGE, "<script>go()</script>"),
            RuleExample(PAGE, "<p style='color: red'>1</p>"),
            RuleExample(PAGE, "<style>p {}</style>"),
            RuleExample(PAGE, '<a href="#" onclick="go()">1</a>'),
            RuleExample(PAGE, '<a href="javascript:go()">1</a>'),
        ),
    ),
    ConventionRule(
        name="the root of a swapped fragment has an id",
        looks_at=is_fragment,
        find=find_rootless_templates,
        good=(
            RuleExample(FRAGMENT, '{% load i18n %}{# why #}\n<li id="step-{{ n }}" hx-get="x"><b>1</b></li>'),
            RuleExample(FRAGMENT, "<li><b>1</b></li>"),
        ),
        bad=(RuleExample(FRAGMENT, '{% load i18n %}<li hx-get="x"><b id="x">1</b></li>'),),
    ),
    ConventionRule(
        name="forms that post carry the CSRF token",
        looks_at=is_template,
        find=find_forms_without_token,
        good=(RuleExample(PAGE, '<form method="post">{% csrf_token %}<button>1</button></form>'),),
        bad=(RuleExample(PAGE, '<form method="post"><button>1</button></form>'),),
    ),
    ConventionRule(
        name="texts of template tags have no percent sign",
        looks_at=is_template,
        find=find_doubled_percent_signs,
        good=(RuleExample(PAGE, '{% column _("Interval") %}<p>{% translate "95%" %}</p>'),),
        bad=(RuleExample(PAGE, '{% column _("95 % interval") %}'),),
    ),
    ConventionRule(
        name="template text is translatable",
        looks_at=is_template,
        find=find_untranslated_text,
        good=(
            RuleExample(PAGE, '<title>Stepmark</title><p>{% translate "Nothing left" %} · {{ n }}</p>'),
            RuleExample(PAGE, "{% blocktranslate %}Nothing left for {{ name }}{% endblocktranslate %}"),
        ),
        bad=(RuleExample(PAGE, "<p>Nothing left</p>"),),
    ),
)
