"""Compare dashboard pages with a thousand and a million traces: `python -m bench.pages [--sizes …] [--rounds N]`.

Each size has its own database on the server of DATABASE_URL, with labeled, settled and open traces. A logged-in lead
requests every page through all of Django. The benchmark measures response times and counts queries. Thresholds: at most
300 ms, and the same number of queries at every size.
"""

import argparse
import statistics
import time
from typing import Any

from bench import databases, harness

MOST_MS = 300.0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    names = [f"of_{size}" for size in options.sizes]
    results: dict[int, dict[str, Any]] = {}
    with databases.temporary_databases(names) as made:
        for size, name in zip(options.sizes, names, strict=True):
            databases.use_database(made[name])
            results[size] = _measure(size, options.rounds)
    print(harness.last_json_line({"bench": "pages", **_verdict(results), "sizes": results}))


def _measure(size: int, rounds: int) -> dict[str, Any]:
    from django.conf import settings
    from django.test import Client

    from bench import pages_fill

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    filled = pages_fill.fill_database(size)
    client = Client()
    client.force_login(filled.lead)
    found = {name: _ask(client, address, rounds) for name, address in filled.addresses.items()}
    for name, row in found.items():
        print(f"{size:>9,}  {name:<28} {row['ms']:7.1f} ms  at most {row['most_ms']:7.1f}  {row['queries']:3d} queries")
    return found


def _ask(client: Any, address: str, rounds: int) -> dict[str, Any]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        answer = client.get(address)
    queries = len(captured)  # read it now: the next request clears the log
    if answer.status_code != 200:
        raise SystemExit(f"{address} answered {answer.status_code}")
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        client.get(address)
        times.append(1000 * (time.perf_counter() - began))
    return {"ms": round(statistics.median(times), 1), "most_ms": round(max(times), 1), "queries": queries}


def _verdict(results: dict[int, dict[str, Any]]) -> dict[str, Any]:
    smallest, largest = results[min(results)], results[max(results)]
    slow = {name: row["ms"] for name, row in largest.items() if row["ms"] > MOST_MS}
    growing = {name: row["queries"] for name, row in largest.items() if row["queries"] > smallest[name]["queries"]}
    return {"slow": slow, "growing": growing, "passed": not slow and not growing}


if __name__ == "__main__":
    main()
