"""Parse the ids in URLs and forms."""

MAX_DIGITS = 18  # any number with this many digits fits a database key


def parse_integer(text: str | None, *, digits: int = MAX_DIGITS) -> int | None:
    """Return the number, or None unless the text is ASCII digits that fit a database key."""
    if not text or len(text) > digits or not text.isascii() or not text.isdecimal():
        return None
    return int(text)
