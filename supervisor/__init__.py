"""Starts the whole platform on one machine and keeps it running. Knows programs, not what they do.

It runs before anything is installed: all but `trunk` and what it loads (`prepare`, `web`, `background`) use
the standard library alone.
"""


class StartupError(Exception):
    """What the person who started us can put right. Its text is the one line that they are shown."""
