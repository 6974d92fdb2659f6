"""Make a title of a text: one line of plain characters, for lists that do not typeset formulas.

Formulas are found by the same rule as on the pages (static/js/work/rendering.js), so "$5 and $6" stays a price. Source
that cannot be converted is left out. No text raises an error.
"""

import re

from formats import latex

MAX_LENGTH = 120
_READ_CHARACTERS = 1500  # a title is made of the beginning of a text
_BOXED = r"\\boxed\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\}"
_LINES = r"(?:equation|align|alignat|gather)\*?"
_DISPLAYED = rf"\$\$(.+?)\$\$|\\\[(.+?)\\\]|(\\begin\{{{_LINES}\}}.*?\\end\{{{_LINES}\}})"
_IN_LINE = rf"\\\((.+?)\\\)|\$(?!\s)((?:\\.|[^$\\\n]|\n(?!\n))+?)(?<![\s\\])\$(?!\d)|({_BOXED})"
_FORMULA = re.compile(f"{_DISPLAYED}|{_IN_LINE}", re.DOTALL)
# A formula whose end was cut off.
_UNENDED = re.compile(r"(?:\$\$?|\\\[|\\\()(?!\s)([^$]*\\[^$]*)\Z", re.DOTALL)
_FIGURE = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)
_MARKS = re.compile(r"```[^\n]*|`|\*\*")
_ESCAPED = re.compile(r"\\([$%&#_])")
_SPACE = re.compile(r"\s+")
_PUNCTUATED = re.compile(r" ([,.;:?])(?=\s|\Z)")


def make_title(text: str, length: int = MAX_LENGTH) -> str:
    source = _FIGURE.sub(" ", text[:_READ_CHARACTERS])
    out, end = [], 0
    for match in _FORMULA.finditer(source):
        one, two, three, *in_line = match.groups()
        displayed = one or two or three
        formula = latex.latex_to_text(displayed or next(group for group in in_line if group))
        out += [_strip_marks(source[end : match.start()]), f" {formula} " if displayed else formula]
        end = match.end()
    rest = source[end:]
    unended = _UNENDED.search(rest)
    out.append(_strip_marks(rest[: unended.start()] if unended else rest))
    if unended:
        out.append(latex.latex_to_text(unended[1]))
    return _shorten(_PUNCTUATED.sub(r"\1", _SPACE.sub(" ", "".join(out))).strip(), length)


def _strip_marks(text: str) -> str:
    return _ESCAPED.sub(r"\1", _MARKS.sub("", text))


def _shorten(line: str, length: int) -> str:
    """Shorten a line, at the end of a word if one is near."""
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    word = cut.rfind(" ")
    return (cut[:word] if word > length * 0.7 else cut).rstrip(" ,;:") + "…"
