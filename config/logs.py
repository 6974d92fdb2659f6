"""Configure structured logging without personal data or link tokens.

Log lines identify a person by number.
"""

import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog
from structlog.typing import Processor

_PERSONAL_KEYS = ("ip", "user_agent")
# A long path segment with capitals is the token of a link; project slugs have no capitals.
_TOKEN = re.compile(r"(?<=/)(?=[^/]*[A-Z])[\w\-:=.]{20,}")


def remove_personal_data(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    for key in _PERSONAL_KEYS:
        event.pop(key, None)
    if "request" in event:
        event["request"] = _TOKEN.sub("…", str(event["request"]).partition("?")[0])
    return event


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
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # The request middleware logs the same with the user's number and without tokens in the path.
            "django.request": {"level": "CRITICAL", "propagate": False},
            "django.server": {"level": "CRITICAL", "propagate": False},
            # Lines for each request and task are for DEBUG; failures are always logged.
            "django_structlog": {"level": "INFO"},
            "celery.app.trace": {"level": "WARNING" if level == "INFO" else level},
            "celery.worker.strategy": {"level": "WARNING" if level == "INFO" else level},
        },
    }


def _renderers(as_json: bool) -> list[Processor]:
    if as_json:
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    # Tracebacks omit local variables, which contain people's input.
    return [
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    ]
