"""An invalid value stops the start with a message that describes valid values."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAME", raising=False)
    monkeypatch.delenv("NAME_FILE", raising=False)


def test_text_says_how_to_set_what_is_missing() -> None:
    with pytest.raises(ImproperlyConfigured, match="NAME_FILE"):
        env.read_text("NAME")


def test_text_takes_an_empty_value_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "")
    assert env.read_text("NAME", "default") == "default"


def test_text_reads_the_file_that_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    monkeypatch.setenv("NAME_FILE", str(tmp_path / "secret"))
    assert env.read_text("NAME") == "from a file"


def test_text_names_a_file_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NAME_FILE", str(tmp_path / "absent"))
    with pytest.raises(ImproperlyConfigured, match=re.escape(str(tmp_path / "absent"))):
        env.read_text("NAME")


def test_text_does_not_choose_between_a_value_and_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "value")
    monkeypatch.setenv("NAME_FILE", "/file")
    with pytest.raises(ImproperlyConfigured, match="NAME and NAME_FILE"):
        env.read_text("NAME")


@pytest.mark.parametrize(("given", "meant"), [("yes", True), ("1", True), ("off", False), ("NO", False)])
def test_yes_understands_the_usual_words(monkeypatch: pytest.MonkeyPatch, given: str, meant: bool) -> None:
    monkeypatch.setenv("NAME", given)
    assert env.read_bool("NAME", default=not meant) is meant


def test_yes_refuses_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "maybe")
    with pytest.raises(ImproperlyConfigured, match="NAME='maybe'"):
        env.read_bool("NAME", default=True)


@pytest.mark.parametrize("given", ["-1", "1.5", "many", "0"])
def test_number_refuses_what_is_no_whole_number_or_too_small(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("NAME", given)
    with pytest.raises(ImproperlyConfigured, match=r"NAME=.*\b1\b"):
        env.read_int("NAME", default=1, least=1)


def test_words_are_parted_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "a.example.org, b.example.org,")
    assert env.read_list("NAME", "") == ["a.example.org", "b.example.org"]


def test_database_reads_every_part_of_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "postgresql://us%40er:p%2Fw@host:5433/data?sslmode=require")
    assert env.read_database("NAME") == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "data",
        "USER": "us@er",
        "PASSWORD": "p/w",
        "HOST": "host",
        "PORT": 5433,
        "OPTIONS": {"sslmode": "require"},
    }


def test_database_takes_the_folder_of_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "postgresql://user@/data?host=/run/postgresql")
    options = env.read_database("NAME")
    assert options
    assert (options["HOST"], options["NAME"], options["OPTIONS"]) == ("/run/postgresql", "data", {})


def test_database_is_the_embedded_one_where_none_is_named() -> None:
    assert env.read_database("NAME") is None


@pytest.mark.parametrize("given", ["mysql://host/name", "postgresql://host", "host:5432"])
def test_database_shows_what_its_address_looks_like(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("NAME", given)
    with pytest.raises(ImproperlyConfigured, match="postgresql://user:password@host:5432/name"):
        env.read_database("NAME")


@pytest.mark.parametrize(
    ("given", "server"),
    [
        ("", ("", 0, "", "", "")),
        ("smtp://me%40x:p%2Fw@mail.example", ("mail.example", 587, "me@x", "p/w", "starttls")),
        ("smtps://mail.example:4650", ("mail.example", 4650, "", "", "tls")),
        ("smtp+plain://127.0.0.1", ("127.0.0.1", 25, "", "", "")),
    ],
)
def test_mail_server_reads_every_part_of_its_address(
    monkeypatch: pytest.MonkeyPatch, given: str, server: tuple[object, ...]
) -> None:
    monkeypatch.setenv("NAME", given)
    assert env.read_mail_server("NAME") == server


@pytest.mark.parametrize("given", ["mail.example", "http://mail.example", "smtp://"])
def test_mail_server_shows_what_its_address_looks_like(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("NAME", given)
    with pytest.raises(ImproperlyConfigured, match="smtp://user:password@host:587"):
        env.read_mail_server("NAME")


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        ("at http://127.0.0.1:8123/ (process 7)\n", "http://127.0.0.1:8123/"),
        ("", "http://127.0.0.1:8000"),
        (None, "http://127.0.0.1:8000"),
    ],
)
def test_noted_origin_has_the_port_of_the_running_platform(tmp_path: Path, noted: str | None, expected: str) -> None:
    if noted is not None:
        (tmp_path / "supervisor.lock").write_text(noted)
    assert env.read_noted_origin(tmp_path) == expected


def test_secret_key_is_made_once_and_kept(tmp_path: Path) -> None:
    made = env.load_secret_key(tmp_path / "data", may_make_one=True)
    assert len(made) >= 50
    assert env.load_secret_key(tmp_path / "data", may_make_one=True) == made
    assert (tmp_path / "data" / "secret_key").stat().st_mode & 0o077 == 0
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["secret_key"]


def test_secret_key_is_one_for_all_who_start_together(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as together:
        keys = list(together.map(lambda _: env.load_secret_key(tmp_path, may_make_one=True), range(16)))
    assert len(set(keys)) == 1


def test_secret_key_is_asked_for_in_the_scaled_setting(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="SECRET_KEY_FILE"):
        env.load_secret_key(tmp_path, may_make_one=False)
    assert not list(tmp_path.iterdir())


def test_secret_key_names_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ImproperlyConfigured, match="--data"):
        env.load_secret_key(tmp_path / "file" / "data", may_make_one=True)


def make_provider(**values: Any) -> env.SingleSignOn | None:
    given = {
        "issuer": "https://login.example.org/",
        "client_id": "a",
        "client_secret": "b",
        "name": "Example",
        "scopes": ["openid"],
        "groups_claim": "groups",
        "group_roles": {},
        "roles": ["lead"],
    }
    return env.make_single_sign_on(**{**given, **values})


def test_single_sign_on_has_roles_of_groups() -> None:
    assert make_provider(issuer="") is None
    found = make_provider(group_roles={"leads": "sums:lead+algebra:lead", "platform": "owner"})
    assert found is not None
    assert found.issuer == "https://login.example.org"
    assert found.group_roles == {"leads": ("sums:lead", "algebra:lead"), "platform": ("owner",)}


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"issuer": "http://login.example.org"}, "STEPMARK_OIDC_ISSUER"),
        ({"client_secret": ""}, "_CLIENT_SECRET"),
        ({"group_roles": {"leads": "sums:boss"}}, "sums:boss"),
        ({"group_roles": {"leads": "lead"}}, "lead"),
        ({"group_roles": {"leads": ":lead"}}, ":lead"),
    ],
)
def test_single_sign_on_names_an_invalid_value(values: dict[str, Any], named: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=re.escape(named)):
        make_provider(**values)


def test_choices_are_words_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "lead, owner")
    assert env.read_choices("NAME", ["owner", "lead"]) == ["lead", "owner"]
    with pytest.raises(ImproperlyConfigured, match="lead"):
        env.read_choices("NAME", ["owner"])
