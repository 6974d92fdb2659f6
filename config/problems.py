"""Problem documents (RFC 9457) for refusals outside of views. `api.problems` makes those of the API's views."""

import json
from contextlib import suppress
from http import HTTPStatus

CONTENT_TYPE = "application/problem+json"


def encode_problem(status: int, detail: str = "") -> bytes:
    """Return the document. Without a detail, it describes the status."""
    with suppress(ValueError):  # a status that has no name
        known = HTTPStatus(status)
        detail = detail or f"{known.phrase}. {known.description}".strip()
    return json.dumps(
        {"type": "about:blank", "status": status, "detail": detail or "The request was refused."}
    ).encode()
