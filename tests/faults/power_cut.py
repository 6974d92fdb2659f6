"""The state of a disk after a power cut, computed from a running PostgreSQL.

The processes of the server are stopped for a moment. A possible state of its files after a power cut is then written
into another folder:

- The log up to the position that the server had reported as flushed. What it had written beyond is there, is missing,
  or is there in parts.
- A page of a table from the last checkpoint, or the current one, or half of each. The server never writes a page that
  is newer than the flushed log; a page that became newer in the meantime is taken from the checkpoint.
- All other files from the last checkpoint: the commit log, above all.

This trusts PostgreSQL's report of what it flushed; `test_flushes.py` counts the flushes. It assumes that a flush
reaches the disk, and that a write keeps or replaces whole blocks of 4 kB.
"""

import os
import random
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.db import connection

PAGE, BLOCK, SEGMENT = 8192, 4096, 16 * 2**20
_TABLE_FILE = re.compile(r"(base/\d+|global)/\d+(_fsm|_vm)?(\.\d+)?")
_SEGMENT_FILE = re.compile(r"[0-9A-F]{24}")
_LEFT_OUT = re.compile(r"postmaster\.(pid|opts)|\.s\.PGSQL.*")
_CONTROL_CHECKPOINT = slice(32, 40)  # the position of the latest checkpoint in global/pg_control


class PowerCutter:
    def __init__(self, data: Path, chance: random.Random) -> None:
        self.cluster, self.base, self.chance = data / "postgresql", data.with_name("base"), chance
        self.take_base()

    def take_base(self) -> None:
        """Copy the files as of a checkpoint, all of which it has flushed."""
        with connection.cursor() as cursor:
            cursor.execute("CHECKPOINT")
        shutil.rmtree(self.base, ignore_errors=True)
        with self._stopped_server():
            shutil.copytree(self.cluster, self.base, ignore=lambda _at, names: set(filter(_LEFT_OUT.fullmatch, names)))

    def cut(self, target: Path, flushed: int) -> bool:
        """Write a possible state of the disk into `target`. `flushed` is the position of the log that the server
        reported. Return False if there was a checkpoint since the base, so that the base says nothing."""
        with self._stopped_server():
            if self._checkpoint(self.cluster) != self._checkpoint(self.base):
                return False
            names = {str(file.relative_to(root)) for root in (self.cluster, self.base) for file in _files(root)}
            for folder in (each for each in self.base.rglob("*") if each.is_dir()):
                (target / folder.relative_to(self.base)).mkdir(mode=0o700, parents=True, exist_ok=True)
            target.chmod(0o700)
            for name in sorted(names):
                self._write_file(target, name, flushed)
        for path in (target, *target.rglob("*")):
            shutil.chown(path, self.cluster.stat().st_uid, self.cluster.stat().st_gid)
        return True

    def _write_file(self, target: Path, name: str, flushed: int) -> None:
        before, now, copy = self.base / name, self.cluster / name, target / name
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if name.startswith("pg_wal/") and _SEGMENT_FILE.fullmatch(now.name):
            if now.exists():
                self._write_log(copy, now.read_bytes(), flushed)
        elif before.exists() and now.exists() and _TABLE_FILE.fullmatch(name):
            copy.write_bytes(self._mix_pages(before.read_bytes(), now.read_bytes(), flushed))
        else:
            shutil.copyfile(before if before.exists() else now, copy)

    def _write_log(self, copy: Path, content: bytes, flushed: int) -> None:
        """Write a segment of the log up to the flushed position, and what may have reached the disk of the rest."""
        begins = (int(copy.name[8:16], 16) << 32) + int(copy.name[16:], 16) * SEGMENT
        kept = min(max(flushed - begins, 0), SEGMENT)
        rest = content[kept:]
        rest = self.chance.choice([rest, bytes(len(rest)), self._some_blocks(rest)])
        copy.write_bytes(content[:kept] + rest)

    def _some_blocks(self, rest: bytes) -> bytes:
        first = len(rest) % BLOCK
        blocks = [rest[:first], *(rest[start : start + BLOCK] for start in range(first, len(rest), BLOCK))]
        return b"".join(block if self.chance.random() < 0.5 else bytes(len(block)) for block in blocks)

    def _mix_pages(self, before: bytes, now: bytes, flushed: int) -> bytes:
        if before == now:
            return before
        pages = []
        is_longer = self.chance.random() < 0.5  # the new length may not have reached the disk
        for start in range(0, len(now) if is_longer else len(before), PAGE):
            old, new = before[start : start + PAGE] or bytes(PAGE), now[start : start + PAGE]
            pages.append(new if old == new else self._mix_page(old, new, flushed))
        return b"".join(pages)

    def _mix_page(self, old: bytes, new: bytes, flushed: int) -> bytes:
        if len(new) < PAGE or _page_position(new) > flushed:
            return old
        halves = [self.chance.choice([old, new])[half : half + BLOCK] for half in range(0, PAGE, BLOCK)]
        return b"".join(halves)

    @staticmethod
    def _checkpoint(cluster: Path) -> bytes:
        return (cluster / "global" / "pg_control").read_bytes()[_CONTROL_CHECKPOINT]

    @contextmanager
    def _stopped_server(self) -> Iterator[None]:
        """Stop all processes of the server. A process that forks is stopped first, so none is missed."""
        postmaster = int((self.cluster / "postmaster.pid").read_text().split()[0])
        stopped = [postmaster]
        os.kill(postmaster, signal.SIGSTOP)
        try:
            for child in Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGSTOP)
                    stopped.append(int(child))
            for pid in stopped:
                _wait_until_stopped(pid)
            yield
        finally:
            for pid in reversed(stopped):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


def flushed_position() -> int:
    """Return the position up to which the server reports its log as flushed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_flush_lsn()")
        return parse_position(cursor.fetchone()[0])


def parse_position(text: str) -> int:
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def _page_position(page: bytes) -> int:
    """Return the position of the log that describes the latest change of a page."""
    return (int.from_bytes(page[:4], "little") << 32) + int.from_bytes(page[4:8], "little")


def _wait_until_stopped(pid: int) -> None:
    stat = Path(f"/proc/{pid}/stat")
    with suppress(FileNotFoundError):
        while stat.read_text().rpartition(")")[2].split()[0] not in "TtZX":
            os.sched_yield()


def _files(root: Path) -> Iterator[Path]:
    return (each for each in root.rglob("*") if each.is_file() and not _LEFT_OUT.fullmatch(each.name))
