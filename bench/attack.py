"""Measure raters during an attack: `python -m bench.attack [--seconds 60] [--blocks 2]`.

Sixteen raters work on a web server with its limits on, each with a pause of 0.3 s before a request. Quiet blocks and
attacked blocks alternate. In an attacked block, 64 sockets send heads and bodies a byte at a time or take no response,
and eight senders without a login upload files of 300 MB to the login page as fast as they can. The attackers run in
processes of the lowest priority, because an attacker elsewhere takes no processor time from the server.

The report compares the 95th percentile of recording ratings, and has errors of raters, memory of the web server, and
files that uploads left. Ends with one line of JSON.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from bench import submission_load, submission_server

RATERS = 16
SLOW_SOCKETS = 64
SENDERS = 8
UPLOAD_BYTES = 300_000_000
MAX_RATIO = 2.0
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
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--blocks", type=int, default=1)
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
        for number in range(2 * options.blocks):
            command = [sys.executable, "-m", "bench.attack", "--attack", str(server.port)]
            attackers = None
            if is_attacked := bool(number % 2):
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
    quiet, attacked = ([each for each in blocks if each["is_attacked"] is is_attacked] for is_attacked in (False, True))
    p95 = [sum(each["waits_ms"]["record"]["p95"] for each in some) / len(some) for some in (quiet, attacked)]
    growth = max(each["memory_mb"] for each in attacked) - quiet[0]["memory_mb"]
    errors, left = sum(each["errors"] for each in blocks), max(each["uploaded_mb"] for each in blocks)
    ratio = round(p95[1] / p95[0], 2)
    has_passed = ratio <= MAX_RATIO and not errors and growth <= MAX_GROWTH_MB and not left
    result = {"record_p95_ratio": ratio, "errors": errors, "memory_growth_mb": round(growth, 1), "uploaded_mb": left}
    print(json.dumps({"bench": "attack", **result, "has_passed": has_passed, "blocks": blocks}))


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
