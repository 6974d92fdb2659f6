"""Compare operations with a baseline on a machine that is not idle.

Baseline and subjects alternate in short blocks. A short calibration runs before and after each block; a block is
dropped if its calibration took more than three times the fastest one. Besides wall time, the processor time of this
process and of its PostgreSQL backend is measured, which depends little on other load.
"""

import json
import os
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Operation = Callable[[], object]
NOISY = 3.0
_CALIBRATIONS = 10


@dataclass
class MeasuredBlock:
    """The times of one subject's runs in seconds, and the slower of the two calibrations around them."""

    walls: list[float] = field(default_factory=list)
    cpu: float = 0.0  # of this process
    server: float = 0.0  # PostgreSQL's
    noise: float = 0.0


@dataclass
class MeasuredOperation:
    """An operation and its runs per block. `before` (per block) and `after` (per run) are not measured."""

    name: str
    run: Callable[[], Any]
    per_block: int
    before: Operation | None = None
    after: Callable[[Any], object] | None = None
    server_pid: int | None = None  # if this subject uses another backend than the rest
    blocks: list[MeasuredBlock] = field(default_factory=list)


@dataclass(frozen=True)
class OperationTimes:
    """Times per run in milliseconds: the median wall time and the mean processor time."""

    wall: float
    p95: float
    cpu: float
    server: float
    kept: int
    dropped: int

    @property
    def was_measured(self) -> bool:
        return self.kept >= self.dropped and self.kept > 0


@dataclass(frozen=True)
class TimeComparison:
    figures: dict[str, OperationTimes]

    @property
    def kept(self) -> int:
        return sum(each.kept for each in self.figures.values())

    @property
    def dropped(self) -> int:
        return sum(each.dropped for each in self.figures.values())

    @property
    def was_measured(self) -> bool:
        return all(each.was_measured for each in self.figures.values())

    def wall(self, subject: str, baseline: str) -> float:
        return round(self.figures[subject].wall / self.figures[baseline].wall, 2)

    def p95(self, subject: str, baseline: str) -> float:
        return round(self.figures[subject].p95 / self.figures[baseline].p95, 2)

    def cpu(self, subject: str, baseline: str) -> float:
        """Return the ratio of processor times, both processes together."""
        one, other = self.figures[subject], self.figures[baseline]
        return round((one.cpu + one.server) / (other.cpu + other.server), 2)


def compare_operations(
    subjects: Sequence[MeasuredOperation], *, calibrate: Operation, blocks: int, server_pid: int | None = None
) -> TimeComparison:
    """Run the subjects in rotating order. The first round is a warm-up and is not counted."""
    for number in range(blocks):
        turn = number % len(subjects)
        for subject in (*subjects[turn:], *subjects[:turn]):
            block = _block(subject, calibrate, subject.server_pid or server_pid)
            if number or blocks == 1:
                subject.blocks.append(block)
    quietest = min(block.noise for subject in subjects for block in subject.blocks)
    return TimeComparison({subject.name: _figures(subject, NOISY * quietest) for subject in subjects})


def _block(subject: MeasuredOperation, calibrate: Operation, server_pid: int | None) -> MeasuredBlock:
    if subject.before:
        subject.before()
    noise = _calibration(calibrate)
    block = MeasuredBlock()
    for _ in range(subject.per_block):
        cpu, server = time.process_time(), processor_seconds(server_pid)
        started = time.perf_counter()
        result = subject.run()
        block.walls.append(time.perf_counter() - started)
        block.cpu += time.process_time() - cpu
        block.server += processor_seconds(server_pid) - server
        if subject.after:
            subject.after(result)
    block.noise = max(noise, _calibration(calibrate))
    return block


def _calibration(calibrate: Operation) -> float:
    started = time.perf_counter()
    for _ in range(_CALIBRATIONS):
        calibrate()
    return time.perf_counter() - started


def processor_seconds(pid: int | None) -> float:
    """Return the processor time of a process so far, or 0 if it runs on another machine."""
    file = Path(f"/proc/{pid}/schedstat")
    return int(file.read_text().split()[0]) / 1e9 if pid is not None and file.exists() else 0.0


def _figures(subject: MeasuredOperation, noisy: float) -> OperationTimes:
    quiet = [block for block in subject.blocks if block.noise <= noisy]
    walls = [wall for block in quiet for wall in block.walls] or [float("nan")] * 2
    runs = len(walls)
    return OperationTimes(
        wall=statistics.median(walls) * 1000,
        p95=statistics.quantiles(walls, n=20)[-1] * 1000,
        cpu=sum(block.cpu for block in quiet) / runs * 1000,
        server=sum(block.server for block in quiet) / runs * 1000,
        kept=len(quiet),
        dropped=len(subject.blocks) - len(quiet),
    )


def format_table(title: str, comparison: TimeComparison, baseline: str) -> str:
    verdict = "" if comparison.was_measured else "   NOT MEASURED: fewer than half of the blocks were quiet"
    width = max(26, *map(len, comparison.figures))
    lines = [
        f"{title}: {comparison.kept} blocks kept, {comparison.dropped} dropped{verdict}",
        f"  {'':{width}}{'median':>9}{'p95':>9}{'CPU':>9}{'server':>9}{'ratio':>8}{'of CPU':>8}{'kept':>6}{'lost':>8}",
    ]
    for name, each in comparison.figures.items():
        numbers = f"{each.wall:9.3f}{each.p95:9.3f}{each.cpu:9.3f}{each.server:9.3f}"
        ratios = f"{comparison.wall(name, baseline):8.2f}{comparison.cpu(name, baseline):8.2f}"
        lines.append(f"  {name:{width}}{numbers}{ratios}{each.kept:6}{each.dropped:8}")
    return "\n".join(lines)


def as_json(comparison: TimeComparison) -> dict[str, Any]:
    return {
        "kept": comparison.kept,
        "dropped": comparison.dropped,
        "was_measured": comparison.was_measured,
        "figures_ms": {
            name: {key: round(value, 4) for key, value in vars(each).items()}
            for name, each in comparison.figures.items()
        },
    }


def find_browser() -> str | None:
    """Return the path of Debian's Chromium, without a window system if that package is installed."""
    named = os.environ.get("STEPMARK_CHROMIUM")
    return named or shutil.which("chromium-headless-shell") or shutil.which("chromium")


def last_json_line(content: dict[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"))
