"""Encrypt the secrets of external scorers with a key derived from SECRET_KEY.

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


def seal_secret(secret: str) -> bytes:
    return _cipher().encrypt(secret.encode())


def unseal_secret(sealed: bytes) -> str:
    from cryptography.fernet import InvalidToken

    try:
        return _cipher().decrypt(bytes(sealed)).decode()
    except InvalidToken:
        raise SecretUnreadable(
            "The PRM's secret was encrypted under another SECRET_KEY. Register the PRM again."
        ) from None


def _cipher() -> "Fernet":
    from cryptography.fernet import Fernet

    key = hashlib.sha256(b"prm.secret_box\0" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))
