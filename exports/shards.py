"""Write the files of one shard from the manifest, a chunk at a time."""

from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from exports import splits
from exports.files import JsonLinesFile, WrittenFile
from exports.orders import SnapshotOrder
from exports.rating_spread import RatingSpread
from formats import prm800k
from formats.catalog import OUTPUT_FORMATS
from formats.examples import AgreedLabels, RowTally, TraceExample
from formats.rows import ExportRow
from labeling.datasets import manifest
from labeling.models import Consensus, Manifest
from prm import scores

if TYPE_CHECKING:
    from exports.parquet_files import ParquetTableFile

FileNamer = Callable[[str, str, str], str]  # from format, split, and ending to a file name


class BuildPlan(msgspec.Struct):
    """Values that are fixed at the freeze and stored with the snapshot, so that a rebuild gives equal files."""

    places: dict[str, float] = {}  # positions of problems that follow an earlier problem (`splits.SplitScan`)
    mean_weight: float = 1.0
    effective_sample_size: float | None = None
    n_weighted: int = 0
    benchmarks: dict[str, int] = {}  # number of problems on each benchmark's list
    licences: dict[str, str] = {}  # by source
    prm: int | None = None  # the PRM whose step scores are exported
    prm_label: str = ""


class ShardWriter:
    """The files of a shard, one for each format and split. A file is opened with its first row."""

    def __init__(self, folder: Path, order: SnapshotOrder, plan: BuildPlan, file_name: FileNamer) -> None:
        self._folder, self._order, self._plan, self._file_name = folder, order, plan, file_name
        self._files: dict[tuple[str, str], JsonLinesFile | ParquetTableFile] = {}
        self.tallies = {name: RowTally() for name in order.formats}
        self.spread = RatingSpread()

    def put(self, rows: list[ExportRow], consensus: dict[tuple[int, int], AgreedLabels]) -> None:
        """Write one chunk. If the order groups rows by trace, it has whole traces."""
        tables = [name for name in self._order.formats if OUTPUT_FORMATS[name].is_table]
        for split, split_rows in self._group_by_split(rows).items():
            if "prm800k" in self._order.formats:
                lines = list(prm800k.write(split_rows))
                self.tallies["prm800k"].rows += len(lines)
                self._file("prm800k", split).write(lines)  # type: ignore[union-attr]  # PRM800K is never Parquet
            if tables:
                examples = list(self._build_examples(split_rows, consensus, self._load_step_scores(split_rows)))
                for name in tables:
                    self._put_table(name, split, examples)

    def _put_table(self, name: str, split: str, examples: list[TraceExample]) -> None:
        tally, write = self.tallies[name], OUTPUT_FORMATS[name].write
        assert write is not None
        rows = [row for example in examples for row in write(example, self._order.rule, tally)]
        if OUTPUT_FORMATS[name].has_weights:
            weights, tally.weights = tally.weights, []
            if rows:
                self._file(f"{name}.weights", split).write_rows(weights)
        tally.rows += len(rows)
        if rows:
            self._file(name, split).write_rows(rows)

    def _group_by_split(self, rows: list[ExportRow]) -> dict[str, list[ExportRow]]:
        if not self._order.is_split:
            return {splits.TRAIN: rows}
        shares = {"validation": self._order.validation, "test": self._order.test}
        by_split: dict[str, list[ExportRow]] = {}
        for row in rows:
            split = splits.choose_split(row.facts.problem_digest, self._plan.places, **shares)
            by_split.setdefault(split, []).append(row)
        return by_split

    def _load_step_scores(self, rows: list[ExportRow]) -> dict[int, list[float | None]]:
        """Load the scores of the manifest's PRM if a format has them. A PRM's scores of a trace never change."""
        if self._plan.prm is None or not any(OUTPUT_FORMATS[name].has_step_scores for name in self._order.formats):
            return {}
        scored = {row.facts.trace for row in rows if row.facts.score_version}
        return scores.load_step_scores(self._plan.prm, sorted(scored))

    def _build_examples(
        self,
        rows: list[ExportRow],
        consensus: dict[tuple[int, int], AgreedLabels],
        step_scores: dict[int, list[float | None]],
    ) -> Iterator[TraceExample]:
        for trace, group in groupby(rows, key=lambda row: row.facts.trace):
            trace_rows = list(group)
            facts = trace_rows[0].facts
            yield TraceExample(
                trace_rows,
                agreed=None if facts.consensus_revision is None else consensus[trace, facts.consensus_revision],
                is_consensus=self._order.filters.is_consensus,
                mean_weight=self._plan.mean_weight,
                step_scores=step_scores.get(trace, ()),
                licence=self._plan.licences.get(facts.source or "", ""),
            )

    def _file(self, name: str, split: str) -> "JsonLinesFile | ParquetTableFile":
        file = self._files.get((name, split))
        if file is None:
            file = self._files[name, split] = self._open(name, split)
        return file

    def _open(self, name: str, split: str) -> "JsonLinesFile | ParquetTableFile":
        ending: str = self._order.ending
        if ending == "parquet" and name.endswith(".weights"):
            ending = "jsonl"
        path = self._folder / self._file_name(name, split, ending)
        if ending != "parquet":
            return JsonLinesFile(path, ending)
        from exports.parquet_files import ParquetTableFile

        return ParquetTableFile(path, OUTPUT_FORMATS[name].columns)

    def close(self) -> list[WrittenFile]:
        written = []
        for (name, split), file in sorted(self._files.items()):
            closed = file.close()
            closed.name = file.path.relative_to(self._folder).as_posix()
            closed.format, closed.split = name, split
            written.append(closed)
        return written

    def figures(self) -> dict[str, Any]:
        return {
            "tallies": {name: msgspec.to_builtins(tally) for name, tally in self.tallies.items()},
            "ratings": msgspec.to_builtins(self.spread),
        }


def write_chunks(
    frozen: Manifest, writer: ShardWriter, order: SnapshotOrder, *, start: int, stop: int
) -> Iterator[int]:
    """Write the rows from `start` to `stop`, and yield the number of rows read after each chunk."""
    pending: list[ExportRow] = []
    done = 0
    for rows in manifest.read_row_chunks(frozen, start=start, stop=stop):
        done += len(rows)
        if order.by_trace:
            pending += rows
            rows, pending = _split_off_last_trace(pending) if done < stop - start else (pending, [])
        writer.put(rows, _load_consensus(rows))
        writer.spread.count(frozen, rows)
        yield done


def _split_off_last_trace(rows: list[ExportRow]) -> tuple[list[ExportRow], list[ExportRow]]:
    """Separate the rows of the last trace, which may have more rows in the next chunk."""
    last, at = rows[-1].facts.trace, len(rows)
    while at and rows[at - 1].facts.trace == last:
        at -= 1
    return rows[:at], rows[at:]


def _load_consensus(rows: list[ExportRow]) -> dict[tuple[int, int], AgreedLabels]:
    """Load the consensus revisions that the manifest refers to, by trace and revision."""
    keys = {(row.facts.trace, row.facts.consensus_revision) for row in rows if row.facts.consensus_revision}
    if not keys:
        return {}
    found = Consensus.objects.filter(trace_id__in={trace for trace, _ in keys})
    return {
        (each.trace_id, each.revision): AgreedLabels(
            revision=each.revision,
            first_error=each.first_error,
            confidence=each.confidence,
            labels=[tuple(label) for label in each.labels],
            posterior=each.posterior,
            assisted_posterior=each.assisted_posterior,
        )
        for each in found
        if (each.trace_id, each.revision) in keys
    }
