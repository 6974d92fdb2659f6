"""Log lines, which contain no personal data or tokens."""

import json
import logging
import sys
from typing import Any

import pytest
from django.db import IntegrityError
from django.test import Client
from pytest_django import Settings

from config import logs


@pytest.mark.parametrize(
    ("request_line", "logged"),
    [
        ("GET /login-link/sgn9KCQ0s3hbGJtIOKdtpQxy2GhPGJ7TbKlqd5qqmCk?next=/", "GET /login-link/…"),
        ("GET /projects/prm800k-phase-2-solutions/raters/?q=ada", "GET /projects/prm800k-phase-2-solutions/raters/"),
        ("POST /rate/17", "POST /rate/17"),
    ],
)
def test_without_personal_data_keeps_tokens_and_people_out(request_line: str, logged: str) -> None:
    event = {"request": request_line, "ip": "127.0.0.1", "user_agent": "a browser", "user_id": 7}
    assert logs.remove_personal_data(None, "info", event) == {"request": logged, "user_id": 7}


def rendered(*, as_json: bool) -> str:
    """Log with another library's logger through the platform's handler."""
    formatter = logs.configure_logging(as_json=as_json, level="INFO")["formatters"]["lines"]
    made: logging.Formatter = formatter.pop("()")(**formatter)
    record = logging.LogRecord("celery", logging.WARNING, "x.py", 1, "lost %s", ("a worker",), None)
    return made.format(record)


def test_configure_writes_json_for_machines_and_lines_for_people() -> None:
    line: dict[str, Any] = json.loads(rendered(as_json=True))
    assert (line["event"], line["level"], line["logger"]) == ("lost a worker", "warning", "celery")
    assert "lost a worker" in rendered(as_json=False)


def test_failed_request_is_logged_without_its_token(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    client.get("/nowhere/sgn9KCQ0s3hbGJtIOKdtpQxy2GhPGJ7TbKlqd5qqmCk", headers={"user-agent": "a browser"})
    finished = [record.getMessage() for record in caplog.records if "request_finished" in record.getMessage()]
    assert len(finished) == 1
    assert "GET /nowhere/…" in finished[0]
    assert "browser" not in caplog.text


@pytest.mark.parametrize("as_json", [True, False])
def test_errors_of_the_database_are_logged_without_values(as_json: bool) -> None:
    formatter = logs.configure_logging(as_json=as_json, level="INFO")["formatters"]["lines"]
    made: logging.Formatter = formatter.pop("()")(**formatter)
    try:
        raise IntegrityError("duplicate key\nDETAIL:  Key (lower(email))=(anna@example.org) already exists.\n")
    except IntegrityError:
        record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "failed", (), sys.exc_info())
    text = made.format(record)
    assert "duplicate key" in text
    assert "anna" not in text


def test_faults_of_clients_are_logged_once_a_minute_without_traceback(settings: Settings) -> None:
    once = logs.OnceAMinute()
    passed = []
    for _ in range(3):
        error = (ValueError, ValueError("x"), None)
        record = logging.LogRecord("django.security.DisallowedHost", logging.ERROR, "x.py", 1, "no host", (), error)
        passed.append(once.filter(record))
        assert (record.exc_info, record.exc_text) == (None, None)
    assert passed == [True, False, False]
    assert settings.LOGGING["loggers"]["django.security.DisallowedHost"]["filters"] == ["once_a_minute"]


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7"])
def test_gunicorns_lines_lose_their_address(address: str) -> None:
    message = f"Invalid request from ip={address}: Invalid HTTP request line: 'x'"
    record = logging.LogRecord("gunicorn.error", logging.WARNING, "x.py", 1, message, (), None)
    assert logs.WithoutAddress().filter(record)
    assert address not in record.getMessage()
    assert "Invalid HTTP request line" in record.getMessage()
