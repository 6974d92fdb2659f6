"""The embedded PostgreSQL starts, recovers, and refuses folders that it cannot use."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from host import socket_paths
from supervisor import StartupError, database
from tests import servers
from tests.supervisor import platform_process

# Runs the embedded database until its input is closed, as a `manage.py` command would.
COMMAND = """
import sys
from pathlib import Path
from supervisor import database
with database.serve_command(Path(sys.argv[1])):
    print("ready", flush=True)
    sys.stdin.read()
"""


NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    with servers.short_folder() as short:
        yield short


def ask(folder: Path, sql: str) -> object:
    host = socket_paths.database_folder(folder)
    with psycopg.connect(host=str(host), user=database.USER, dbname="postgres", autocommit=True) as connection:
        row = connection.execute(sql).fetchone()
        return row[0] if row else None


def setting(folder: Path, name: str) -> object:
    return ask(folder, f"SELECT current_setting('{name}')")


def postmaster(folder: Path) -> int:
    return int((database.cluster_of(folder) / "postmaster.pid").read_text().split()[0])


@pytest.mark.fault
def test_running_serves_only_on_a_socket_and_writes_durably(folder: Path) -> None:
    with database.running(folder):
        assert setting(folder, "listen_addresses") == ""
        assert (setting(folder, "fsync"), setting(folder, "synchronous_commit")) == ("on", "on")
        assert (socket_paths.database_folder(folder) / socket_paths.DATABASE_SOCKET).stat().st_mode & 0o077 == 0
        assert setting(folder, "server_encoding") == "UTF8"
    assert not database.answers(folder)
    assert list(database._processes_in(database.cluster_of(folder))) == []


@pytest.mark.fault
def test_running_uses_a_short_socket_folder_for_a_long_path(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    deep = folder / ("d" * 100)
    deep.mkdir()
    with database.running(deep):
        assert ask(deep, "SELECT 1") == 1
    assert str(socket_paths.database_folder(deep)) in capfd.readouterr().out
    socket_paths.database_folder(deep).rmdir()


@pytest.mark.fault
def test_start_recovers_at_once_from_a_killed_postmaster_with_a_busy_backend(folder: Path) -> None:
    with database.running(folder):
        busy = threading.Thread(target=pytest.raises, args=(psycopg.OperationalError, ask, folder, BUSY))
        busy.start()
        servers.wait_until(lambda: ask(folder, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%9e9%'") == 2)
        os.kill(postmaster(folder), signal.SIGKILL)
        with database.running(folder):
            assert ask(folder, "SELECT 1") == 1
        busy.join()


# Runs for longer than any test without checking for interrupts.
BUSY = "SELECT count(*) FROM generate_series(1, 9e9)"


def command(folder: Path) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": str(platform_process.BASE)}
    words, pipe = [sys.executable, "-c", COMMAND, str(folder)], subprocess.PIPE
    process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=env)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.fault
def test_serve_shares_one_server_until_the_last_command_has_ended(folder: Path) -> None:
    first = command(folder)
    number = postmaster(folder)
    second = command(folder)
    assert postmaster(folder) == number
    assert first.stdin
    first.stdin.close()
    time.sleep(0.3)
    assert ask(folder, "SELECT 1") == 1
    second.communicate()
    assert (first.wait(), second.returncode) == (0, 0)
    assert first.stdout
    first.stdout.close()
    assert not database.answers(folder)


@pytest.mark.fault
def test_server_of_a_killed_command_ends_with_it(folder: Path) -> None:
    process = command(folder)
    process.kill()
    process.communicate()
    servers.wait_until(lambda: not list(database._processes_in(database.cluster_of(folder))))


@pytest.mark.fault
def test_supervisor_names_the_command_that_it_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "COMMANDS_END_WITHIN", 0.2)
    process = command(folder)
    with pytest.raises(StartupError, match=r"manage\.py"), database.no_command(folder):
        pass
    process.communicate()
    with database.no_command(folder):
        pass


def test_prepare_refuses_the_cluster_of_another_major_version(folder: Path) -> None:
    cluster = database.cluster_of(folder)
    cluster.mkdir()
    (cluster / "PG_VERSION").write_text("9\n")
    with pytest.raises(StartupError, match=r"PostgreSQL 9,.*manage\.py backup.*manage\.py restore"):
        database.prepare(folder)


def test_prepare_refuses_the_database_of_an_older_stepmark(folder: Path) -> None:
    old = folder / "stepmark.old"
    old.write_bytes(database._FORMER_HEADER + bytes(100))
    with pytest.raises(StartupError, match=r"stepmark\.old"):
        database.prepare(folder)
    old.write_bytes(b"notes")
    database._check_versions(folder, database.cluster_of(folder), 18)


def without_unshare(folder: Path) -> str:
    """Return a search path on which there are no user namespaces."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "setpriv").symlink_to(shutil.which("setpriv") or "")
    return str(programs)


@pytest.mark.fault
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
class TestAsRoot:
    def test_server_runs_in_a_user_namespace_and_its_files_stay_with_root(self, folder: Path) -> None:
        with database.running(folder):
            assert Path(f"/proc/{postmaster(folder)}/ns/user").readlink() != Path("/proc/self/ns/user").readlink()
            assert database.cluster_of(folder).stat().st_uid == 0

    def test_server_runs_as_the_owner_of_the_folder(self, folder: Path) -> None:
        os.chown(folder, NOBODY, -1)
        with database.running(folder):
            assert Path(f"/proc/{postmaster(folder)}").stat().st_uid == NOBODY

    def test_server_of_another_user_ends_with_its_parent(self, folder: Path) -> None:
        os.chown(folder, NOBODY, -1)
        process = command(folder)
        process.kill()
        process.communicate()
        servers.wait_until(lambda: not list(database._processes_in(database.cluster_of(folder))))

    def test_server_runs_as_nobody_without_user_namespaces(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", without_unshare(folder))
        for _ in range(2):
            with database.running(folder):
                assert Path(f"/proc/{postmaster(folder)}").stat().st_uid == NOBODY
        assert folder.stat().st_mode & 0o066 == 0

    def test_prepare_says_that_no_other_user_can_reach_the_folder(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", without_unshare(folder))
        inner = folder / "inner"
        inner.mkdir()
        with pytest.raises(StartupError, match="DATABASE_URL"):
            database.prepare(inner)
