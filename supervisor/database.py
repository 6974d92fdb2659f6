"""Run the embedded database: a PostgreSQL server on a Unix socket, without a port.

`manage.py` commands can use it whether or not `./run` is running. While `./run` is running, they use its server.
Otherwise the first command starts one, commands beside it share it, and the first command stops it after the last of
them ended.
"""

import contextlib
import fcntl
import functools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from host import postgresql, socket_paths
from supervisor import StartupError, children, install, paths

USER = "stepmark"
READY_WITHIN = 120.0  # crash recovery after a power failure reads up to a gigabyte of log
LEFTOVERS_END_WITHIN = 2.0
COMMANDS_END_WITHIN = 10.0
ANSWERS_WITHIN = 30.0

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
    # Fewer checkpoints write less, and wake less often. A crash recovers by reading at most a gigabyte of log.
    "checkpoint_timeout": "15min",
    # While someone works, these processes would wake five times a second, to do what the commits have done already.
    "bgwriter_delay": "2s",
    "bgwriter_lru_maxpages": "1000",  # as many per second as with the default delay
    "wal_writer_delay": "2s",
    "autovacuum_naptime": "5min",  # each time starts a process; the worker analyzes tables that grew by half
    "fsync": "on",
    "synchronous_commit": "on",
    "log_checkpoints": "off",
    # Statements and details of errors contain what people typed.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
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


@dataclass(frozen=True)
class Account:
    """How a PostgreSQL program is started, and who owns its files."""

    prefix: list[str] = field(default_factory=list)
    owner: int | None = None

    @classmethod
    def of(cls, user: int, group: int) -> "Account":
        # A change of user makes the kernel forget that this process ends with its parent.
        drop = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--pdeathsig=QUIT"]
        return cls(prefix=drop, owner=user)

    def can_use(self, folder: Path, program: Path) -> bool:
        test = ["/bin/sh", "-c", 'test -w "$0" && "$1" --version', str(folder), str(program)]
        try:
            done = subprocess.run([*self.prefix, *test], capture_output=True, check=False, cwd="/")  # noqa: S603 (our own command)
        except OSError:
            return False
        return done.returncode == 0

    def own(self, folder: Path) -> None:
        if self.owner is not None:
            os.chown(folder, self.owner, -1)


def cluster_of(folder: Path) -> Path:
    """Return where PostgreSQL stores its files."""
    return folder / "postgresql"


def prepare(folder: Path) -> None:
    """Create the cluster if there is none. Raise `StartupError` if the data folder belongs to another version."""
    cluster, programs = cluster_of(folder), _programs()
    _check_versions(folder, cluster, postgresql.major_version(programs / "postgres"))
    account = _choose_account(folder, cluster, programs)
    _make_socket_folder(socket_paths.database_folder(folder), cluster, account)
    if not cluster.exists():
        _create(folder, cluster, programs, account)


