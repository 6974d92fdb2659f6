"""Patterns of what may be somebody's own: e-mail addresses, telephone numbers, keys.

A pattern is a suspicion, no proof: what it finds is counted, and masked or refused only where the lead asks for it.
"""

import re
from collections import Counter
from collections.abc import Iterable

_EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*\.[A-Za-z]{2,24}\b")
# International, or grouped as people write them: a bare row of digits is arithmetic.
_PHONE = re.compile(
    r"(?<![\w.$^{}()+*/=-])(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{2,4}(?:[ .-]?\d{2,4}){2,3}"
    r"|\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4})(?![\w.-]\d|\w)"
)
_KEY = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{40,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}"
    r"|hf_[A-Za-z0-9]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}|glpat-[A-Za-z0-9_-]{20,})"
    r"|-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"
)
_PATTERNS = {"email": _EMAIL, "phone": _PHONE, "key": _KEY}
_MASKS = {"email": "[e-mail]", "phone": "[telephone]", "key": "[key]"}
KINDS = tuple(_MASKS)
# Nearly every text has none of these. Each look begins with characters that are found fast.
_HINTS = ("@", "sk-", "gh", "AKIA", "AIza", "hf_", "xox", "glpat-", "PRIVATE KEY")
_NUMBER = re.compile(r"\+\d[\d .(-]{7}|-\d{3}")


def found(text: str) -> Counter[str]:
    """How many of each kind the text seems to hold."""
    if not _may_hold(text):
        return Counter()
    return Counter({kind: n for kind, pattern in _PATTERNS.items() if (n := sum(1 for _ in pattern.finditer(text)))})


def found_in(texts: Iterable[str]) -> Counter[str]:
    """The same of many texts together: one look decides for nearly all of them."""
    whole = list(texts)
    counts: Counter[str] = Counter()
    if _may_hold("\n".join(whole)):
        for text in whole:
            counts.update(found(text))
    return counts


def _may_hold(text: str) -> bool:
    return any(hint in text for hint in _HINTS) or _NUMBER.search(text) is not None


def mask(text: str) -> str:
    """The text with a word for each of them."""
    if not _may_hold(text):
        return text
    for kind, pattern in _PATTERNS.items():
        text = pattern.sub(_MASKS[kind], text)
    return text
