"""Log lines, which contain no personal data or tokens."""

import json
import logging
from typing import Any

import pytest
from django.test import Client

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
