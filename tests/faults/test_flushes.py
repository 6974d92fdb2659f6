"""Each answer to a rater comes after its commit is on the disk: PostgreSQL's log shows where each commit ends, and the
server's own figures show up to where it had flushed the log when the answer arrived, and how often it flushed."""

import re
import subprocess
from pathlib import Path

import pytest
from django.db import connection

from host import postgresql
from tests import factories, servers
from tests.faults import platforms, test_kill_9
from tests.faults.http_raters import HttpBrowser
from tests.faults.power_cut import flushed_position, parse_position

WRITES = 500
_COMMIT = re.compile(r"tx:\s+(\d+), lsn: ([0-9A-F]+/[0-9A-F]+),.*desc: COMMIT")


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.django_db(transaction=True)
def test_each_answer_comes_after_its_flush(tmp_path: Path, started_data: Path) -> None:
    with (
        platforms.running_platform(tmp_path, platforms.OneMachine, started_data) as platform,
        servers.publish_to(platform.broker),
    ):
        assert isinstance(platform, platforms.OneMachine)
        project = test_kill_9.make_work()
        user = factories.make_user()
        factories.make_rater(project, user)
        browser = HttpBrowser(platform.url, user, lambda: True)
        answer = browser.send(f"/work/{project.slug}/claim", {"opened": True})
        assert answer is not None
        mine, step = answer[1]["assignment"], answer[1]["steps"][0]["position"]
        began_at, flushes = flushed_position(), count_flushes()
        flushed_at = {}
        for number in range(1, WRITES + 1):
            write = {"sequence": number, "seen": 0, "kind": "rate", "step": step, "option": 0, "rating": number % 3 - 1}
            answer = browser.send(f"/work/{mine}/record", {"client": "flushed", "writes": [write]})
            flushed_at[number] = flushed_position()
            assert answer is not None
            assert answer[0] == 200, answer[1]
        committed_at = read_commits(platform.data, began_at)
        positions = {number: committed_at[transaction] for number, transaction in list_transactions(mine)}
        assert len(positions) == WRITES
        assert [number for number, position in positions.items() if position >= flushed_at[number]] == []
        # One rater waits for each answer, so no two commits can share a flush.
        servers.wait_until(lambda: count_flushes() - flushes >= WRITES, what="the figures of all flushes")


def count_flushes() -> int:
    """Return how often the server has flushed its log. Each process reports its share when it pauses."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT SUM(fsyncs) FROM pg_stat_io WHERE object = 'wal'")
        return int(cursor.fetchone()[0])


def list_transactions(assignment: int) -> list[tuple[int, str]]:
    """Return the number of each edit with the transaction that wrote it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sequence, xmin::text FROM labeling_ratingedit WHERE assignment_id = %s AND client = 'flushed'",
            [assignment],
        )
        return list(cursor.fetchall())


def read_commits(data: Path, begins: int) -> dict[str, int]:
    """Return the position of each commit in the log."""
    programs = postgresql.programs()
    assert programs is not None
    start = f"{begins >> 32:X}/{begins & 0xFFFFFFFF:X}"
    log = data / "postgresql" / "pg_wal"
    command = [str(programs / "pg_waldump"), "--path", str(log), "--rmgr", "Transaction", "--start", start]
    # It ends with an error, because the log does not end.
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return {found[1]: parse_position(found[2]) for found in _COMMIT.finditer(listed)}
