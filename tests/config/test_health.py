"""Health checks and metrics, which need no login."""

from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from config import health, request_times


def test_live_asks_nobody(client: Client) -> None:
    assert client.get("/health/live").json() == {"live": True}


@pytest.mark.django_db
def test_ready_says_so_with_a_database_and_a_broker(client: Client, settings: Settings, broker: str) -> None:
    settings.REDIS_URL = broker
    response = client.get("/health/ready")
    assert (response.status_code, response.json()) == (
        200,
        {"ready": True, "database": "ready", "broker": "ready", "disk": "ready"},
    )


@pytest.mark.django_db
def test_ready_notices_a_disk_without_room_and_one_that_takes_no_writes(
    client: Client, settings: Settings, tmp_path: Path
) -> None:
    settings.DATA_DIR, settings.LEAST_FREE_BYTES = tmp_path, 2**60
    response = client.get("/health/ready")
    assert (response.status_code, response.json()["disk"]) == (200, "low")
    settings.DATA_DIR = tmp_path / "gone"
    response = client.get("/health/ready")
    assert (response.status_code, response.json()["disk"]) == (503, "unwritable")


@pytest.mark.django_db
def test_ready_notices_a_database_that_takes_no_writes(client: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET transaction_read_only = on")
    response = client.get("/health/ready")
    assert (response.status_code, response.json()["database"]) == (503, "read-only")


@pytest.mark.django_db
def test_ready_succeeds_without_a_broker(client: Client, settings: Settings) -> None:
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    response = client.get("/health/ready")
    assert (response.status_code, response.json()["broker"]) == (200, "unavailable")


@pytest.mark.django_db
def test_ready_waits_for_the_migrations(client: Client) -> None:
    health._migrated = False
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'jobs'")
    response = client.get("/health/ready")
    assert (response.status_code, response.json()["database"]) == (503, "not migrated")


@pytest.mark.django_db
def test_metrics_are_closed_without_their_token(client: Client, settings: Settings) -> None:
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 404
    settings.METRICS_TOKEN = "scrape"
    assert client.get("/metrics", headers={"authorization": "Bearer guess"}).status_code == 404
    metrics = client.get("/metrics", headers={"authorization": "Bearer scrape"}).content.decode()
    assert 'stepmark_jobs{state="queued"} 0.0' in metrics
    assert "stepmark_oldest_queued_job_seconds 0.0" in metrics
    assert "stepmark_unsettled_traces 0.0" in metrics
    assert {"stepmark_disk_free_bytes", "stepmark_disk_bytes", "stepmark_database_bytes"} <= set(metrics.split())


@pytest.mark.django_db
def test_metrics_count_raters_requests_by_their_time(client: Client, settings: Settings) -> None:
    settings.METRICS_TOKEN = "scrape"

    def read(name: str) -> float:
        metrics = client.get("/metrics", headers={"authorization": "Bearer scrape"}).content.decode()
        return next(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith(name))

    total, fast = 'stepmark_request_seconds_count{request="record"}', '{le="0.005",request="record"}'
    before = read(total), read(f"stepmark_request_seconds_bucket{fast}")
    for verb in ("record", "other"):
        request_times.note_request(f"/work/{1}/{verb}", 0.3)
    client.post(f"/work/{999}/record", "{}", content_type="application/json")
    assert read(total) == before[0] + 2
    assert read(f"stepmark_request_seconds_bucket{fast}") <= before[1] + 1
    assert read('stepmark_request_seconds_sum{request="record"}') >= 0.3


@pytest.mark.django_db
def test_metrics_count_messages_if_the_broker_answers(client: Client, settings: Settings, broker: str) -> None:
    settings.METRICS_TOKEN, settings.REDIS_URL = "scrape", broker
    metrics = client.get("/metrics", headers={"authorization": "Bearer scrape"}).content.decode()
    assert 'stepmark_messages{queue="short"} ' in metrics
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    metrics = client.get("/metrics", headers={"authorization": "Bearer scrape"}).content.decode()
    assert "stepmark_messages{" not in metrics
