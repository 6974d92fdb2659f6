"""Run the embedded database: a PostgreSQL server on a Unix socket, without a port.

The supervisor, the commands and the tests use it. It needs the standard library only.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from host import postgresql, socket_paths
from supervisor import StartupError, child, install, paths, privileges

USER = "stepmark"
READY_WITHIN = 120.0  # crash recovery after a power failure reads up to a gigabyte of log
LEFTOVERS_END_WITHIN = 2.0

_OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "50",
    "shared_buffers": "64MB",
    "io_method": "sync",  # saves three idle processes
    "wal_level": "minimal",  # nothing replicates; loading a new table then skips the log
    "max_wal_senders": "0",
    "max_logical_replication_workers": "0",
    "jit": "off",
    "fsync": "on",
    "synchronous_commit": "on",
    "log_checkpoints": "off",
    "log_timezone": "UTC",
    "timezone": "UTC",
}
_INITDB = [
    f"--username={USER}",
    "--auth=trust",  # the folder and the socket admit their owner only
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",  # text sorts the same on every system
    "--builtin-locale=C.UTF-8",
    "--no-sync",
    "--no-instructions",
]
# The first bytes of the database files that Stepmark wrote before it used PostgreSQL.
_FORMER_HEADER = bytes.fromhex("53514c69746520666f726d6174203300")


def cluster_of(folder: Path) -> Path:
    """Return where PostgreSQL stores its files."""
    return folder / "postgresql"


def prepare(folder: Path) -> None:
    """Create the cluster if there is none. Raise `Trouble` if the data folder belongs to another version."""
    cluster, programs = cluster_of(folder), _programs()
    _check_versions(folder, cluster, postgresql.major_version(programs / "postgres"))
    account = privileges.choose(folder, cluster, programs)
    _make_socket_folder(socket_paths.database_folder(folder), cluster, account)
    if not cluster.exists():
        _create(folder, cluster, programs, account)


def start(
    folder: Path, *, env: Mapping[str, str], output: int, options: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start the server. It shuts down at once when this process dies."""
    cluster, programs = cluster_of(folder), _programs()
    account = privileges.choose(folder, cluster, programs)
    _end_leftovers(cluster, socket_paths.database_folder(folder))
    socket_folder = {"unix_socket_directories": str(socket_paths.database_folder(folder))}
    chosen = {**_OPTIONS, **socket_folder, **(options or {})}
    command = [str(programs / "postgres"), "-D", str(cluster)]
    command += [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
    return child.start_guarded(
        [*account.prefix, *command],
        env=env,
        output=output,
        death_signal=signal.SIGQUIT,  # the postmaster then ends its own children, which SIGKILL would orphan
    )


def answers(folder: Path) -> bool:
    """Return whether the server accepts connections."""
    host = f"--host={socket_paths.database_folder(folder)}"
    ask = [str(_programs() / "pg_isready"), "--quiet", host, "--port=5432", f"--username={USER}", "--dbname=postgres"]
    return subprocess.run(ask, check=False).returncode == 0  # noqa: S603 (our own command)


@contextlib.contextmanager
def running(folder: Path, *, options: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run the server for the duration of the block. The caller makes sure that nobody else runs it."""
    prepare(folder)
    log = folder / "logs" / "postgresql.log"
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = start(folder, env=os.environ, output=output.fileno(), options=options)
    try:
        _wait_for(folder, process, log)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(folder: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + READY_WITHIN
    while not answers(folder):
        if process.poll() is not None or time.monotonic() > ends:
            raise StartupError(f"PostgreSQL does not start: {child.last_log_line(log)} (its log is {log})")
        time.sleep(0.02)


def _programs() -> Path:
    """Return the folder of the wheel's programs. `./run` itself may run on a Python without the wheel."""
    global _found
    if _found is None:
        _found = postgresql.programs() or _programs_of(install.PYTHON)
    if _found is None or not (_found / "postgres").exists():
        raise StartupError("There is no PostgreSQL for this kind of machine: set DATABASE_URL to a PostgreSQL server.")
    return _found


_found: Path | None = None


def _programs_of(python: Path) -> Path | None:
    command = [str(python), "-m", "host.postgresql"]
    done = subprocess.run(command, cwd=paths.BASE, capture_output=True, text=True, check=False)  # noqa: S603 (our own Python)
    return Path(done.stdout) if done.returncode == 0 and done.stdout else None


def _check_versions(folder: Path, cluster: Path, ours: int) -> None:
    if not cluster.exists():
        for file in folder.glob("stepmark.*"):
            if _is_former_database(file):
                raise StartupError(
                    f"{file} is the database of an older version of Stepmark, and this version stores its data in"
                    " PostgreSQL and cannot read it: export what you need with the older version, then move the file"
                    " away, or start with an empty folder: --data DIR."
                )
        return
    there = (cluster / "PG_VERSION").read_text().strip()
    if there != str(ours):
        raise StartupError(
            f"{cluster} was written by PostgreSQL {there}, and this version of Stepmark runs PostgreSQL {ours}."
            " With the version of Stepmark that wrote it, run `python manage.py backup FILE`; then move that folder"
            " away and run `python manage.py restore FILE` with this version."
        )


def _is_former_database(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_FORMER_HEADER)) == _FORMER_HEADER


def _make_socket_folder(socket_folder: Path, cluster: Path, account: privileges.Account) -> None:
    if socket_folder == cluster:
        return
    socket_folder.mkdir(mode=0o700, exist_ok=True)
    if socket_folder.stat().st_uid not in {os.getuid(), account.owner}:
        raise StartupError(
            f"The folder {socket_folder} belongs to another user: remove it, or set TMPDIR to another folder."
        )
    account.own(socket_folder)
    print(f"The path {cluster} is too long for a Unix socket; PostgreSQL's socket is in {socket_folder}.", flush=True)


def _create(folder: Path, cluster: Path, programs: Path, account: privileges.Account) -> None:
    """Create the cluster under another name first, so that an interrupted start leaves no half of one."""
    draft = folder / "postgresql.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    account.own(draft)
    done = subprocess.run(  # noqa: S603 (our own command)
        [*account.prefix, str(programs / "initdb"), "-D", str(draft), *_INITDB],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    if done.returncode:
        raise StartupError(
            f"PostgreSQL could not be set up in {folder}: {' '.join(done.stderr.split()) or 'no reason given'}"
        )
    draft.rename(cluster)
    # initdb would sync file by file, which takes seconds. Until this returns, only a power failure can do harm.
    threading.Thread(target=os.sync, daemon=True).start()


def _end_leftovers(cluster: Path, socket_folder: Path) -> None:
    """End what is left of a server whose postmaster was killed. A new one refuses to start beside it.

    The caller holds the data folder, so no other server can be running on it.
    """
    if not sys.platform.startswith("linux"):
        return
    ends = time.monotonic() + LEFTOVERS_END_WITHIN
    while left := list(_processes_in(cluster)):
        if time.monotonic() > ends:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    # The process number in them may belong to an unrelated process by now, which would keep PostgreSQL from starting.
    for lock in (cluster / "postmaster.pid", socket_folder / f"{socket_paths.DATABASE_SOCKET}.lock"):
        lock.unlink(missing_ok=True)


def _processes_in(cluster: Path) -> Iterator[int]:
    """Find PostgreSQL's processes: each works in the folder of its cluster."""
    wanted = str(cluster.resolve())
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            is_there = process.name.isdecimal() and os.readlink(process / "cwd") == wanted
            if is_there and (process / "exe").resolve().name == "postgres":
                yield int(process.name)
