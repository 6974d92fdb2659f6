"""Measure what a label costs as people make it: `python -m bench.page_cycle [--traces 1000 1000000] [--raters 16]`.

Starts the whole platform with `./run` in a temporary folder, fills its database, and lets raters send what their
browsers send: `page_requests.json` has the requests of the work page with the number of keys pressed before each,
recorded from the page by tests/journeys/test_page_requests.py, which fails if the page sends anything else. `--pace
person` is 2.5 s a step, `--pace hurried` 70 ms; then a browser sends at most one ending a second.

The processor time is that of all processes: web server, worker, PostgreSQL, Valkey and supervisor. Their background
work is included, so one rater alone pays for all of it.

The time is divided into blocks of one trace per rater. A block is dropped if other programs took more than a tenth of
the machine; with fewer than half kept, the result is "not measured". Ends with one line of JSON.
"""

import argparse
import http.client
import itertools
import json
import os
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.whole_platform import MachineLoad, WholePlatform, run_module, running_platform

REQUESTS = Path(__file__).with_name("page_requests.json")
SLUG = "bench"  # of the project that `submission_fill` makes
TOKEN = "b" * 32  # the CSRF check only compares cookie and header
MAX_OTHERS = 0.1
LEAST_SECONDS_BETWEEN_ENDINGS = 1.0  # as in static/js/work/network.js
MAX_MS = {16: 8.0, 1: 60.0}  # a trace, by the number of raters
P95_MS = 50.0

Request = dict[str, Any]


class PageRater(threading.Thread):
    """A browser: repeats the recorded requests of one trace after the other."""

    def __init__(self, platform: WholePlatform, session: str, number: int, pace: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self.line = http.client.HTTPConnection(urlsplit(platform.url).netloc, timeout=30)
        self.headers = {
            "Cookie": f"sessionid={session}; csrftoken={TOKEN}",
            "X-CSRFToken": TOKEN,
            "Content-Type": "application/json",
        }
        self.client, self.sequences = f"{number:032x}", itertools.count(1)
        self.traces: list[list[Request]] = pace["traces"]
        self.seconds_per_key = pace["milliseconds_per_key"] / 1000
        self.n_steps: int = pace["steps"]
        self.delay = number * (self.seconds_per_key * (self.n_steps + 1)) / 16  # people do not start at the same moment
        self.is_over = threading.Event()
        self.done = 0
        self.waits: dict[str, list[float]] = {}
        self.errors: list[str] = []

    def run(self) -> None:
        if self.is_over.wait(self.delay):
            return
        try:
            self.current = self.send("POST", f"/work/{SLUG}/claim", {"opened": True})["assignment"]
            for requests in itertools.cycle(self.traces):
                if not self.rate(requests):
                    return
        except (OSError, http.client.HTTPException, KeyError, TypeError) as error:
            self.errors.append(repr(error))

    def rate(self, requests: list[Request]) -> bool:
        """Rate one trace. Return False if the measurement ended."""
        began, following, step = time.monotonic(), 0, 0
        for request in requests:
            due = began + request["keys"] * self.seconds_per_key
            if self.is_over.wait(max(0.0, due - time.monotonic())):
                return False
            body: dict[str, Any] = {"client": self.client, "writes": []}
            for _ in range(request.get("writes", 0)):
                rated = {"kind": "rate", "step": step, "option": 0, "rating": 1, "active_ms": 900}
                body["writes"].append({"sequence": next(self.sequences), "seen": 0, **rated})
                step += 1
            body |= {"next": {"shown": [self.current]}} if "next" in request else {}
            body |= {"opens": following} if "opens" in request else {}
            path = request["path"].format(assignment=self.current, slug=SLUG)
            answer = self.send(request["method"], path, body)
            following = answer.get("next", {}).get("assignment", following)
        self.current = following
        self.done += 1
        least = LEAST_SECONDS_BETWEEN_ENDINGS - (time.monotonic() - began)
        return not self.is_over.wait(max(0.0, least))

    def send(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        began = time.perf_counter()
        try:
            self.line.request(method, path, json.dumps(body) if method == "POST" else None, self.headers)
            response = self.line.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):  # idle for too long
            self.line.close()
            self.line.request(method, path, json.dumps(body) if method == "POST" else None, self.headers)
            response = self.line.getresponse()
        content = response.read()
        self.waits.setdefault(path.rsplit("/", 1)[-1], []).append(time.perf_counter() - began)
        if response.status != 200:
            self.errors.append(f"{path}: {response.status} {content[:200]!r}")
            raise http.client.HTTPException(response.status)
        return dict(json.loads(content)) if response.headers["Content-Type"].endswith("json") else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=int, nargs="+", default=[1_000, 1_000_000], help="open traces")
    parser.add_argument("--raters", type=int, default=16)
    parser.add_argument("--pace", choices=["person", "hurried"], default="person")
    parser.add_argument("--blocks", type=int, default=8, help="blocks of one trace per rater")
    parser.add_argument("--web-workers", type=int, default=1)
    options = parser.parse_args()
    measured = [measure(size, options) for size in options.traces]
    return report(measured, options)


