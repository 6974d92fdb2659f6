"""Measure the idle platform: `python -m bench.idle [--minutes 3] [--settle 90]`.

Starts `./run` with the demo in a temporary folder, lets it settle, and measures the processor time and the memory of
all its processes, PostgreSQL and Valkey included, while no one uses it. Shared memory counts once (PSS).

Minutes in which other programs took more than a tenth of the machine are dropped: waking up costs more if they have
emptied the caches. With fewer than half kept, the result is "not measured". Ends with one line of JSON.
"""

import argparse
import json
import time

from bench.whole_platform import MachineLoad, WholePlatform, running_platform

MAX_MS_PER_SECOND = 1.0
MAX_MEGABYTES = 200.0
MAX_OTHERS = 0.1
BLOCK_SECONDS = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=int, default=3)
    parser.add_argument("--settle", type=float, default=90.0, help="seconds before the first measurement")
    options = parser.parse_args()
    with running_platform() as platform:
        time.sleep(options.settle)
        blocks = [measure_block(platform) for _ in range(options.minutes)]
        memory = platform.memory()
    return report(blocks, memory)


Block = tuple[dict[str, float], float]  # milliseconds per second of each kind of process, and the share of others


def measure_block(platform: WholePlatform) -> Block:
    load, before = MachineLoad.read(), platform.processor_seconds()
    time.sleep(BLOCK_SECONDS)
    after, later = platform.processor_seconds(), MachineLoad.read()
    spent = {kind: after[kind] - before.get(kind, 0.0) for kind in after}
    seconds = later.at - load.at
    share = load.others_share(later, sum(spent.values()))
    return {kind: 1000 * value / seconds for kind, value in spent.items()}, share


def report(blocks: list[Block], memory: dict[str, float]) -> int:
    kept = [spent for spent, share in blocks if share <= MAX_OTHERS]
    was_measured = 2 * len(kept) >= len(blocks) and bool(kept)
    mean = {kind: sum(each.get(kind, 0.0) for each, _ in blocks) / len(blocks) for kind in memory}
    print(f"{'process':14}{'ms per second':>14}{'MB':>8}")
    for kind, held in sorted(memory.items()):
        print(f"{kind:14}{mean[kind]:14.3f}{held:8.1f}")
    all_ms = sum(sum(spent.values()) for spent, _ in blocks) / len(blocks)
    kept_ms = sum(sum(spent.values()) for spent in kept) / len(kept) if kept else None
    megabytes = sum(memory.values())
    shares = [round(share, 2) for _, share in blocks]
    print(f"minutes kept {len(kept)} of {len(blocks)}; shares of others {shares}")
    print(f"processor: all minutes {all_ms:.2f} ms/s, kept {kept_ms}; at most {MAX_MS_PER_SECOND}")
    print(f"memory: {megabytes:.1f} MB; at most {MAX_MEGABYTES}")
    missed = [] if kept_ms is None or kept_ms <= MAX_MS_PER_SECOND else ["ms_per_second"]
    missed += ["megabytes"] if megabytes > MAX_MEGABYTES else []
    if not was_measured:
        print("NOT MEASURED: fewer than half of the minutes were quiet")
    figures = {"ms_per_second": kept_ms, "all_ms_per_second": all_ms, "megabytes": megabytes, "others": shares}
    print(json.dumps({"bench": "idle", "was_measured": was_measured, "missed": missed, **figures}))
    return int(bool(missed) or not was_measured)


if __name__ == "__main__":
    raise SystemExit(main())
