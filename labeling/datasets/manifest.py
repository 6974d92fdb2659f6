"""Freeze the rows that a snapshot or a training run reads, and read them. Only this module writes `Manifest` and
`ManifestRow`.

A manifest refers to immutable revisions, in order. Reading it again gives the same records, even after relabeling.

Rows are read a chunk at a time. Threads with their own connections read the next chunks while the caller writes the
current one, so that the server and this process work at the same time. No transaction stays open between chunks. Inside
a transaction, whose rows no other connection can see, chunks are read one after the other.
"""

import datetime as dt
import gc
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from django.core.exceptions import EmptyResultSet
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

import rawsql
from accounts.models import User
from formats.records import (
    CitationRecord,
    EvidenceRecord,
    JudgmentRecord,
    OptionRecord,
    OriginalRecord,
    PartRecord,
    StepRecord,
    TurnRecord,
    WrittenStep,
    unpack_residue,
)
from formats.rows import SEPARATOR, CompactRow, ExportRow, RowFacts, build_record
from labeling.datasets import selection
from labeling.datasets.selection import ExclusionRule, ManifestFilters, ScoreSource
from labeling.models import Manifest, Project

CHUNK = 500
READERS = 3
# These settings make every lookup use an index, and read ranges in the order of the index. Without them, PostgreSQL
# would scan a freshly filled table without statistics completely for each chunk.
_PLANS = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_bitmapscan", "jit")
_INDEX_PLAN_SETTINGS = "; ".join(f"SET {name} = off" for name in _PLANS)

_FACTS = rawsql.load_sql(__file__, "row_facts.sql")
_TEXTS = rawsql.load_sql(__file__, "row_texts.sql")
_RATINGS = rawsql.load_sql(__file__, "row_ratings.sql")
_RATING_RANGES = rawsql.load_sql(__file__, "row_rating_ranges.sql")
_STEPS = rawsql.load_sql(__file__, "row_steps.sql")
_PARTS = rawsql.load_sql(__file__, "row_parts.sql")
_ORIGINALS = rawsql.load_sql(__file__, "row_originals.sql")
_TURNS = rawsql.load_sql(__file__, "row_turns.sql")


def freeze_manifest(
    *,
    project: Project,
    filters: ManifestFilters,
    purpose: str,
    now: dt.datetime,
    by: User | None,
    exclusions: Sequence[ExclusionRule] = (),
    score_source: ScoreSource | None = None,
    by_trace: bool = False,
    chosen_revisions: Mapping[int, int] | None = None,
) -> Manifest:
    """Store the ordered list of selected rows, and count the excluded ones by reason. Rows are ordered by submission,
    or grouped by trace. `chosen_revisions` replace the current consensus of their traces."""
    rules = [*selection.choice_rules(filters, chosen_revisions), *exclusions]
    selected = selection.select_rows(project, filters, score_source, chosen_revisions)
    rows = selection.annotate_exclusion_reason(selected, rules)
    with transaction.atomic():
        # Write the rows first: a manifest is append-only and includes their number.
        pk = next(rawsql.new_ids(Manifest._meta.db_table))
        counts = _write_rows(pk, rows, by_trace=by_trace)
        return Manifest.objects.create(
            pk=pk,
            project=project,
            purpose=purpose,
            made_at=now,
            made_by=by,
            code_version=settings.CODE_VERSION,
            filters=msgspec.to_builtins(filters),
            n_rows=counts.pop(None, 0),
            left_out=counts,
        )


_WRITE_AND_COUNT = """WITH selected AS ({select}),
written AS (
  INSERT INTO labeling_manifestrow (manifest_id, position, trace_id, submission_id, consensus_revision, score_version,
    is_contested)
  SELECT %s, ROW_NUMBER() OVER (ORDER BY {order}) - 1, trace_key, submission_key, consensus_key, score_key,
    contested_key
  FROM selected WHERE reason IS NULL)
SELECT reason, COUNT(*) FROM selected GROUP BY reason"""


def _write_rows(manifest_id: int, rows: QuerySet[Any], *, by_trace: bool) -> dict[str | None, int]:
    """Write the rows without an exclusion reason, and return the number of rows by reason.

    One statement does both, so both see the same state.
    """
    columns = ("trace_key", "submission_key", "consensus_key", "score_key", "contested_key", "reason")
    try:
        select, parameters = rows.order_by().values(*columns).query.sql_with_params()
    except EmptyResultSet:  # Django knows from the filters that no row matches
        return {}
    order = "trace_key, submission_key" if by_trace else "submission_key, trace_key"
    with connection.cursor() as cursor:
        cursor.execute(_WRITE_AND_COUNT.format(select=select, order=order), [*parameters, manifest_id])
        return dict(cursor.fetchall())


# Reading


