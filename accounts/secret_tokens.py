"""Secrets that travel in links: made here, kept as a hash alone."""

import hashlib
import secrets


def generate_token() -> str:
    """43 characters that nobody guesses: 256 random bits, safe in an address."""
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """What the database keeps. Plain SHA-256 is enough: there is nothing to guess in 256 random bits."""
    return hashlib.sha256(token.encode()).hexdigest()
