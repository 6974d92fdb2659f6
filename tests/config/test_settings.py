"""What the environment makes of the settings, read by processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from machine import sockets
from tests.everything import BASE, OURS

ASK = (
    "import json; from django.conf import settings as s;"
    "print(json.dumps({'data': str(s.DATA_DIR), 'engine': s.DATABASES['default']['ENGINE'].rpartition('.')[2],"
    " 'broker': s.CELERY_BROKER_URL, 'cache': s.CACHES['default']['LOCATION'], 'hosts': s.ALLOWED_HOSTS,"
    " 'is_secure': s.SESSION_COOKIE_SECURE}))"
)


def manage(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=BASE,
        env={**clean, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def settings(*arguments: str, **env: str) -> dict[str, object]:
    ended = manage("shell", "--no-imports", "--command", ASK, *arguments, **env)
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--data", "{}"], ["--data={}"]])
def test_data_names_the_folder_for_every_command(tmp_path: Path, arguments: list[str]) -> None:
    read = settings(*(word.format(tmp_path) for word in arguments), STEPMARK_DATA="/nowhere")
    assert read["data"] == str(tmp_path)
    assert read["engine"] == "sqlite"
    assert read["cache"] == f"unix://{sockets.socket_of(tmp_path)}"
    assert read["broker"] == f"redis+socket://{sockets.socket_of(tmp_path)}"


def test_addresses_of_servers_make_the_scaled_setting(tmp_path: Path) -> None:
    read = settings(
        DATABASE_URL="postgresql://user@host/name",
        REDIS_URL="redis://host:6379/3",
        SECRET_KEY="key",
        STEPMARK_DATA=str(tmp_path),
        STEPMARK_ORIGIN="https://stepmark.example.org/",
    )
    assert (read["engine"], read["broker"], read["cache"]) == (
        "postgresql",
        "redis://host:6379/3",
        "redis://host:6379/3",
    )
    assert read["is_secure"] is True
    assert "stepmark.example.org" in str(read["hosts"])


@pytest.mark.parametrize(
    ("arguments", "env", "hint"),
    [
        (["check", "--data"], {}, "--data needs a folder"),
        (["check", "--data", "/dev/null/data"], {}, "Name another with --data"),
        (["check"], {"STEPMARK_DATA": "/dev/null/data"}, "Name another with --data"),
        (["check"], {"DATABASE_URL": "postgresql://user@host/name"}, "Set SECRET_KEY_FILE"),
        (["migrate"], {"STEPMARK_DEBUG": "maybe", "SECRET_KEY": "key"}, "write yes or no"),
    ],
)
def test_manage_says_in_one_line_what_is_wrong_with_the_settings(
    arguments: list[str], env: dict[str, str], hint: str
) -> None:
    ended = manage(*arguments, **env)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert hint in ended.stderr


def test_manage_says_that_nothing_was_set_up_yet(tmp_path: Path) -> None:
    ended = manage("import_traces", "README.md", "--project", "x", "--format", "chat", "--data", str(tmp_path))
    assert ended.returncode == 1
    assert ended.stderr == f"Nothing is in {tmp_path} yet: start ./run once, or name another folder with --data.\n"
