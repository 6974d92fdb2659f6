"""Parse the ids in URLs and forms."""


def parse_integer(text: str | None, *, digits: int = 18) -> int | None:
    """Return the number, or None unless the text is ASCII digits. Any number of 18 digits fits a database key."""
    if not text or len(text) > digits or not text.isascii() or not text.isdecimal():
        return None
    return int(text)
