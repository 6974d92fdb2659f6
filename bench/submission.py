"""Measure submissions over HTTP: `python -m bench.submission [--traces 1000 1000000] [--seconds 15]`.

Sixteen logged-in raters send requests to gunicorn in a loop: claim a trace of twelve steps with its content, send one
batch of twelve ratings, submit. Each size of the queue has its own database on the server of DATABASE_URL, which is
dropped at the end. All traces are in the queue; only traces that raters will reach have steps.

The report states cycles per second, CPU time of the web server and of the database per cycle, and response times. Web
server, database and raters share the cores of this machine. Ends with one line of JSON.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from bench import submission_load, submission_server

RATERS = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--importing", action="store_true", help="measure during a bulk import")
    options = parser.parse_args()
    measured = {str(size): measure(size, options) for size in options.traces}
    report(measured)


def measure(size: int, options: argparse.Namespace) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="bench-cycle-"))
    try:
        with submission_server.create_database(folder) as environment:
            return measure_on_server(size, options, folder, environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure_on_server(
    size: int, options: argparse.Namespace, folder: Path, environment: dict[str, str]
) -> dict[str, Any]:
    environment |= {"STEPMARK_WEB_WORKERS": str(options.workers), "STEPMARK_LOG_LEVEL": "ERROR"}
    users = submission_server.fill_database(environment, size, RATERS)
    with submission_server.run_web_server(environment, folder) as server:
        submission_load.run_raters(server.port, users["sessions"], seconds=2)
        submission_server.analyze_database(environment)  # as autovacuum would have done in production
        submission_load.run_raters(server.port, users["sessions"], seconds=2)  # connections, plans, caches
        importing = submission_server.start_bulk_import(environment, options.seconds) if options.importing else None
        before = server.cpu_seconds()
        load = submission_load.run_raters(server.port, users["sessions"], seconds=options.seconds)
        spent = {name: seconds - before[name] for name, seconds in server.cpu_seconds().items()}
        steps = importing() if importing else None
    cycles = max(1, load["cycles"])
    return {
        "traces": size,
        "cycles": load["cycles"],
        "cycles_per_second": round(load["cycles"] / load["seconds"], 1),
        "web_cpu_ms_per_cycle": round(1000 * spent["web"] / cycles, 2),
        "database_cpu_ms_per_cycle": round(1000 * spent["database"] / cycles, 2),
        "raters_cpu_ms_per_cycle": round(1000 * load["cpu_seconds"] / cycles, 2),
        "waits_ms": load["waits_ms"],
        "errors": load["errors"],
        "imported_steps_per_second": steps,
    }


COLUMNS = {
    "traces": "traces",
    "cycles/s": "cycles_per_second",
    "web CPU ms": "web_cpu_ms_per_cycle",
    "db CPU ms": "database_cpu_ms_per_cycle",
    "raters CPU": "raters_cpu_ms_per_cycle",
    "errors": "errors",
}


def report(measured: dict[str, dict[str, Any]]) -> None:
    print(" ".join(f"{head:>12}" for head in [*COLUMNS, "claim p95", "record p95", "submit p95"]))
    for row in measured.values():
        waits = [row["waits_ms"][name]["p95"] for name in ("claim", "record", "submit")]
        print(" ".join(f"{value:>12}" for value in [*(row[key] for key in COLUMNS.values()), *waits]))
    sizes = sorted(measured.values(), key=lambda row: int(row["traces"]))
    ratio = round(sizes[-1]["web_cpu_ms_per_cycle"] / sizes[0]["web_cpu_ms_per_cycle"], 3)
    print(json.dumps({"bench": "cycle", "largest_to_smallest_cpu": ratio, "sizes": sizes}))


if __name__ == "__main__":
    main()
