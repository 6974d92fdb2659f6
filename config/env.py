"""Read environment variables, and two values that the data folder supplies without one.

With an invalid value the process does not start, and the message names a valid value."""

import contextlib
import os
import re
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

DEFAULT_ORIGIN = "http://127.0.0.1:8000"


def read_text(name: str, default: str | None = None) -> str:
    """Return the value of NAME, or the content of the file named by NAME_FILE, as containers pass secrets."""
    value, file = os.environ.get(name), os.environ.get(f"{name}_FILE")
    if value and file:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set: keep one of them.")
    if file:
        return _read_secret_file(name, Path(file))
    if value:
        return value
    if default is None:
        raise ImproperlyConfigured(
            f"{name} is not set. Set {name}, or set {name}_FILE to a file that contains the value."
        )
    return default


def read_bool(name: str, *, default: bool) -> bool:
    value = read_text(name, "yes" if default else "no").lower()
    if value in {"1", "yes", "true", "on"}:
        return True
    if value in {"0", "no", "false", "off"}:
        return False
    raise ImproperlyConfigured(f"{name}={value!r} is not a boolean: use yes or no.")


def read_int(name: str, *, default: int, least: int = 0) -> int:
    value = read_text(name, str(default))
    if not value.isdecimal() or int(value) < least:
        raise ImproperlyConfigured(f"{name}={value!r} is not a whole number of at least {least}.")
    return int(value)


def read_list(name: str, default: str) -> list[str]:
    """Return a comma-separated list."""
    return [word.strip() for word in read_text(name, default).split(",") if word.strip()]


def read_mapping(name: str) -> dict[str, str]:
    """Return a comma-separated mapping: `one=…,two=…`."""
    mapping = {}
    for word in read_list(name, ""):
        key, _, value = (part.strip() for part in word.partition("="))
        if not key or not value:
            raise ImproperlyConfigured(f"{name}: {word!r} is not of the form name=value.")
        mapping[key] = value
    return mapping


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


class MailServer(NamedTuple):
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    security: str = ""  # "tls" from the start, "starttls", or none


def read_mail_server(name: str) -> MailServer:
    """Return a mail server, without host if it is not set: `smtp://user:password@host:587` uses STARTTLS, `smtps://`
    TLS from the start, and `smtp+plain://` none."""
    url = read_text(name, "")
    if not url:
        return MailServer()
    parts = urlsplit(url)
    security, port = {"smtp": ("starttls", 587), "smtps": ("tls", 465), "smtp+plain": ("", 25)}.get(
        parts.scheme, ("", 0)
    )
    if not port or not parts.hostname:
        raise ImproperlyConfigured(f"{name} must look like smtp://user:password@host:587 or smtps://host:465.")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return MailServer(parts.hostname, parts.port or port, user, password, security)


class SingleSignOn(NamedTuple):
    """An OpenID Connect provider."""

    issuer: str
    client_id: str
    client_secret: str
    name: str
    scopes: list[str]
    groups_claim: str
    group_roles: dict[str, tuple[str, ...]]  # per group: "owner", or project and role as "slug:role"


def make_single_sign_on(
    *, issuer: str, group_roles: Mapping[str, str], roles: Collection[str], **others: Any
) -> SingleSignOn | None:
    """Return the provider, None without an issuer. The values of a group are separated by plus signs."""
    issuer = issuer.rstrip("/")
    if not issuer:
        return None
    if urlsplit(issuer).scheme != "https" and urlsplit(issuer).hostname not in {"127.0.0.1", "localhost"}:
        raise ImproperlyConfigured(f"STEPMARK_OIDC_ISSUER={issuer!r} must start with https://.")
    if not others["client_id"] or not others["client_secret"]:
        raise ImproperlyConfigured("With STEPMARK_OIDC_ISSUER, set STEPMARK_OIDC_CLIENT_ID and _CLIENT_SECRET too.")
    split = {group: tuple(value.split("+")) for group, value in group_roles.items()}
    for value in (each for values in split.values() for each in values):
        slug, _mark, role = value.rpartition(":")
        if value != "owner" and not (slug and role in roles):
            raise ImproperlyConfigured(
                f"STEPMARK_OIDC_GROUPS: {value!r} is neither owner nor of the form project:role."
            )
    return SingleSignOn(issuer=issuer, group_roles=split, **others)


def read_choices(name: str, choices: Collection[str]) -> list[str]:
    """Return a comma-separated list of known words."""
    words = read_list(name, "")
    for word in words:
        if word not in choices:
            raise ImproperlyConfigured(f"{name}: {word!r} is none of {', '.join(choices)}.")
    return words


def _read_secret_file(name: str, file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name}_FILE={str(file)!r} cannot be read: {error.strerror}.") from error


def read_noted_origin(folder: Path) -> str:
    """Return the address that the supervisor wrote into its lock file, so that printed links have the right port."""
    try:
        noted = (folder / "supervisor.lock").read_text()
    except (OSError, UnicodeDecodeError):
        return DEFAULT_ORIGIN
    found = re.match(r"at (https?://\S+)", noted)
    return found.group(1) if found else DEFAULT_ORIGIN


def load_secret_key(folder: Path, *, may_make_one: bool) -> str:
    """Return the secret key of a data folder. It is created once, readable only by its owner."""
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
