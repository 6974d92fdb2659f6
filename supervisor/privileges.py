"""Choose the user who runs PostgreSQL, which refuses to run as root."""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from supervisor import StartupError


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


def choose(folder: Path, cluster: Path, programs: Path) -> Account:
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
    elif (account := Account(prefix=namespace())).prefix and account.can_use(at, program):
        return account
    elif not cluster.exists() and (lowered := _nobody(folder, program)):
        return lowered
    raise StartupError(
        f"PostgreSQL does not run as root, and no other user can reach {folder} and {programs}: start Stepmark as an"
        " ordinary user, or set DATABASE_URL to a PostgreSQL server."
    )


def namespace() -> list[str]:
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
