"""Configure structured logging without personal data or link tokens.

Log lines identify a person by number.
"""

import logging
import re
import sys
import time
from collections.abc import Mapping, MutableMapping
from io import StringIO
from typing import Any, TextIO

import structlog
from structlog.typing import Processor

_ROW_VALUES = re.compile(r"DETAIL:.*")
_CLIENT_FAULTS = ("DisallowedHost", "RequestDataTooBig", "SuspiciousOperation", "TooManyFieldsSent", "TooManyFilesSent")
_PERSONAL_KEYS = ("ip", "user_agent")
# A long path segment with capitals is the token of a link; project slugs have no capitals.
_TOKEN = re.compile(r"(?<=/)(?=[^/]*[A-Z])[\w\-:=.]{20,}")


def remove_personal_data(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    for key in _PERSONAL_KEYS:
        event.pop(key, None)
    if "request" in event:
        event["request"] = _TOKEN.sub("…", str(event["request"]).partition("?")[0])
    return event


def remove_row_values(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Remove the values that PostgreSQL quotes in its errors: "Key (lower(email))=(anna@example.org) exists"."""
    if "exception" in event:
        event["exception"] = _ROW_VALUES.sub("DETAIL: …", str(event["exception"]))
    return event


def _write_traceback(stream: TextIO, exc_info: Any) -> None:
    """Write a traceback without local variables and row values, which contain people's input."""
    text = StringIO()
    structlog.dev.plain_traceback(text, exc_info)
    stream.write(_ROW_VALUES.sub("DETAIL: …", text.getvalue()))


class WithoutAddress(logging.Filter):
    """Remove the address from gunicorn's lines about requests that it cannot parse."""

    _address = re.compile(r" from ip=\S+?(?=: |$)")

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._address.sub("", record.getMessage()), ()
        return True


class OnceAMinute(logging.Filter):
    """Pass one line a minute, without traceback: everyone can send requests that cause it."""

    _passed_at = -60.0

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = record.exc_text = None
        is_due = time.monotonic() - self._passed_at >= 60
        if is_due:
            self._passed_at = time.monotonic()
        return is_due


_SHARED_PROCESSORS: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso"),
    structlog.stdlib.PositionalArgumentsFormatter(),
    remove_personal_data,
]


def configure_logging(*, as_json: bool, level: str) -> dict[str, Any]:
    """Configure structlog and return Django's LOGGING, so that all loggers share one format."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED_PROCESSORS,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lines": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": _SHARED_PROCESSORS,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(as_json)],
            }
        },
        "filters": {"once_a_minute": {"()": "config.logs.OnceAMinute"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # The request middleware logs the same with the user's number and without tokens in the path.
            "django.request": {"level": "CRITICAL", "propagate": False},
            "django.server": {"level": "CRITICAL", "propagate": False},
            "fido2": {"level": "WARNING"},  # it logs the ids of passkeys
            # Unknown hosts, and everything else that only a broken or hostile client sends.
            **{f"django.security.{name}": {"filters": ["once_a_minute"]} for name in _CLIENT_FAULTS},
            # Lines for each request and task are for DEBUG; failures are always logged.
            "django_structlog": {"level": "INFO"},
            "celery.app.trace": {"level": "WARNING" if level == "INFO" else level},
            "celery.worker.strategy": {"level": "WARNING" if level == "INFO" else level},
        },
    }


def _renderers(as_json: bool) -> list[Processor]:
    if as_json:
        as_line = structlog.processors.JSONRenderer(ensure_ascii=False)
        return [structlog.processors.format_exc_info, remove_row_values, as_line]
    return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=_write_traceback)]