def measure(size: int, options: argparse.Namespace) -> dict[str, Any]:
    pace = json.loads(REQUESTS.read_text())[options.pace]
    environment = {"STEPMARK_RATE_LIMIT_FACTOR": "0", "STEPMARK_WEB_WORKERS": str(options.web_workers)}
    with running_platform("--no-demo", environment=environment) as platform:
        filled = run_module(platform, "bench.submission_fill", str(size), str(options.raters))
        sessions: list[str] = json.loads(filled.splitlines()[-1])["sessions"]
        raters = [PageRater(platform, session, number, pace) for number, session in enumerate(sessions)]
        for rater in raters:
            rater.start()
        seconds = max(pace["milliseconds_per_key"] / 1000 * (pace["steps"] + 1), LEAST_SECONDS_BETWEEN_ENDINGS)
        time.sleep(2 * seconds)  # the first two traces of each rater warm up
        for rater in raters:
            rater.waits.clear()
        blocks = [measure_block(platform, raters, seconds) for _ in range(options.blocks)]
        for rater in raters:
            rater.is_over.set()
        for rater in raters:
            rater.join()
    return {"traces": size, **summarize(blocks, raters)}


def measure_block(platform: WholePlatform, raters: list[PageRater], seconds: float) -> dict[str, Any]:
    load, before, done = MachineLoad.read(), platform.processor_seconds(), sum(rater.done for rater in raters)
    time.sleep(seconds)
    after, later = platform.processor_seconds(), MachineLoad.read()
    spent = {kind: after[kind] - before.get(kind, 0.0) for kind in after}
    return {
        "spent": spent,
        "done": sum(rater.done for rater in raters) - done,
        "others": load.others_share(later, sum(spent.values())),
    }


def summarize(blocks: list[dict[str, Any]], raters: list[PageRater]) -> dict[str, Any]:
    kept = [block for block in blocks if block["others"] <= MAX_OTHERS]
    names = sorted({name for rater in raters for name in rater.waits})
    waits = {name: [wait for rater in raters for wait in rater.waits.get(name, [])] for name in names}
    return {
        "was_measured": 2 * len(kept) >= len(blocks) and bool(kept),
        "blocks_kept": len(kept),
        "blocks_dropped": len(blocks) - len(kept),
        "others": [round(block["others"], 2) for block in blocks],
        "ms_per_trace": _ms_per_trace(kept),
        "all_ms_per_trace": _ms_per_trace(blocks),
        "parts": dict(_parts(kept or blocks)),
        "p95_ms": {name: _p95_ms(each) for name, each in waits.items() if len(each) > 1},
        "errors": [error for rater in raters for error in rater.errors],
    }


def _p95_ms(waits: list[float]) -> float:
    return round(1000 * statistics.quantiles(waits, n=20)[-1], 1)


def _ms_per_trace(blocks: list[dict[str, Any]]) -> float | None:
    done = sum(block["done"] for block in blocks)
    return round(1000 * sum(sum(block["spent"].values()) for block in blocks) / done, 2) if done else None


def _parts(blocks: list[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    done = max(1, sum(block["done"] for block in blocks))
    for kind in sorted({kind for block in blocks for kind in block["spent"]}):
        yield kind, round(1000 * sum(block["spent"].get(kind, 0.0) for block in blocks) / done, 2)


def report(measured: list[dict[str, Any]], options: argparse.Namespace) -> int:
    bar = MAX_MS.get(options.raters)
    missed = []
    for row in measured:
        print(f"{row['traces']:,} open traces, {options.raters} raters, {options.pace}, {os.cpu_count()} cores")
        print(f"  blocks kept {row['blocks_kept']}, dropped {row['blocks_dropped']}; shares of others {row['others']}")
        print(f"  processor ms of a trace: kept {row['ms_per_trace']}, all {row['all_ms_per_trace']}; at most {bar}")
        print(f"  {row['parts']}")
        print(f"  p95 of waits, ms: {row['p95_ms']}; at most {P95_MS}")
        if row["errors"]:
            print(f"  {len(row['errors'])} errors, the first: {row['errors'][0]}")
        if not row["was_measured"]:
            print("  NOT MEASURED: fewer than half of the blocks were quiet")
            continue
        if bar is not None and row["ms_per_trace"] > bar:
            missed.append(f"{row['traces']}: processor time")
        if any(wait > P95_MS for wait in row["p95_ms"].values()):
            missed.append(f"{row['traces']}: waits")
    is_valid = all(row["was_measured"] and not row["errors"] for row in measured)
    verdict = {"was_measured": is_valid, "missed": missed}
    print(json.dumps({"bench": "page_cycle", "pace": options.pace, **verdict, "sizes": measured}))
    return int(bool(missed) or not is_valid)


if __name__ == "__main__":
    raise SystemExit(main())
