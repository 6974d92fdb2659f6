"""Write the files of one shard from the manifest, a chunk at a time."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from exports import splits
from exports.files import CsvFile, ImageArchive, JsonLinesFile, ParquetTableFile, SnapshotFileWriter, WrittenFile
from exports.orders import TABLE_ENDINGS, SnapshotOrder
from formats import images, prm800k
from formats.catalog import OUTPUT_FORMATS
from formats.examples import CUT_OFF, AgreedLabels, RowTally, TraceExample
from formats.records import StepRecord, TurnRecord
from formats.rows import ExportRow
from labeling.datasets import manifest
from labeling.models import Consensus, Manifest
from labeling.traces import stored_images
from machines import identities
from prm import scores

IMAGES = "images"  # instead of a format, of an archive of images


class BuildPlan(msgspec.Struct):
    """Values that are fixed at the freeze and stored with the snapshot, so that a rebuild gives identical files."""

    places: dict[str, float] = {}  # positions of problems that follow an earlier problem (`splits.SplitScan`)
    mean_weight: float = 1.0
    effective_sample_size: float | None = None
    n_weighted: int = 0
    benchmarks: dict[str, int] = {}  # number of problems on each benchmark's list
    licences: dict[str, str] = {}  # by source
    prm: int | None = None  # the PRM whose step scores are exported
    prm_label: str = ""
    # Traces whose consensus was inferred again without the raters who are left out, those of them with a single vote,
    # and those for which the other labels determine none.
    n_inferred: int = 0
    n_inferred_from_one: int = 0
    n_undetermined: int = 0


RatingCounts = tuple[int | None, int, int, int]  # the first error; negative, neutral, and positive ratings


class RatingSpread(msgspec.Struct):
    """How ratings are distributed, and where first errors are.

    `labels` by rating; `first_errors` by position from 0, plus `none` (no error) and `cut_off` (ended early).
    """

    labels: dict[str, int] = msgspec.field(default_factory=lambda: {"-1": 0, "0": 0, "1": 0})
    first_errors: dict[str, int] = {}

    def count(self, rows: Iterable[ExportRow]) -> None:
        submitted = (row for row in rows if row.facts.submission is not None)
        counts = Counter((_count_ratings(row), row.facts.finish_reason in CUT_OFF) for row in submitted)
        for ((first_error, *ratings), was_cut_off), n in counts.items():
            key = str(first_error) if first_error is not None else "cut_off" if was_cut_off else "none"
            self.first_errors[key] = self.first_errors.get(key, 0) + n
            for rating, n_ratings in zip(("-1", "0", "1"), ratings, strict=True):
                self.labels[rating] += n * n_ratings


def _count_ratings(row: ExportRow) -> RatingCounts:
    """Count the ratings of all options. The first error is the first step whose own option is negative."""
    if row.plain is not None and not row.plain.more:
        return _count_cells(row.plain.cells)
    steps, turns = row.record.steps, row.record.submissions[0].turns
    judged = [(turn, judgment) for turn in turns for judgment in turn.shown or ()]
    errors = (turn.position for turn, each in judged if each.rating == -1 and each.text == _own_text(steps, turn))
    ratings = Counter(each.rating for _, each in judged)
    return next(errors, None), ratings[-1], ratings[0], ratings[1]


def _own_text(steps: list[StepRecord], turn: TurnRecord) -> str:
    """Return the text of the step in the trace. A file may have ratings of steps after the end of its trace."""
    options = steps[turn.position].options if turn.position < len(steps) else []
    return (options or turn.shown or [])[0].text


@lru_cache(maxsize=2000)
def _count_cells(cells: str) -> RatingCounts:
    """Count a trace in which each step has one option, so that each cell is one rating. Many rows have equal cells."""
    ratings = [cell.split(",", 3)[2] for cell in cells.split(";")]
    first_error = ratings.index("-1") if "-1" in ratings else None
    return first_error, ratings.count("-1"), ratings.count("0"), ratings.count("1")


class ShardWriter:
    """The files of a shard, one for each format and split. A file is opened with its first row."""

    def __init__(self, folder: Path, order: SnapshotOrder, plan: BuildPlan, *, number: int, n_shards: int) -> None:
        self._folder, self._order, self._plan = folder, order, plan
        self._part = f"-{number:05}-of-{n_shards:05}" if n_shards > 1 else ""
        self._files: dict[tuple[str, str], SnapshotFileWriter] = {}
        self.tallies = {name: RowTally() for name in order.formats}
        self.spread = RatingSpread()
        self._images: ImageArchive | None = None

    def write_rows(self, frozen: Manifest, *, start: int, stop: int) -> Iterator[int]:
        """Write the rows from `start` to `stop`, and yield the number of rows read after each chunk."""
        pending: list[ExportRow] = []
        done = 0
        has_images = self._has_images(frozen)
        has_parts = has_images or any(OUTPUT_FORMATS[name].has_parts for name in self._order.formats)
        options = {"has_names": self._order.has_labeler_names, "has_parts": has_parts}
        for rows in manifest.read_row_chunks(frozen, start=start, stop=stop, **options):
            done += len(rows)
            _identify_machines(rows)
            if self._order.by_trace:
                pending += rows
                rows, pending = _split_off_last_trace(pending) if done < stop - start else (pending, [])
            self._put(rows, _load_consensus(rows))
            if has_images:
                self._add_images(frozen.project_id, rows)
            self.spread.count(rows)
            yield done

    def _has_images(self, frozen: Manifest) -> bool:
        names_images = any(OUTPUT_FORMATS[name].has_images for name in self._order.formats)
        return names_images and stored_images.has_images(frozen.project_id)

    def _add_images(self, project_id: int, rows: Iterable[ExportRow]) -> None:
        """Add the images that the rows name and the archive does not have yet."""
        by_name: dict[str, str] = {}
        for record in (row.record for row in rows):
            parts = [part for step in record.steps for option in step.options for part in option.parts]
            for image in (*record.problem.images, *images.list_images(parts)):
                by_name[images.write_path(image)] = image.digest
        known = set() if self._images is None else self._images.names
        new = sorted(digest for name, digest in by_name.items() if name not in known)
        for digest, content in stored_images.read_images(project_id, new):
            if self._images is None:
                self._images = ImageArchive(self._folder / f"data/images{self._part}.zip")
            self._images.add(images.PATH.format(digest), content)

    def _put(self, rows: list[ExportRow], consensus: dict[tuple[int, int], AgreedLabels]) -> None:
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

    def _file(self, name: str, split: str) -> SnapshotFileWriter:
        if (name, split) not in self._files:
            self._files[name, split] = self._open(name, split)
        return self._files[name, split]

    def _open(self, name: str, split: str) -> SnapshotFileWriter:
        """Open a file with a name as the Hugging Face hub gives it."""
        format, weights, _ = name.partition(".weights")
        ending: str = "jsonl" if weights and self._order.ending in TABLE_ENDINGS else self._order.ending
        path = self._folder / f"data/{format}/{split}{self._part}{weights}.{ending}"
        if ending == "parquet":
            return ParquetTableFile(path, OUTPUT_FORMATS[name].columns)
        return CsvFile(path, OUTPUT_FORMATS[name].columns) if ending == "csv" else JsonLinesFile(path, ending)

    def close(self) -> list[WrittenFile]:
        written = []
        if self._images is not None:
            closed = self._images.close()
            closed.name, closed.format = self._images.path.relative_to(self._folder).as_posix(), IMAGES
            written.append(closed)
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


def _identify_machines(rows: list[ExportRow]) -> None:
    """Fill in the machines that made submissions on the platform."""
    by_machines = [row for row in rows if row.facts.machine and row.facts.submission is not None]
    found = identities.load_identities(row.facts.submission or 0 for row in by_machines) if by_machines else {}
    for row in by_machines:
        row.facts = row.facts._replace(identity=found.get(row.facts.submission or 0))


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
        (each.trace_id, each.revision): msgspec.convert(each, AgreedLabels, from_attributes=True)
        for each in found
        if (each.trace_id, each.revision) in keys
    }
