"""Measure raters during an attack: `python -m bench.attack [--seconds 15] [--rounds 5]`.

Sixteen raters work on a web server with its limits on, each with a pause of 0.3 s before a request. In an attack, 64
sockets send heads and bodies a byte at a time or take no response, and eight senders without a login upload files of
300 MB to the login page as fast as they can. The attackers run in processes of the lowest priority, because an attacker
elsewhere takes no processor time from the server.

A round is a quiet block, an attacked block and a quiet block. Its ratio is the 95th percentile of recording ratings in
the attacked block over the mean of the two quiet ones, so that other load of the machine, which changes slowly, affects
both. A round is dropped if its two quiet blocks differ by more than a factor of 1.5. The result is the median of the
ratios. The report also states the errors of raters, the memory of the web server, and the files that uploads left
behind. Ends with one line of JSON. `--seconds 60 --rounds 1` attacks for a whole minute.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from bench import submission_load, submission_server

RATERS = 16
SLOW_SOCKETS = 64
SENDERS = 8
UPLOAD_BYTES = 300_000_000
MAX_RATIO = 2.0
MAX_DRIFT = 1.5
MAX_GROWTH_MB = 256
_POST = b"POST /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
SLOW_BEGINNINGS = (
    b"GET /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-Slow: ",
    _POST + b"Content-Length: 1000\r\n\r\nabc",
    _POST + b"Content-Length: 1000000\r\n\r\nabc",
    b"GET /api/schema HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",  # never read
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--attack", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        attack(options.attack, options.seconds)
        return
    folder = Path(tempfile.mkdtemp(prefix="bench-attack-"))
    try:
        with submission_server.create_database(folder) as environment:
            report(measure(options, folder, environment | {"STEPMARK_RATE_LIMIT_FACTOR": "1"}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(options: argparse.Namespace, folder: Path, environment: dict[str, str]) -> list[dict[str, Any]]:
    environment |= {"STEPMARK_WEB_WORKERS": "1", "STEPMARK_LOG_LEVEL": "ERROR"}
    users = submission_server.fill_database(environment, 10_000, RATERS)
    blocks = []
    with submission_server.run_web_server(environment, folder) as server:
        run_raters(server, users["sessions"], 3)
        urlopen(f"http://127.0.0.1:{server.port}/api/schema", timeout=60).close()  # the first one is slow
        submission_server.analyze_database(environment)
        for is_attacked in [False, True] * options.rounds + [False]:
            command = [sys.executable, "-m", "bench.attack", "--attack", str(server.port)]
            attackers = None
            if is_attacked:
                command += ["--seconds", str(options.seconds + 2)]
                attackers = subprocess.Popen(
                    command, cwd=submission_server.ROOT, env=environment, stdout=subprocess.PIPE
                )
                time.sleep(2)
            block = run_raters(server, users["sessions"], options.seconds)
            block |= {"is_attacked": is_attacked, "uploaded_mb": folder_mb(folder / "uploading")}
            if attackers:
                output, _ = attackers.communicate(timeout=60)
                block |= {"attack": json.loads(output.splitlines()[-1])}
            blocks.append(block)
    return blocks


def run_raters(server: submission_server.WebServerProcess, sessions: list[str], seconds: float) -> dict[str, Any]:
    load = submission_load.run_raters(server.port, sessions, seconds=seconds, who=submission_load.ThinkingHttpRater)
    memory = max(resident_mb(pid) for pid in submission_server.child_pids(server.process.pid))
    return {"cycles": load["cycles"], "errors": load["errors"], "waits_ms": load["waits_ms"], "memory_mb": memory}


def resident_mb(pid: int) -> float:
    """Return the highest memory of a process so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024, 1)


def folder_mb(folder: Path) -> float:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 1)


