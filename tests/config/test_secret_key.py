"""The secret key of a single-machine installation: created once, and readable only by its owner."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import secret_key


def test_key_of_is_made_once_and_kept(tmp_path: Path) -> None:
    made = secret_key.load_secret_key(tmp_path / "data", may_make_one=True)
    assert len(made) >= 50
    assert secret_key.load_secret_key(tmp_path / "data", may_make_one=True) == made
    assert (tmp_path / "data" / "secret_key").stat().st_mode & 0o077 == 0
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["secret_key"]


def test_key_of_is_one_for_all_who_start_together(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as together:
        keys = list(together.map(lambda _: secret_key.load_secret_key(tmp_path, may_make_one=True), range(16)))
    assert len(set(keys)) == 1


def test_key_of_is_asked_for_in_the_scaled_setting(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="SECRET_KEY_FILE"):
        secret_key.load_secret_key(tmp_path, may_make_one=False)
    assert not list(tmp_path.iterdir())


def test_key_of_names_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ImproperlyConfigured, match="--data"):
        secret_key.load_secret_key(tmp_path / "file" / "data", may_make_one=True)
