"""Measure whether the highlighted step is on the screen: `python -m bench.lit_step --data DIR [--moves 2000]`.

A browser moves through real runs of agents and mathematical solutions (from the folder DIR) and through synthetic tall
steps, at five sizes of the screen, with all steps shown and with one at a time. A move fails if the highlighted step is
not entirely between problem and dock afterward or, if it is taller than this space, does not start at the top of the
space. It ends with one line of JSON, and exits with 1 if more than one move of a thousand failed. `--sizes 1440x900`
measures only these sizes, with their share of the moves.
"""

import argparse
import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from bench import harness, submission_server
from bench.browser import _run as run_program
from bench.lit_step_fill import KINDS

SIZES = [(1440, 900), (911, 512), (720, 450), (844, 390), (390, 844)]  # 911 x 512 is 1366 x 768 at 150 %
MOVES = Path(__file__).with_suffix(".js").read_text()
LATER = "kkkkkkkkjjjjj"  # after all steps are rated
PAUSE = 20  # ms after each key
BAR = 0.001


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--moves", type=int, default=2000)
    names = [f"{width}x{height}" for width, height in SIZES]
    parser.add_argument("--sizes", nargs="+", choices=names, default=names)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-lit-step-"))
    try:
        with submission_server.create_database(folder) as environment:
            data, sizes = options.data.resolve(), [SIZES[names.index(name)] for name in options.sizes]
            moves, failures = measure_on_server(data, options.moves, sizes, folder, environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    raise SystemExit(report(moves, failures))


def measure_on_server(
    data: Path, moves: int, sizes: list[tuple[int, int]], folder: Path, environment: dict[str, str]
) -> tuple[Counter[str], list[Any]]:
    session = json.loads(run_program(environment, "-m", "bench.lit_step_fill", str(data)).splitlines()[-1])["session"]
    run_program(environment, "manage.py", "collectstatic", "--noinput", "--clear", "--verbosity", "0")
    counts: Counter[str] = Counter()
    failures: list[Any] = []
    each = moves / (len(SIZES) * len(KINDS) * 2)
    with submission_server.run_web_server(environment, folder) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=harness.find_browser(), args=["--no-sandbox"])
        for width, height in sizes:
            url = f"http://127.0.0.1:{server.port}"
            context = browser.new_context(base_url=url, viewport={"width": width, "height": height})
            context.add_cookies([{"name": "sessionid", "value": session, "url": url}])
            page = context.new_page()
            for slug in [name for kind in KINDS for name in (kind, f"{kind}-reveal")]:
                name = f"{slug} {width}x{height}"
                failures += [(name, *wrong) for wrong in move_through(page, slug, each, counts, name)]
            context.close()
        browser.close()
    return counts, failures


def move_through(page: Page, slug: str, moves: float, counts: Counter[str], name: str) -> list[Any]:
    """Rate trace after trace, go back and forth in each, and return the moves that failed."""
    page.goto(f"/work/{slug}/")
    wrong: list[Any] = []
    while counts[name] < moves:
        page.locator("html[data-ready] .step.is-now").wait_for()
        page.wait_for_timeout(400)
        shown = page.locator("html").get_attribute("data-ready")
        keys = "3" * page.locator("#stage .step[data-stop]").count() + LATER
        wrong += [[shown, *each] for each in page.evaluate(MOVES, [list(keys), PAUSE])]
        counts[name] += len(keys) + 1
        page.keyboard.press("Enter")
        page.locator(f"html[data-ready]:not([data-ready='{shown}'])").wait_for()
    return wrong


def report(moves: Counter[str], failures: list[Any]) -> int:
    for name, count in moves.items():
        print(f"{name:24}{count:6} moves{sum(each[0] == name for each in failures):5} failed")
    for each in failures:
        print("failed:", *each)
    total = sum(moves.values())
    is_missed = len(failures) > BAR * total
    print(json.dumps({"bench": "lit_step", "moves": total, "failed": len(failures), "is_missed": is_missed}))
    return int(is_missed)


if __name__ == "__main__":
    main()
