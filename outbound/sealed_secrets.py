"""Encrypt the secrets of servers that users register, with keys derived from SECRET_KEY.

Most installations have no such secret, so `cryptography` is imported on first use.
"""

import base64
import hashlib
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


class SecretUnreadable(Exception):
    """The secret was encrypted under another SECRET_KEY."""


def seal_secret(secret: str, *, purpose: str) -> bytes:
    """Encrypt a secret. The purpose of a kind of secret must never change: it is a part of the key."""
    return _cipher(purpose).encrypt(secret.encode())


def unseal_secret(sealed: bytes, *, purpose: str) -> str:
    """Decrypt a secret, or raise SecretUnreadable."""
    from cryptography.fernet import InvalidToken

    try:
        return _cipher(purpose).decrypt(sealed).decode()
    except InvalidToken:
        raise SecretUnreadable(
            "The secret was encrypted under another SECRET_KEY. Register the server again."
        ) from None


def _cipher(purpose: str) -> "Fernet":
    from cryptography.fernet import Fernet

    key = hashlib.sha256(purpose.encode() + b"\0" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))
