"""How many words differ between two texts: the Levenshtein distance over words. Pure.

V. I. Levenshtein (1966), "Binary codes capable of correcting deletions, insertions, and reversals".
"""

import re

_WORD = re.compile(r"\w+|[^\w\s]")


def split_words(text: str) -> list[str]:
    """Return words and signs. Spaces do not count."""
    return _WORD.findall(text)


def count_changed_words(before: str, after: str) -> int:
    """Return the smallest number of words to insert, delete or replace."""
    first, second = split_words(before), split_words(after)
    row = list(range(len(second) + 1))
    for number, word in enumerate(first, start=1):
        diagonal, row[0] = row[0], number
        for place, other in enumerate(second, start=1):
            diagonal, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, diagonal + (word != other))
    return row[-1]
