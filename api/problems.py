"""API errors as problem documents (RFC 9457)."""

from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import exception_handler

from rawsql.statement_limits import is_statement_timeout

_PROBLEM_SCHEMA = {
    "type": "object",
    "description": "Why a request was refused (RFC 9457).",
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened and what to do, for a person to read."},
        "errors": {"description": "Validation errors by field."},
    },
    "required": ["type", "status", "detail"],
}
_STATUS_DESCRIPTIONS = {
    "401": "The token is missing or invalid.",
    "403": "The token lacks the required scope, or its user lacks the required role.",
    "404": "Not found, or not visible to the token's user.",
    "429": "Too many requests; `Retry-After` gives the seconds to wait.",
    "default": "The request was refused; see `status` and `detail`.",
}


class ApiProblem(APIException):
    """A request that the domain refused."""

    def __init__(self, detail: str, *, status_code: int = status.HTTP_422_UNPROCESSABLE_ENTITY) -> None:
        super().__init__(detail)
        self.status_code = status_code


def problem_response(exc: Exception, context: dict[str, Any]) -> Response | None:
    if is_statement_timeout(exc):
        exc = ApiProblem(
            _("The database took too long, so this request changed nothing. Try again later."),
            status_code=status.HTTP_503_SERVICE_UNAVAILABLE,
        )
    response = exception_handler(exc, context)
    if response is None:
        return None
    if isinstance(exc, ValidationError):
        response.status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
        content = {"detail": _("Some fields are invalid; see `errors`."), "errors": response.data}
    else:
        detail = response.data.get("detail", "") if isinstance(response.data, dict) else ""
        if isinstance(exc, Http404):  # Django's message names the model
            detail = _("Not found.")
        content = {"detail": str(detail)}
    request = context["request"]
    request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
    response.data = {"type": "about:blank", "status": response.status_code, **content}
    response.content_type = "application/problem+json"
    return response


def refuse_with(detail: str, content: dict[str, Any]) -> Response:
    """Return a problem document with further members."""
    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    document = {"type": "about:blank", "status": status_code, "detail": detail, **content}
    return Response(document, status=status_code, content_type="application/problem+json")


def add_problems_to_schema(result: dict[str, Any], **_of_the_generator: Any) -> dict[str, Any]:
    """Add the problem responses to every operation of the OpenAPI schema."""
    result["components"]["schemas"]["Problem"] = _PROBLEM_SCHEMA
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses = {code: {"description": text, "content": content} for code, text in _STATUS_DESCRIPTIONS.items()}
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"] |= responses
    return result