def read_row_chunks(
    manifest: Manifest,
    *,
    start: int = 0,
    stop: int | None = None,
    chunk: int = CHUNK,
    has_names: bool = False,
    has_parts: bool = False,
) -> Iterator[list[ExportRow]]:
    """Yield chunks of rows from position `start` up to `stop`, in order. Without `has_names`, imported labelers have
    pseudonyms. With `has_parts`, steps have their parts, which takes longer."""
    stop = manifest.n_rows if stop is None else min(stop, manifest.n_rows)
    spans = [(at, min(at + chunk, stop)) for at in range(start, stop, chunk)]
    if connection.in_atomic_block:
        yield from (_read_chunk(manifest.pk, *span, has_names, has_parts) for span in spans)
    else:
        yield from _read_ahead(manifest.pk, spans, has_names, has_parts)


def _read_ahead(
    manifest_id: int, spans: list[tuple[int, int]], has_names: bool, has_parts: bool
) -> Iterator[list[ExportRow]]:
    """Read in threads, at most one chunk per thread ahead, to limit memory."""
    opened: list[BaseDatabaseWrapper] = []
    readers = ThreadPoolExecutor(READERS, initializer=_force_index_plans, initargs=(opened,))
    pending: deque[Future[list[ExportRow]]] = deque()
    try:
        for span in spans:
            pending.append(readers.submit(_read_chunk, manifest_id, *span, has_names, has_parts))
            if len(pending) > READERS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        readers.shutdown(cancel_futures=True)
        for thread_connection in opened:
            thread_connection.close()


def _force_index_plans(opened: list[BaseDatabaseWrapper]) -> None:
    """Set up the connection of this thread. The thread that started it closes it."""
    connection.inc_thread_sharing()
    with connection.cursor() as cursor:
        cursor.execute(_INDEX_PLAN_SETTINGS)
    opened.append(connections[connection.alias])


class RowTexts(NamedTuple):
    position: int
    n_options: int
    n_texts: int
    first_step: int
    last: int
    n_others: int
    extra: str | None
    joined: str


class RowRatings(NamedTuple):
    position: int
    first_step: int
    last_step: int
    n_turns: int
    n_others: int
    times: str | None
    cells: str


def _read_chunk(manifest_id: int, start: int, stop: int, has_names: bool, has_parts: bool) -> list[ExportRow]:
    parameters = {"manifest": manifest_id, "start": start, "stop": stop}
    rows = rawsql.fetch_named(RowFacts, _FACTS, {**parameters, "names": has_names})
    if has_parts:
        return list(_rebuild_rows(manifest_id, rows, has_parts=True).values()) if rows else []
    ratings = _read_ratings(parameters, [facts.position for facts in rows if facts.submission is not None])
    compact = {
        texts.position: _build_compact_row(texts, ratings[texts.position])
        for texts in rawsql.fetch_named(RowTexts, _TEXTS, parameters)
        if texts.position in ratings and _is_compact(texts, ratings[texts.position])
    }
    others = [facts for facts in rows if facts.position not in compact]
    rebuilt = _rebuild_rows(manifest_id, others) if others else {}
    return [rebuilt.get(facts.position) or ExportRow(facts, compact[facts.position]) for facts in rows]


def _read_ratings(parameters: dict[str, int], positions: Sequence[int]) -> dict[int, RowRatings]:
    ratings = {}
    for position, first_step, last_step, n_turns, times, chosen, judged in rawsql.fetch_rows(
        _RATING_RANGES, parameters
    ):
        cells = _join_cells(chosen, judged)
        ratings[position] = RowRatings(position, first_step, last_step, n_turns, 0, times, cells)
    missing = [position for position in positions if position not in ratings]
    if missing:
        lookup: dict[str, Any] = {"manifest": parameters["manifest"], "positions": missing}
        ratings |= {row.position: row for row in rawsql.fetch_named(RowRatings, _RATINGS, lookup)}
    return ratings


def _join_cells(chosen: str, judged: str) -> str:
    pairs = zip(chosen.split(";"), judged.split(";"), strict=True)
    return ";".join([f"0,{place},{judgment}" for place, judgment in pairs])


def _is_compact(texts: RowTexts, ratings: RowRatings) -> bool:
    """Return whether a `CompactRow` can express the row."""
    return (
        texts.n_options == texts.n_texts
        and texts.first_step == texts.last
        and not texts.n_others
        and not ratings.n_others
        and ratings.first_step == texts.first_step
        and ratings.last_step - texts.first_step == ratings.n_turns - 1
        and texts.joined.count(SEPARATOR) == texts.n_texts - 1
    )


def _build_compact_row(texts: RowTexts, ratings: RowRatings) -> CompactRow:
    return CompactRow(texts.joined, texts.n_texts, texts.extra, texts.first_step, ratings.times, ratings.cells)


# The general path, for submissions that are not compact (`formats.rows`): written steps, comments, categories, agents,
# or steps that were not shown. Records are built from single options and judgments.


