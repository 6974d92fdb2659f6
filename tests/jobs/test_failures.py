"""Reasons of failed jobs."""

import json

import pytest

from jobs import failures


def raise_and_catch(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as caught:
        return caught


def test_reason_names_the_error_and_our_own_line() -> None:
    reason = failures.describe_failure(raise_and_catch(ValueError("no number\nat all")))
    assert reason.startswith("ValueError: no number at all (tests/jobs/test_failures.py, line ")


def test_reason_names_our_own_line_for_an_error_in_a_library() -> None:
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("{")
    assert "(tests/jobs/test_failures.py, line " in failures.describe_failure(caught.value)


def test_message_for_people_is_unchanged() -> None:
    assert (
        failures.describe_failure(raise_and_catch(failures.JobFailed("Line 3 has no text."))) == "Line 3 has no text."
    )


def test_reason_of_an_error_without_a_message_is_its_name() -> None:
    assert failures.describe_failure(ValueError()).startswith("ValueError (")


@pytest.mark.parametrize(
    "secret",
    [
        "redis://:hunter2@host:6379/0 refused",
        "postgresql://me:hunter2@host/db",
        "GET /?api_key=hunter2",
        "Authorization: Bearer hunter2",
        "{'token': 'hunter2'}",
        "password=hunter2",
    ],
)
def test_secrets_are_redacted(secret: str) -> None:
    assert "hunter2" not in failures.describe_failure(ValueError(secret))


def test_long_reason_is_truncated() -> None:
    assert len(failures.describe_failure(ValueError("x" * 5000))) < 1200
