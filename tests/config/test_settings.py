"""Settings from environment variables, read in separate processes."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from host import socket_paths
from manage import take_data_folder
from tests import command_server
from tests.check_all import BASE, OWN_VARIABLES

ASK = (
    "import json; from django.conf import settings as s;"
    "print(json.dumps({'data': str(s.DATA_DIR), 'database': s.DATABASES['default']['HOST'],"
    " 'broker': s.CELERY_BROKER_URL, 'cache': s.CACHES['default']['LOCATION'], 'hosts': s.ALLOWED_HOSTS,"
    " 'is_secure': s.SESSION_COOKIE_SECURE,"
    " 'cookies': [s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME, s.SESSION_COOKIE_PATH],"
    " 'proxies': [s.SECURE_PROXY_SSL_HEADER, s.ALLAUTH_TRUSTED_PROXY_COUNT]}))"
)
# As in docs/operations.md for a platform behind a proxy that terminates TLS.
PRODUCTION = {
    "DATABASE_URL": "postgresql://stepmark:secret@127.0.0.1:1/stepmark",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "SECRET_KEY": "a-key-for-this-test-alone-that-is-long-and-varied-0123456789",
    "STEPMARK_ORIGIN": "https://stepmark.example.org",
    "STEPMARK_HOSTS": "stepmark.example.org",
    "STEPMARK_PROXIES": "1",
}


def started(*command: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES)}
    return subprocess.run(
        [command_server.find_python(), *command],
        cwd=BASE,
        env={**clean, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def manage(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return started("manage.py", *arguments, **env)


def parse_output(ended: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout.splitlines()[-1]))


def settings(**env: str) -> dict[str, object]:
    """Return the settings of a process with these environment variables."""
    return parse_output(started("-c", ASK, DJANGO_SETTINGS_MODULE="config.settings", **env))


@pytest.mark.parametrize("given", [["--data", "/a"], ["--data=/a"]])
def test_data_is_taken_out_of_the_arguments(given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPMARK_DATA", "/nowhere")
    assert take_data_folder(["manage.py", *given, "check"]) == ["manage.py", "check"]
    assert os.environ["STEPMARK_DATA"] == "/a"


@pytest.mark.fault
@pytest.mark.parametrize("command", ["import_traces", "evaluate_prm", "backup"])
def test_help_of_commands_names_the_data_folder(command: str) -> None:
    assert "--data DIR" in manage(command, "--help").stdout


@pytest.mark.fault
def test_data_names_the_folder_for_every_command(tmp_path: Path) -> None:
    given = ["--data", str(tmp_path)]
    read = parse_output(manage("shell", "--no-imports", "--command", ASK, *given, STEPMARK_DATA="/nowhere"))
    assert read["data"] == str(tmp_path)
    assert read["database"] == str(socket_paths.database_folder(tmp_path))
    assert read["cache"] == f"unix://{socket_paths.broker_socket_path(tmp_path)}"
    assert read["broker"] == f"redis+socket://{socket_paths.broker_socket_path(tmp_path)}"


@pytest.mark.fault
def test_addresses_of_servers_make_the_scaled_setting(tmp_path: Path) -> None:
    read = settings(
        DATABASE_URL="postgresql://user@host/name",
        REDIS_URL="redis://host:6379/3",
        SECRET_KEY="key",
        STEPMARK_DATA=str(tmp_path),
        STEPMARK_ORIGIN="https://stepmark.example.org/",
    )
    assert (read["database"], read["broker"], read["cache"]) == (
        "host",
        "redis://host:6379/3",
        "redis://host:6379/3",
    )
    assert read["is_secure"] is True
    assert read["cookies"] == ["__Host-sessionid", "__Host-csrftoken", "/"]
    assert "stepmark.example.org" in str(read["hosts"])


@pytest.mark.parametrize(
    ("arguments", "env", "hint"),
    [
        (["check", "--data"], {}, "--data"),
        (["check", "--data", "/dev/null/data"], {}, "/dev/null/data"),
        (["check"], {"STEPMARK_DATA": "/dev/null/data"}, "/dev/null/data"),
        (["check"], {"DATABASE_URL": "postgresql://user@host/name"}, "Set SECRET_KEY_FILE"),
        (["migrate"], {"STEPMARK_DEBUG": "maybe", "SECRET_KEY": "key"}, "STEPMARK_DEBUG"),
    ],
)
@pytest.mark.fault
def test_manage_says_in_one_line_what_is_wrong_with_the_settings(
    arguments: list[str], env: dict[str, str], hint: str
) -> None:
    ended = manage(*arguments, **env)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert hint in ended.stderr


@pytest.mark.fault
def test_manage_says_that_nothing_was_set_up_yet(tmp_path: Path) -> None:
    ended = manage("import_traces", "README.md", "--project", "x", "--format", "chat", "--data", str(tmp_path))
    assert ended.returncode == 1
    assert str(tmp_path) in ended.stderr
    assert "./run" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.fault
def test_deploy_check_would_warn_of_an_origin_without_tls() -> None:
    """`tests.commands.test_containers` checks that the documented environment has no warning."""
    checked = manage("check", "--deploy", "--fail-level", "WARNING", **{**PRODUCTION, "STEPMARK_ORIGIN": "http://a.b"})
    assert checked.returncode != 0
    assert "security.W011" in checked.stderr  # the session cookie would be sent unencrypted


@pytest.mark.fault
def test_proxy_headers_are_trusted_only_with_proxies() -> None:
    assert settings(**PRODUCTION)["proxies"] == [["HTTP_X_FORWARDED_PROTO", "https"], 1]
    assert settings(**{**PRODUCTION, "STEPMARK_PROXIES": "0"})["proxies"] == [None, 0]