class TurnRow(NamedTuple):
    position: int  # in the manifest
    turn: int
    step: int
    shown: str | None
    chosen: int | None
    written_text: str | None
    written_rating: int | None
    written_flagged: bool | None
    written_corrected_rating: int | None
    comment: str
    active_ms: int | None
    option: int | None
    rating: int | None
    flagged: bool | None
    category: str
    reason: str
    error_link: str
    severity: int | None
    value: float | None
    rollouts: int | None
    successes: int | None
    evidence: str | None  # JSON
    citations: str | None  # JSON
    missing: str


class _Step(NamedTuple):
    position: int
    kind: str
    is_rateable: bool
    agent: str
    separator: str
    source_position: int | None
    option_ids: list[int]
    texts: list[str]


def _rebuild_rows(manifest_id: int, rows: Sequence[RowFacts], *, has_parts: bool = False) -> dict[int, ExportRow]:
    """Return these rows of a manifest by position."""
    parameters = {"manifest": manifest_id, "positions": [facts.position for facts in rows]}
    was_enabled = gc.isenabled()
    gc.disable()  # thousands of small objects without reference cycles
    try:
        steps = _load_steps(parameters)
        parts = _load_parts(parameters) if has_parts else {}
        turns: dict[int, list[TurnRecord]] = {}
        for position, judgments in groupby(rawsql.fetch_named(TurnRow, _TURNS, parameters), attrgetter("position")):
            turns[position] = list(_build_turns(judgments, steps[position]))
        rebuilt = {
            facts.position: ExportRow(
                facts,
                None,
                build_record(
                    facts,
                    _build_own_steps(steps[facts.position], facts.n_steps, parts),
                    turns.get(facts.position, []),
                ),
            )
            for facts in rows
        }
        for position, format, content in rawsql.fetch_rows(_ORIGINALS, parameters) if has_parts else ():
            rebuilt[position].record.original = OriginalRecord(format, unpack_residue(bytes(content)))
        return rebuilt
    finally:
        if was_enabled:
            gc.enable()


def _load_steps(parameters: Mapping[str, Any]) -> dict[int, dict[int, _Step]]:
    """Return the steps of each row by id."""
    steps: dict[int, dict[int, _Step]] = defaultdict(dict)
    for position, step, place, kind, is_rateable, agent, separator, message, option, text in rawsql.fetch_rows(
        _STEPS, parameters
    ):
        own = steps[position].setdefault(step, _Step(place, kind, is_rateable, agent, separator, message, [], []))
        if option is not None:
            own.option_ids.append(option)
            own.texts.append(text)
    return steps


def _load_parts(parameters: Mapping[str, Any]) -> dict[int, list[PartRecord]]:
    """Return the parts of options by the option's id. A trace may be in several rows."""
    parts: dict[int, dict[int, list[PartRecord]]] = defaultdict(lambda: defaultdict(list))
    for position, option, kind, text, name, call_ref, media_type, digest in rawsql.fetch_rows(_PARTS, parameters):
        parts[option][position].append(PartRecord(kind, text, name, call_ref, media_type, digest=digest))
    return {option: next(iter(by_row.values())) for option, by_row in parts.items()}


def _build_own_steps(steps: Mapping[int, _Step], n: int, parts: Mapping[int, Sequence[PartRecord]]) -> list[StepRecord]:
    """Return the trace's own steps. A file may rate steps after the end of the trace; those are only in the turns."""
    records = [StepRecord([]) for _ in range(n)]
    for step in steps.values():
        if step.position < n:
            options = [
                OptionRecord(text, parts=tuple(parts.get(option, ())))
                for option, text in zip(step.option_ids, step.texts, strict=True)
            ]
            records[step.position] = StepRecord(
                options, step.kind, step.is_rateable, step.separator, step.source_position, step.agent
            )
    return records


def _build_turns(rows: Iterator[TurnRow], steps: Mapping[int, _Step]) -> Iterator[TurnRecord]:
    for _, group in groupby(rows, attrgetter("turn")):
        judgments = list(group)
        turn = judgments[0]
        step = steps[turn.step]
        written = None
        if turn.written_text is not None:
            written = WrittenStep(
                turn.written_text, turn.written_rating, turn.written_flagged, turn.written_corrected_rating
            )
        shown = None if turn.shown is None else _build_judgments(turn.shown, judgments, step)
        yield TurnRecord(step.position, shown, turn.chosen, written, turn.comment, turn.active_ms, turn.missing)


def _build_judgments(shown: str, judgments: list[TurnRow], step: _Step) -> list[JudgmentRecord]:
    """Return the options in the order in which they were shown, each with its judgment."""
    by_option = {row.option: row for row in judgments if row.option is not None}
    records = []
    for place in map(int, shown.split()):
        row, text = by_option.get(step.option_ids[place]), step.texts[place]
        records.append(
            JudgmentRecord(text)
            if row is None
            else JudgmentRecord(
                *(text, row.rating, row.flagged, row.category, row.reason, row.error_link),
                *(row.severity, row.value, row.rollouts, row.successes),
                msgspec.json.decode(row.evidence or "[]", type=list[EvidenceRecord]),
                msgspec.json.decode(row.citations or "[]", type=list[CitationRecord]),
            )
        )
    return records
