"""Generate the secrets of links and API tokens, and hash them for storage."""

import hashlib
import secrets


def generate_token() -> str:
    """Return 256 random bits as 43 URL-safe characters."""
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token. No salt or slow hash is needed for 256 random bits."""
    return hashlib.sha256(token.encode()).hexdigest()
