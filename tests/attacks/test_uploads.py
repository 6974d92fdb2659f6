"""Files are refused before they are read, unless a page expects them from this person."""

from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db
FILE_PAGES = ("dashboard:upload_import_file", "dashboard:evaluate_prm_on_file")


class Unread:
    """A request body that must not be read."""

    def read(self, *_sizes: Any) -> bytes:
        raise AssertionError("the body was read")

    readline = read


def send_unread(client: Client, url: str, **more: Any) -> Any:
    environ = {"wsgi.input": Unread(), "CONTENT_LENGTH": "300000000"}
    return client.generic("POST", url, b"x", "multipart/form-data; boundary=x", **{**environ, **more})


def uploads() -> list[Any]:
    return [path for name in ("uploading", "imports") for path in (settings.DATA_DIR / name).glob("*")]


def views(patterns: list[Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in patterns:
        if isinstance(one, URLResolver):
            found |= views(one.url_patterns, f"{prefix}{one.namespace}:" if one.namespace else prefix)
        elif isinstance(one, URLPattern):
            found[f"{prefix}{one.name}"] = one.callback
    return found


def test_two_pages_accept_files() -> None:
    accepting = {name for name, view in views(get_resolver().url_patterns).items() if hasattr(view, "check_upload")}
    assert accepting == set(FILE_PAGES)


@pytest.mark.parametrize("name", ["account_login", "theme", "annotate:claim", "dashboard:order_snapshot"])
@pytest.mark.parametrize("person", ["visitor", "lead"])
def test_large_upload_is_not_read(name: str, person: str, personas: LoggedInPersonas) -> None:
    args = [personas.cast.project.slug] if ":" in name else []
    response = send_unread(personas.client(person), reverse(name, args=args))
    assert response.status_code == 413
    assert 'data-error="form-too-large"' in response.content.decode()


@pytest.mark.parametrize("name", ["account_login", "dashboard:order_snapshot"])
def test_small_file_is_refused(name: str, personas: LoggedInPersonas) -> None:
    args, before = ([personas.cast.project.slug] if ":" in name else []), uploads()
    file = SimpleUploadedFile("traces.jsonl", b"{}" * 1000)
    assert personas.client("lead").post(reverse(name, args=args), {"upload": file}).status_code == 413
    assert uploads() == before


@pytest.mark.parametrize(("person", "status"), [("visitor", 302), ("stranger", 404), ("annotator", 403)])
def test_file_page_reads_nothing_from_people_without_the_permission(
    person: str, status: int, personas: LoggedInPersonas
) -> None:
    response = send_unread(personas.client(person), reverse(FILE_PAGES[0], args=[personas.cast.project.slug]))
    assert response.status_code == status


def test_file_page_accepts_a_file_from_a_lead(personas: LoggedInPersonas) -> None:
    url = reverse(FILE_PAGES[0], args=[personas.cast.project.slug])
    file = SimpleUploadedFile("traces.jsonl", b'{"problem": {"text": "1+1"}, "steps": ["2"]}\n')
    assert personas.client("lead").post(url, {"upload": file}).status_code == 302


def test_file_that_the_disk_cannot_hold_is_not_read(personas: LoggedInPersonas) -> None:
    url = reverse(FILE_PAGES[0], args=[personas.cast.project.slug])
    response = send_unread(personas.client("lead"), url, CONTENT_LENGTH=str(10**18))
    assert response.status_code == 507


@pytest.mark.fault
def test_uploads_are_limited(personas: LoggedInPersonas, settings: Any) -> None:
    settings.RATE_LIMIT_FACTOR = 1
    url = reverse(FILE_PAGES[0], args=[personas.cast.project.slug])
    client = personas.client("lead")
    statuses = [send_unread(client, url, CONTENT_LENGTH=str(10**18)).status_code for _ in range(70)]
    assert (statuses[0], statuses[-1]) == (507, 429)
