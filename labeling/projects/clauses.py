"""The clauses of a guideline, which ratings can cite: its headings, with their numbers and texts. Pure.

A heading that begins with a number keeps it. The others are numbered by their place: 1, 1.1, 1.2, 2. A single heading
above all others is the title and not a clause.
"""

import hashlib
import re
from collections.abc import Container
from functools import cache
from typing import NamedTuple

from markdown_it import MarkdownIt

MAX_CODE_LENGTH = 40
MAX_TITLE_LENGTH = 200
EXCERPT_LENGTH = 160  # characters of the text that raters see while they search
_DIGEST_LENGTH = 16
_OWN_NUMBER = re.compile(r"(?P<sign>§\s*)?(?P<number>\d+(?:\.\d+)*|[A-Z](?:\.\d+)+)(?P<end>[.):])?\s+(?P<title>\S.*)")


class Clause(NamedTuple):
    code: str  # its number, stored with the rating
    title: str
    digest: str  # of the title and the text, without those of its subclauses
    excerpt: str = ""


class _OpenHeading(NamedTuple):
    level: int
    number: int  # among the headings of its level
    code: str


class _Heading(NamedTuple):
    level: int
    text: str
    first_line: int
    end_line: int


def parse_clauses(markdown: str) -> tuple[Clause, ...]:
    """Return the clauses of a guideline in their order. Their numbers are unique."""
    headings = _list_headings(markdown)
    if len(headings) > 1 and all(each.level > headings[0].level for each in headings[1:]):
        headings = headings[1:]  # the first one is the title
    lines = markdown.splitlines()
    ends = [*(each.first_line for each in headings[1:]), len(lines)][: len(headings)]
    clauses: dict[str, Clause] = {}
    outer: list[_OpenHeading] = []  # the headings that contain the next one
    for heading, end in zip(headings, ends, strict=True):
        number = 1
        while outer and outer[-1].level >= heading.level:
            number = outer.pop().number + 1
        place = f"{outer[-1].code}.{number}" if outer else str(number)
        code, title = _read_number(heading.text, place)
        code = _make_unique(code, clauses)
        outer.append(_OpenHeading(heading.level, number, code))
        text = " ".join(" ".join(lines[heading.end_line : end]).split())
        excerpt = text[:EXCERPT_LENGTH].strip()
        clauses[code] = Clause(code, title[:MAX_TITLE_LENGTH], digest_clause(title, text), excerpt)
    return tuple(clauses.values())


def _read_number(text: str, place: str) -> tuple[str, str]:
    """Return the number and the title of a heading. A plain number such as that of "30 days" may belong to the title,
    so it counts only at its own place."""
    found = _OWN_NUMBER.fullmatch(text)
    if not found or len(found["number"]) > MAX_CODE_LENGTH:
        return place[:MAX_CODE_LENGTH], text
    is_marked = found["sign"] or found["end"] or "." in found["number"] or found["number"] == place
    return (found["number"], found["title"]) if is_marked else (place, text)


def _make_unique(code: str, taken: Container[str]) -> str:
    unique, number = code, 2
    while unique in taken:
        unique = f"{code}-{number}"
        number += 1
    return unique


def digest_clause(title: str, text: str) -> str:
    """Return the digest of a clause. It does not depend on the number and on white space."""
    content = "\n".join(" ".join(part.split()) for part in (title, text))
    return hashlib.sha256(content.encode()).hexdigest()[:_DIGEST_LENGTH]


def _list_headings(markdown: str) -> list[_Heading]:
    tokens = _parser().parse(markdown)
    return [
        _Heading(int(token.tag[1:]), " ".join(tokens[at + 1].content.split()), *token.map)
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.map and token.level == 0 and tokens[at + 1].content.strip()
    ]


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False})
