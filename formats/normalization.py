"""When two writings of a text are the same text: NFKC, lower case, letters and digits only."""

import hashlib
import unicodedata

LISTED_DIGITS = 32  # hex digits, as public lists of benchmark problems write them


def normalize_text(text: str) -> str:
    """What stays of a text when spelling, spacing and marks do not count."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).lower()))


def digest_normalized(text: str) -> str:
    """The same for every writing of a text: 64 hex digits, of which lists of benchmark problems hold the first 32."""
    return hashlib.sha256(normalize_text(text).encode()).hexdigest()
