"""Reads the environment. A value that cannot be used stops the start and says what to write instead."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def read_text(name: str, default: str | None = None) -> str:
    """The value of NAME, or the content of the file that NAME_FILE points to (how container secrets arrive)."""
    value, file = os.environ.get(name), os.environ.get(f"{name}_FILE")
    if value and file:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set: keep one of them.")
    if file:
        return _read_secret_file(name, Path(file))
    if value:
        return value
    if default is None:
        raise ImproperlyConfigured(f"{name} is not set. Set {name}, or {name}_FILE to a file that holds it.")
    return default


def read_bool(name: str, *, default: bool) -> bool:
    value = read_text(name, "yes" if default else "no").lower()
    if value in {"1", "yes", "true", "on"}:
        return True
    if value in {"0", "no", "false", "off"}:
        return False
    raise ImproperlyConfigured(f"{name}={value!r} is neither yes nor no: write yes or no.")


def read_int(name: str, *, default: int, least: int = 0) -> int:
    value = read_text(name, str(default))
    if not value.isdecimal() or int(value) < least:
        raise ImproperlyConfigured(f"{name}={value!r} is not a whole number from {least} up.")
    return int(value)


def read_list(name: str, default: str) -> list[str]:
    """A list written with commas."""
    return [word.strip() for word in read_text(name, default).split(",") if word.strip()]


def read_mapping(name: str) -> dict[str, str]:
    """Values by their own names, written with commas: `one=…,two=…`."""
    found = {}
    for word in read_list(name, ""):
        key, _, value = (part.strip() for part in word.partition("="))
        if not key or not value:
            raise ImproperlyConfigured(f"{name}: {word!r} is not of the form name=value.")
        found[key] = value
    return found


def read_database(name: str) -> dict[str, Any] | None:
    """Return DATABASE_URL as Django's settings, or None if it is not set. `?host=/folder` names a socket's folder."""
    url = read_text(name, "")
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"} or not parts.path.strip("/"):
        raise ImproperlyConfigured(
            f"{name} must look like postgresql://user:password@host:5432/name;"
            " leave it out for the embedded PostgreSQL."
        )
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or options.pop("host", ""),
        "PORT": parts.port or "",
        "OPTIONS": options,
    }


def _read_secret_file(name: str, file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name}_FILE={str(file)!r} cannot be read: {error.strerror}.") from error
