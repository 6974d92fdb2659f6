"""Normalize texts for comparison: NFKC, lower case, letters and digits only."""

import hashlib
import unicodedata

LISTED_DIGITS = 32  # hex digits of a digest in the lists of benchmark problems


def normalize_text(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).lower()))


def digest_normalized(text: str) -> str:
    """Return the SHA-256 of the normalized text as 64 hex digits."""
    return hashlib.sha256(normalize_text(text).encode()).hexdigest()