def start(
    folder: Path, *, env: Mapping[str, str], output: int, options: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start the server. It shuts down immediately when this process dies."""
    cluster, programs = cluster_of(folder), _programs()
    account = _choose_account(folder, cluster, programs)
    _end_leftovers(cluster, socket_paths.database_folder(folder))
    socket_folder = {"unix_socket_directories": str(socket_paths.database_folder(folder))}
    chosen = {**_OPTIONS, **socket_folder, **(options or {})}
    command = [str(programs / "postgres"), "-D", str(cluster)]
    command += [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
    return children.start_guarded(
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
    """Run the server for the duration of the block. The caller makes sure that no one else runs it."""
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
            raise StartupError(f"PostgreSQL did not start: {children.last_log_line(log)} (its log is {log})")
        time.sleep(0.02)


@contextlib.contextmanager
def serve_command(folder: Path) -> Iterator[None]:
    """Make sure that the database answers for the duration of the block."""
    with _commands_file(folder) as users:
        with _one_at_a_time(folder):
            fcntl.flock(users, fcntl.LOCK_SH)
            server = contextlib.ExitStack()
            if not _await_supervisor(folder):
                server.enter_context(running(folder))
                server.callback(fcntl.flock, users, fcntl.LOCK_EX)  # called first: waits until the other commands ended
        with server:
            yield


@contextlib.contextmanager
def no_command(folder: Path) -> Iterator[None]:
    """Let the supervisor start its server: wait for commands to end, and keep new ones waiting in the meantime."""
    ends = time.monotonic() + COMMANDS_END_WITHIN
    with _one_at_a_time(folder), _commands_file(folder) as users:
        while True:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if time.monotonic() > ends:
                    raise StartupError(
                        f"A manage.py command is still running on {folder}: wait for it to end, then start again."
                    ) from error
                time.sleep(0.1)
        yield


def _await_supervisor(folder: Path) -> bool:
    """Return whether a server answers. One that `./run` is about to start or restart is waited for."""
    ends = time.monotonic() + ANSWERS_WITHIN
    while not answers(folder):
        if not _is_locked(folder / "supervisor.lock"):
            return False
        if time.monotonic() > ends:
            raise StartupError(
                f"./run is running on {folder}, but its database does not answer: see {folder / 'logs'}."
            )
        time.sleep(0.1)
    return True


def _is_locked(file: Path) -> bool:
    if not file.exists():
        return False
    with file.open("r") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _commands_file(folder: Path) -> IO[str]:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return (folder / "commands.lock").open("a")
    except OSError as error:
        raise StartupError(
            f"The data folder {folder} cannot be used ({error.strerror}): choose another with --data DIR."
        ) from error


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Let one process at a time decide who starts the server."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@functools.cache
def _programs() -> Path:
    """Return the folder of the wheel's programs. `./run` itself may run on a Python without the wheel."""
    found = postgresql.programs()
    if found is None:
        command = [str(install.PYTHON), "-m", "host.postgresql"]
        done = subprocess.run(command, cwd=paths.BASE, capture_output=True, text=True, check=False)  # noqa: S603 (our own Python)
        found = Path(done.stdout) if done.returncode == 0 and done.stdout else None
    if found is None or not (found / "postgres").exists():
        raise StartupError("There is no embedded PostgreSQL for this machine: set DATABASE_URL to a server.")
    return found


def _check_versions(folder: Path, cluster: Path, ours: int) -> None:
    if not cluster.exists():
        for file in folder.glob("stepmark.*"):
            with file.open("rb") as opened:
                is_former = opened.read(len(_FORMER_HEADER)) == _FORMER_HEADER
            if is_former:
                raise StartupError(
                    f"{file} is the database of an older version of Stepmark, and this version stores its data in"
                    " PostgreSQL and cannot read it. Export what you need with the older version, then move the file"
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


def _make_socket_folder(socket_folder: Path, cluster: Path, account: Account) -> None:
    if socket_folder == cluster:
        return
    paths.create_socket_folder(socket_folder, owner=account.owner)
    account.own(socket_folder)
    print(f"The path {cluster} is too long for a Unix socket; PostgreSQL's socket is in {socket_folder}.", flush=True)


def _create(folder: Path, cluster: Path, programs: Path, account: Account) -> None:
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
    """End the remaining processes of a server whose postmaster was killed. A new server refuses to start beside them.

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


def _choose_account(folder: Path, cluster: Path, programs: Path) -> Account:
    """Choose who runs the server. For root: the folder's owner, else a user namespace, else an unprivileged user."""
    if os.geteuid() != 0:
        return Account()
    program = programs / "postgres"
    at = cluster if cluster.exists() else folder
    owner = at.stat()
    if owner.st_uid != 0:
        account = Account.of(owner.st_uid, owner.st_gid)
        if account.can_use(at, program):
            return account
    elif (account := Account(prefix=_namespace())).prefix and account.can_use(at, program):
        return account
    elif not cluster.exists() and (lowered := _nobody(folder, program)):
        return lowered
    raise StartupError(
        f"PostgreSQL does not run as root, and no other user can reach {folder} and {programs}: start Stepmark as an"
        " ordinary user, or set DATABASE_URL to a PostgreSQL server."
    )


def _namespace() -> list[str]:
    """Return the beginning of a command that runs as root outside and as another user inside."""
    # initdb looks the user up by name.
    known = [each.pw_uid for each in pwd.getpwall() if each.pw_uid >= 1000]
    if not known or not shutil.which("unshare"):
        return []
    return ["unshare", "--user", f"--map-user={min(known)}", f"--map-group={min(known)}"]


def _nobody(folder: Path, program: Path) -> Account | None:
    """Return an unprivileged user who can reach the folder. The folder stays closed to listing."""
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        return None
    account = Account.of(nobody.pw_uid, nobody.pw_gid)
    before = folder.stat().st_mode & 0o777
    folder.chmod(before | 0o011)
    probe = folder / "postgresql.probe"
    probe.mkdir(mode=0o700, exist_ok=True)
    try:
        account.own(probe)
        if account.can_use(probe, program):
            return account
    finally:
        probe.rmdir()
    folder.chmod(before)
    return None
