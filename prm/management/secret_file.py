"""Read a secret from a file, to keep it out of the shell history and the process list."""

from pathlib import Path

from django.core.management.base import CommandError


def read_secret(file: Path | None) -> str:
    """Return the file's content, or "" without a file."""
    try:
        return file.read_text().strip() if file else ""
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"Cannot read the secret file: {error}") from None
