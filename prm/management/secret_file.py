"""A secret that a command reads from a file, so that it stands in no history and no list of processes."""

from pathlib import Path

from django.core.management.base import CommandError


def read_secret(file: Path | None) -> str:
    """Nothing where no file is named."""
    try:
        return file.read_text().strip() if file else ""
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"The secret cannot be read: {error}") from None