def report(blocks: list[dict[str, Any]]) -> None:
    print(f"{'':>10} {'traces':>8} {'errors':>8} {'record p95':>11} {'claim p95':>10} {'memory MB':>10}")
    for block in blocks:
        waits = [block["waits_ms"][name]["p95"] for name in ("record", "claim")]
        name = "attacked" if block["is_attacked"] else "quiet"
        figures = [block["cycles"], block["errors"], *waits, block["memory_mb"]]
        print(f"{name:>10} {figures[0]:>8} {figures[1]:>8} {figures[2]:>11} {figures[3]:>10} {figures[4]:>10}")
    rounds = [compare_round(*blocks[start : start + 3]) for start in range(0, len(blocks) - 1, 2)]
    for number, each in enumerate(rounds, start=1):
        remark = "" if each.is_kept else "  dropped: the quiet blocks differ"
        print(f"round {number}: ratio {each.ratio:.2f}, quiet blocks differ by {each.drift:.2f}{remark}")
    kept = [each.ratio for each in rounds if each.is_kept]
    growth = max(each["memory_mb"] for each in blocks) - blocks[0]["memory_mb"]
    errors, left = sum(each["errors"] for each in blocks), max(each["uploaded_mb"] for each in blocks)
    was_measured = 2 * len(kept) > len(rounds)
    ratio = round(statistics.median(kept), 2) if was_measured else None
    has_passed = ratio is not None and ratio <= MAX_RATIO and not errors and growth <= MAX_GROWTH_MB and not left
    if not was_measured:
        print("NOT MEASURED: half of the rounds or more were dropped")
    result = {"record_p95_ratio": ratio, "rounds_kept": len(kept), "rounds_dropped": len(rounds) - len(kept)}
    result |= {"errors": errors, "memory_growth_mb": round(growth, 1), "uploaded_mb": left}
    print(json.dumps({"bench": "attack", **result, "has_passed": has_passed, "blocks": blocks}))


class RoundRatio(NamedTuple):
    """The 95th percentile in an attacked block over that of the quiet blocks around it."""

    ratio: float
    drift: float  # of the quiet blocks

    @property
    def is_kept(self) -> bool:
        return self.drift <= MAX_DRIFT


def compare_round(before: dict[str, Any], attacked: dict[str, Any], after: dict[str, Any]) -> RoundRatio:
    first, during, last = (each["waits_ms"]["record"]["p95"] for each in (before, attacked, after))
    return RoundRatio(2 * during / (first + last), max(first, last) / min(first, last))


# --- the attackers, in a process of their own ------------------------------------------------------------------------


def attack(port: int, seconds: float) -> None:
    os.nice(19)
    until, seen = time.monotonic() + seconds, Counter[str]()
    acts = [(hold_slow_socket, number) for number in range(SLOW_SOCKETS)]
    acts += [(send_uploads, number) for number in range(SENDERS)]
    threads = [threading.Thread(target=act, args=(port, number, until, seen), daemon=True) for act, number in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 20)
    print(json.dumps(seen))


def hold_slow_socket(port: int, number: int, until: float, seen: "Counter[str]") -> None:
    """Keep one slow connection open, and open the next when the server closes it."""
    beginning = SLOW_BEGINNINGS[number % len(SLOW_BEGINNINGS)] % port
    while time.monotonic() < until:
        with contextlib.suppress(OSError), connect(port, small_buffer=True) as line:
            line.sendall(beginning)
            seen["slow connections"] += 1
            while time.monotonic() < until:
                time.sleep(1)
                if number % len(SLOW_BEGINNINGS) < 3:
                    line.sendall(b"x")
        time.sleep(0.1)


def send_uploads(port: int, number: int, until: float, seen: "Counter[str]") -> None:
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    kind = b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n" % UPLOAD_BYTES
    cookie = b"Cookie: csrftoken=%b\r\n" % (b"a" * 32)
    piece = bytes(1 << 16)
    while time.monotonic() < until:
        with contextlib.suppress(OSError), connect(port) as line:
            seen["uploads"] += 1
            line.sendall(_POST % port + cookie + kind + head)
            for _ in range(UPLOAD_BYTES // len(piece)):
                line.sendall(piece)
                if time.monotonic() > until:
                    return


def connect(port: int, *, small_buffer: bool = False) -> socket.socket:
    line = socket.socket()
    if small_buffer:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.settimeout(10)
    line.connect(("127.0.0.1", port))
    return line


if __name__ == "__main__":
    main()
