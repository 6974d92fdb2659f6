"""Start the whole platform on one machine and keep it running.

This package runs before anything is installed, so it uses only the standard library. The exceptions are `preload` and
`prepare`.
"""


class StartupError(Exception):
    """The platform cannot start for a reason that the user can fix. The message is one line."""
