"""Parse JSON request bodies. Not part of `request_bodies`, because REST framework imports this module from settings."""

import re
from collections.abc import Mapping
from typing import IO, Any

import orjson
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from formats import strict_json

MAX_BODY_BYTES = 32 << 20
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # the JSON escape, but not an escaped backslash followed by "u0000"


class BodyTooLarge(APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = gettext_lazy("The request body is too large. Split it into smaller requests.")


class StrictJSONParser(BaseParser):
    """Parse JSON in memory, up to MAX_BODY_BYTES. Stricter than Python's parser: rejects lone surrogates, NaN and
    Infinity, and excessive nesting."""

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        announced = parser_context["request"].headers.get("Content-Length", "") if parser_context else ""
        if announced.isdecimal() and int(announced) > MAX_BODY_BYTES:
            raise BodyTooLarge
        try:
            body = stream.read(MAX_BODY_BYTES + 1)
        except OSError as error:
            raise ParseError(_("The request body is incomplete. Send it again.")) from error
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLarge
        if _NUL.search(body):
            raise ParseError(_("The request body contains the character U+0000, which is not allowed."))
        try:
            content = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ParseError(_("The request body is not valid JSON: %(reason)s") % {"reason": error}) from None
        if strict_json.is_too_deep(content):
            message = _("The request body is nested more than %(n)d levels deep, which is not allowed.")
            raise ParseError(message % {"n": strict_json.DEPTH_LIMIT})
        return content
