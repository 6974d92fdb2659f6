"""Builds the files of one shard from the manifest alone, a chunk at a time. Reads the database, writes files."""

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
from formats.catalog import OUTPUT_FORMATS, OutputFormat
from formats.examples import AgreedLabels, RowTally, TraceExample
from formats.rows import ExportRow
from labeling.datasets import manifest
from labeling.models import Consensus, Manifest
from prm import scores

if TYPE_CHECKING:
    from exports.parquet_files import ParquetTableFile

FileNamer = Callable[[str, str, str], str]  # format, split and ending, to a file's name


class BuildPlan(msgspec.Struct):
    """What was found out before the manifest was frozen, and is needed to build from it."""

    places: dict[str, float] = {}  # of problems that sit with what they are like, not at their own place
    mean_weight: float = 1.0
    effective_sample_size: float | None = None
    n_weighted: int = 0
    benchmarks: dict[str, int] = {}  # problems of this project on a list, by the list
    licences: dict[str, str] = {}  # by source
    prm: int | None = None  # whose scores of steps are read
    prm_label: str = ""


class ShardWriter:
    """The files of a shard, by format and split: opened when the first row comes."""

    def __init__(self, folder: Path, order: SnapshotOrder, plan: BuildPlan, name: FileNamer) -> None:
        self._folder, self._order, self._plan, self._name = folder, order, plan, name
        self._files: dict[tuple[str, str], JsonLinesFile | ParquetTableFile] = {}
        self.tallies = {each: RowTally() for each in order.formats}
        self.spread = RatingSpread()

    def put(self, readings: list[ExportRow], agreed: dict[tuple[int, int], AgreedLabels]) -> None:
        """One chunk: whole traces, where traces must stand together."""
        for split, of_split in self._by_split(readings).items():
            if "prm800k" in self._order.formats:
                lines = list(prm800k.write(of_split))
                self.tallies["prm800k"].rows += len(lines)
                self._file("prm800k", split).write(lines)  # type: ignore[union-attr]  # PRM800K comes in lines alone
            tables = [name for name in self._order.formats if OUTPUT_FORMATS[name].is_table]
            if tables:
                examples = list(self._examples(of_split, agreed, self._scores(of_split)))
                for name in tables:
                    self._put_rows(name, split, examples)

    def _put_rows(self, name: str, split: str, examples: list[TraceExample]) -> None:
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

    def _by_split(self, readings: list[ExportRow]) -> dict[str, list[ExportRow]]:
        if not self._order.is_split:
            return {splits.TRAIN: readings}
        found: dict[str, list[ExportRow]] = {}
        for reading in readings:
            digest = reading.facts.problem_digest
            place = self._plan.places.get(digest)
            side = splits.split_at(
                splits.split_position(digest) if place is None else place,
                validation=self._order.validation,
                test=self._order.test,
            )
            found.setdefault(side, []).append(reading)
        return found

    def _scores(self, readings: list[ExportRow]) -> dict[int, list[float | None]]:
        """Of the PRM that the manifest names, where a format asks for them. A PRM's word on a trace never changes."""
        if self._plan.prm is None or not any(OUTPUT_FORMATS[name].has_step_scores for name in self._order.formats):
            return {}
        scored = {each.facts.trace for each in readings if each.facts.score_version}
        return scores.load_step_scores(self._plan.prm, sorted(scored))

    def _examples(
        self,
        readings: list[ExportRow],
        agreed: dict[tuple[int, int], AgreedLabels],
        step_scores: dict[int, list[float | None]],
    ) -> Iterator[TraceExample]:
        for trace, of_trace in groupby(readings, key=lambda each: each.facts.trace):
            together = list(of_trace)
            revision = together[0].facts.consensus_revision
            yield TraceExample(
                together,
                agreed=None if revision is None else agreed[trace, revision],
                is_consensus=self._order.filters.is_consensus,
                mean_weight=self._plan.mean_weight,
                step_scores=step_scores.get(trace, ()),
                licence=self._plan.licences.get(together[0].facts.source or "", ""),
            )

    def _file(self, name: str, split: str) -> "JsonLinesFile | ParquetTableFile":
        found = self._files.get((name, split))
        if found is None:
            found = self._files[name, split] = self._open(name, split)
        return found

    def _open(self, name: str, split: str) -> "JsonLinesFile | ParquetTableFile":
        is_weights = name.endswith(".weights")
        of: OutputFormat = OUTPUT_FORMATS[name.removesuffix(".weights")]
        ending: str = self._order.ending
        if ending == "parquet" and is_weights:
            ending = "jsonl"  # line for line
        path = self._folder / self._name(name, split, ending)
        if ending != "parquet":
            return JsonLinesFile(path, ending)
        from exports.parquet_files import ParquetTableFile

        return ParquetTableFile(path, of.columns)

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
    frozen: Manifest, shard_writer: ShardWriter, order: SnapshotOrder, *, start: int, stop: int
) -> Iterator[int]:
    """Write the rows from `start` to `stop`; says after each chunk how many are written."""
    held: list[ExportRow] = []
    done = 0
    for found in manifest.read_row_chunks(frozen, start=start, stop=stop):
        done += len(found)
        if order.by_trace:
            held += found
            last = held[-1].facts.trace
            found, held = _split_last_trace(held, last) if done < stop - start else (held, [])
        shard_writer.put(found, _load_consensus(found))
        shard_writer.spread.count(frozen, found)
        yield done


def _split_last_trace(readings: list[ExportRow], last: int) -> tuple[list[ExportRow], list[ExportRow]]:
    """Without the last trace, of which more may follow; and that one."""
    at = len(readings)
    while at and readings[at - 1].facts.trace == last:
        at -= 1
    return readings[:at], readings[at:]


def _load_consensus(readings: list[ExportRow]) -> dict[tuple[int, int], AgreedLabels]:
    """The revisions of consensus that the manifest names."""
    wanted = {(each.facts.trace, each.facts.consensus_revision) for each in readings if each.facts.consensus_revision}
    if not wanted:
        return {}
    rows = Consensus.objects.filter(trace_id__in={trace for trace, _ in wanted})
    found = rows.values_list(
        "trace_id", "revision", "first_error", "confidence", "labels", "posterior", "assisted_posterior"
    )
    return {
        (trace, revision): AgreedLabels(
            revision, first_error, confidence, [tuple(label) for label in labels], *posteriors
        )
        for trace, revision, first_error, confidence, labels, *posteriors in found
        if (trace, revision) in wanted
    }
