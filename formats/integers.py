"""Numbers as addresses and forms name things by them. Pure."""

MAX_DIGITS = 18  # the most that a key of the database can have, whatever they are


def parse_integer(text: str | None, *, digits: int = MAX_DIGITS) -> int | None:
    """The number, or None for what names nothing: other signs, other alphabets, more digits than there are things."""
    if not text or len(text) > digits or not text.isascii() or not text.isdecimal():
        return None
    return int(text)
