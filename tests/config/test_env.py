"""An invalid value stops the start with a message that describes valid values."""

import re
from pathlib import Path

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
