"""Create the secret key of a data folder once, readable only by its owner."""

import contextlib
import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def load_secret_key(folder: Path, *, may_make_one: bool) -> str:
    if not may_make_one:
        raise ImproperlyConfigured("SECRET_KEY is not set. Set SECRET_KEY_FILE to a file with 50 random characters.")
    file = folder / "secret_key"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _read_key(file) or _create_key(file)
    except OSError as error:
        raise ImproperlyConfigured(
            f"The data folder {folder} cannot be used: {error.strerror}. Choose another with --data or STEPMARK_DATA."
        ) from error


def _read_key(file: Path) -> str:
    return file.read_text().strip() if file.exists() else ""


def _create_key(file: Path) -> str:
    """Write the key to a draft and link it to its name, so that two processes that start together share one key."""
    draft = file.with_name(f"secret_key.{secrets.token_hex(8)}")
    draft.touch(mode=0o600)
    draft.write_text(secrets.token_urlsafe(50))
    with contextlib.suppress(FileExistsError):
        os.link(draft, file)
    draft.unlink()
    return _read_key(file)
