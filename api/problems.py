"""Errors as a program reads them (RFC 9457): one shape for all, with the place of what is wrong."""

from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

_PROBLEM_SCHEMA = {
    "type": "object",
    "description": "Why a request was refused (RFC 9457).",
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "In words, for a person."},
        "errors": {"description": "Of each field that cannot be used, why."},
    },
    "required": ["type", "status", "detail"],
}
_STATUS_DESCRIPTIONS = {
    "401": "No token came with it, or none that works.",
    "403": "The token lacks the scope, or its person the role.",
    "404": "There is no such thing, or none that the token's person may see.",
    "default": "Refused: `status` and `detail` say why.",
}


class ApiProblem(APIException):
    """Something that a verb refuses. `place` is a field, or a line of the body."""

    status_code: int = status.HTTP_422_UNPROCESSABLE_ENTITY

    def __init__(self, detail: str, *, status_code: int = status.HTTP_422_UNPROCESSABLE_ENTITY, **more: Any) -> None:
        super().__init__(detail)
        self.status_code = status_code
        self.more = more


def problem_response(exc: Exception, context: dict[str, Any]) -> Response | None:
    response = exception_handler(exc, context)
    if response is None:
        return None
    if isinstance(exc, ValidationError):
        response.status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
        told = {"detail": "Some of what was sent cannot be used.", "errors": response.data}
    else:
        detail = response.data.get("detail", "") if isinstance(response.data, dict) else ""
        if isinstance(exc, Http404):  # its own words are about tables
            detail = _("There is nothing here, or not for you.")
        told = {"detail": str(detail), **getattr(exc, "more", {})}
    response.data = {"type": "about:blank", "status": response.status_code, **told}
    response.content_type = "application/problem+json"
    return response


def add_problems_to_schema(result: dict[str, Any], **_of_the_generator: Any) -> dict[str, Any]:
    """Every operation may be refused, always in the one shape: said in the schema once, and not above each view."""
    result["components"]["schemas"]["Problem"] = _PROBLEM_SCHEMA
    told = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"] |= {code: {"description": why, **told} for code, why in _STATUS_DESCRIPTIONS.items()}
    return result
