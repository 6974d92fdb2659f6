"""Statements of web requests end after some seconds, with an error that says so."""

import json

import pytest
from django.conf import settings
from django.db import OperationalError, connection, connections, transaction
from django.http import HttpResponse
from django.test import RequestFactory
from psycopg.errors import QueryCanceled

from api.problems import problem_response
from config.bad_requests import render_server_error
from rawsql import statement_limits


def run_too_long() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '1ms'; SELECT pg_sleep(5)")


def respond_to(error: Exception) -> HttpResponse:
    try:
        raise error
    except type(error):  # while Django handles an error, it is the current one
        return render_server_error(RequestFactory().get("/"))


@pytest.mark.django_db
def test_a_statement_that_takes_too_long_is_recognized() -> None:
    with pytest.raises(OperationalError) as caught:
        run_too_long()
    assert statement_limits.is_statement_timeout(caught.value)
    response = respond_to(caught.value)
    assert response.status_code == 503
    assert response.headers["Retry-After"]
    assert 'data-error="timeout"' in response.content.decode()


def test_other_errors_are_server_errors() -> None:
    assert respond_to(ValueError("x")).status_code == 500
    assert not statement_limits.is_statement_timeout(OperationalError("connection lost"))


def test_the_api_answers_with_a_problem() -> None:
    error = OperationalError("canceled")
    error.__cause__ = QueryCanceled()
    request = RequestFactory().get("/api/")
    response = problem_response(error, {"request": request, "view": None})
    assert response is not None
    assert (response.status_code, response.data["status"]) == (503, 503)
    assert json.dumps(response.data)


def test_only_web_processes_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "idle_in_transaction_session_timeout=10min" in settings.DATABASES["default"]["OPTIONS"]["options"]
    options = {"options": "-c jit=off"}
    monkeypatch.setitem(connections.settings["default"], "OPTIONS", options)
    for _ in range(2):
        statement_limits.limit_web_statements()
    assert options["options"].count(f"statement_timeout={settings.WEB_STATEMENT_SECONDS}s") == 1


@pytest.mark.django_db
def test_connection_of_a_job_may_idle() -> None:
    def read_limit() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW idle_session_timeout")
            return str(cursor.fetchone()[0])

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL idle_session_timeout = '7s'")
    before = read_limit()
    with statement_limits.connection_may_idle():
        assert (before, read_limit()) == ("7s", "0")
    assert read_limit() == "0"  # the default of this session


def test_workers_give_back_connections_that_they_do_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"options": "-c jit=off"}
    monkeypatch.setitem(connections.settings["default"], "OPTIONS", options)
    statement_limits.limit_idle_connections()
    assert options["options"] == f"-c jit=off -c idle_session_timeout={statement_limits.UNUSED_SECONDS}s"
