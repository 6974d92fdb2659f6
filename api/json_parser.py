"""Reads a JSON document that a program sends. Apart from `bodies`: the framework imports it with its own settings."""

import re
from collections.abc import Mapping
from typing import IO, Any

import orjson
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

MAX_BODY_BYTES = 32 << 20
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # as JSON writes it, and not a backslash before five plain characters


class BodyTooLarge(APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = gettext_lazy("The body is too large: send less at a time.")


class StrictJSONParser(BaseParser):
    """JSON that is held in memory as a whole, and so may not be of any size. Stricter than Python's own: without half
    characters, numbers that are none, or depths at which a stack ends."""

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        body = stream.read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLarge
        if _NUL.search(body):
            raise ParseError(_("The body has a character U+0000, which no text of ours can hold."))
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ParseError(_("The body is no JSON: %(reason)s") % {"reason": error}) from None
