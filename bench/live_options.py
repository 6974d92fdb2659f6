"""Measure how long a rater waits for the next options in live labeling: `python -m bench.live_options [--choices 200]`.

A browser rates four options per step by keyboard on a real web server, and chooses one. A scripted completions server
needs 300 ms for each batch of 16 tokens, and steps have up to two batches. Measured is the time from the key that
chooses to the frame with the next options, with and without prefetch. At the end, all recorded requests are replayed.
Ends with one line of JSON, and exits with 1 if a threshold is missed.
"""

import argparse
import hashlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from bench import harness, submission_server
from bench.live_options_fill import SLUG
from tests.live.step_servers import ScriptedStep, StepServer, running_steps

SECONDS_PER_BATCH = 0.3
MS_PER_KEY = 600  # a hurried rater: people need several seconds for an option
STEPS = 10  # of a solution
RATINGS = ("3", "1", "3", "2")
BARS = {"prefetched_ms_p95": 700.0}
LEAST_REPRODUCED = 0.99


def write_step(prompt: str, seed: int, index: int) -> ScriptedStep:
    """Write a step of 12 to 28 words, the last one of ten with an answer."""
    dice = int(hashlib.sha256(f"{prompt} {seed} {index}".encode()).hexdigest()[:8], 16)
    words = " ".join(["more"] * (6 + dice % 17))
    if prompt.count("we know") >= STEPS - 1:
        return ScriptedStep(f"Now we know the answer: \\boxed{{{dice % 100}}}.", "eos")
    return ScriptedStep(f"Now we know {words} than $x_{{{dice % 1000}}}$ before.")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--choices", type=int, default=200)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-live-"))
    try:
        server = StepServer(write_step, seconds_per_batch=SECONDS_PER_BATCH)
        with submission_server.create_database(folder) as environment, running_steps(server) as address:
            environment["STEPMARK_OUTBOUND_HOSTS"] = "127.0.0.1"
            measured = measure(options.choices, folder, environment, address)
            server.seconds_per_batch = 0.0
            measured |= measure_replay(environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    raise SystemExit(report(measured))


def measure(choices: int, folder: Path, environment: dict[str, str], address: str) -> dict[str, Any]:
    problems = 2 * (choices // (STEPS - 1) + 3)
    session = json.loads(_run(environment, "-m", "bench.live_options_fill", address, str(problems)).splitlines()[-1])[
        "session"
    ]
    _run(environment, "manage.py", "collectstatic", "--noinput", "--clear", "--verbosity", "0")
    with submission_server.run_web_server(environment, folder) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=harness.find_browser(), args=["--no-sandbox"])
        context = browser.new_context(base_url=f"http://127.0.0.1:{server.port}")
        context.add_cookies([{"name": "sessionid", "value": session, "url": f"http://127.0.0.1:{server.port}"}])
        context.add_init_script(path=Path(__file__).with_suffix(".js"))
        try:
            page = context.new_page()
            prefetched = measure_choices(page, choices)
            _run(environment, "manage.py", "live", "open", "--project", SLUG, "--version-number", "2")
            plain = measure_choices(page, max(choices // 4, 20))
        finally:
            browser.close()
    return {
        "prefetched_ms_p50": round(statistics.median(prefetched), 1),
        "prefetched_ms_p95": _p95(prefetched),
        "plain_ms_p50": round(statistics.median(plain), 1),
        "plain_ms_p95": _p95(plain),
        "choices": len(prefetched),
    }


def measure_replay(environment: dict[str, str]) -> dict[str, Any]:
    replayed = json.loads(_run(environment, "manage.py", "live", "replay", "--project", SLUG))
    return {
        "reproduced": min(row["share"] for row in replayed),
        "replayed_options": sum(row["options"] for row in replayed),
    }


def measure_choices(page: Page, choices: int) -> list[float]:
    """Rate and choose until so many choices were measured, and return their times in milliseconds."""
    waits: list[float] = []
    while len(waits) < choices:
        page.goto(f"/live/{SLUG}/")
        if page.locator("#begin-live").count():
            page.locator("#begin-live").click()
        while True:
            page.locator("#options .step.is-now").wait_for()
            is_last = page.locator("[data-ending=solution]").count() > 0
            position = page.locator("#stage").get_attribute("data-position")
            for key in RATINGS[: page.locator("[data-option]").count()]:
                page.wait_for_timeout(MS_PER_KEY)
                page.keyboard.press(key)
            page.wait_for_timeout(MS_PER_KEY)
            page.keyboard.press("Enter")
            if is_last:
                page.locator("#stage[data-state=ended]").wait_for()
                break
            page.locator(f"#stage:not([data-position='{position}']) #options").wait_for()
        page.wait_for_timeout(100)
        waits += page.evaluate("bench.waits.splice(0)")
    return waits


def _run(environment: dict[str, str], *words: str) -> str:
    command = [sys.executable, *words]
    done = subprocess.run(
        command, env=environment, cwd=submission_server.ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def _p95(values: list[float]) -> float:
    return round(statistics.quantiles(values, n=20)[-1], 1)


def report(measured: dict[str, Any]) -> int:
    missed = [name for name, bar in BARS.items() if measured[name] > bar]
    missed += ["reproduced"] if measured["reproduced"] < LEAST_REPRODUCED else []
    for name, value in measured.items():
        bar = f"   threshold {BARS[name]:.0f}" if name in BARS else ""
        print(f"{name:20}{value:12}{bar}{'   MISSED' if name in missed else ''}")
    print(json.dumps({"bench": "live_options", "missed": missed, **measured}))
    return int(bool(missed))


if __name__ == "__main__":
    main()
