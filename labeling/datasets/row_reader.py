"""Read the rows of a manifest, a chunk at a time.

The next chunks are read by connections of their own while the one before is written, so that the server and this
process work at the same time. No transaction stays open between chunks. Inside a transaction, whose rows no other
connection sees, chunks are read one after the other.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

import rawsql
from formats.rows import SEPARATOR, CompactRow, ExportRow, RowFacts
from labeling.datasets import row_rebuilder
from labeling.models import Manifest

CHUNK = 500
READERS = 3
_Row = tuple[Any, ...]
_RawChunk = tuple[list[RowFacts], dict[int, _Row], dict[int, _Row], dict[int, ExportRow]]
# Every row is found by a key, and a stretch comes in the order of its index. A table that was filled a moment ago has
# no statistics yet, and a plan that reads all of it for each chunk looks cheap.
_PLANS = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_bitmapscan", "jit")
_INDEX_PLAN_SETTINGS = "; ".join(f"SET {name} = off" for name in _PLANS)

# Where each field of `Facts` comes from.
_COLUMNS = {
    "position": "m.position",
    "submission": "u.id",
    "revision": "u.revision",
    "consensus_revision": "m.consensus_revision",
    "score_version": "m.score_version",
    "is_contested": "m.is_contested",
    "trace": "m.trace_id",
    "problem_digest": "q.normal_digest",
    "purpose": "a.purpose",
    "population": "a.population",
    "origin": "a.origin",
    "is_assisted": "a.is_assisted",
    "saw_reference_answer": "a.saw_reference_answer",
    "saw_final_verdict": "a.saw_final_verdict",
    "guideline": "g.version",
    "round": "l.generation",
    "opened_at": "a.opened_at",
    "draw_arm": "d.arm",
    "lane_arm": "l.arm",
    "batch": "d.batch",
    "rank": "d.rank",
    "q": "d.q",
    "n_left": "d.n_left",
    "prm": "d.prm",
    "prm_score": "d.score",
    "source": "s.name",
    "licence": "s.licence",
    "submitted_at": "u.submitted_at",
    "finish_reason": "u.finish_reason",
    "finish_note": "u.finish_note",
    "total_ms": "u.total_ms",
    "generation": "u.generation",
    "is_quality_control": "u.is_quality_control",
    "is_screening": "u.is_screening",
    "residue": "u.residue",
    "labeler": "r.labeler",
    "machine": "r.machine",
    "kind": "t.kind",
    "n_steps": "t.n_steps",
    "answer": "t.answer",
    "verifier_score": "t.verifier_score",
    "is_right": "t.is_right",
    "ref": "t.ref",
    "outcome_by": "t.outcome_by",
    "outcome_grader": "t.outcome_grader",
    "base_model": "p.base_model",
    "policy": "p.policy",
    "scaffold": "p.scaffold",
    "segmenter": "p.segmenter",
    "text": "q.text",
    "reference_answer": "q.reference_answer",
    "reference_solution": "q.reference_solution",
    "has_reference_answer": "q.has_reference_answer",
    "has_reference_solution": "q.has_reference_solution",
    "problem_ref": "q.ref",
    "domain": "q.domain",
}
_SUBMISSIONS = f"""SELECT {", ".join(f"{_COLUMNS[name]} AS {name}" for name in RowFacts._fields)}
FROM labeling_manifestrow m
JOIN labeling_trace t ON t.id = m.trace_id
JOIN labeling_problem q ON q.id = t.problem_id
LEFT JOIN labeling_submission u ON u.id = m.submission_id
LEFT JOIN labeling_assignment a ON a.id = u.assignment_id
LEFT JOIN labeling_rater r ON r.id = a.rater_id
LEFT JOIN labeling_provenance p ON p.id = t.provenance_id
LEFT JOIN labeling_source s ON s.id = t.source_id
LEFT JOIN labeling_guideline g ON g.id = a.guideline_id
LEFT JOIN labeling_tracedraw d ON d.id = a.draw_id
LEFT JOIN labeling_lane l ON l.id = a.lane_id
WHERE m.manifest_id = %(manifest)s
  AND m.position >= %(start)s AND m.position < %(stop)s
ORDER BY m.position"""  # noqa: S608  made of constants

_TEXTS = rawsql.load_sql(__file__, "row_texts.sql")
_RATINGS = rawsql.load_sql(__file__, "row_ratings.sql")
_RATINGS_IN_STRETCHES = rawsql.load_sql(__file__, "row_rating_ranges.sql")


def read_chunks(manifest: Manifest, *, start: int, stop: int, size: int = CHUNK) -> Iterator[list[ExportRow]]:
    """The readings from position `start` up to `stop`, in order."""
    spans = [(at, min(at + size, stop)) for at in range(start, stop, size)]
    for found in _read_in_turn(manifest.pk, spans) if connection.in_atomic_block else _read_ahead(manifest.pk, spans):
        yield list(_build_rows(*found))


def _read_in_turn(manifest_id: int, spans: list[tuple[int, int]]) -> Iterator[_RawChunk]:
    for start, stop in spans:
        yield _read(manifest_id, start, stop)


def _read_ahead(manifest_id: int, spans: list[tuple[int, int]]) -> Iterator[_RawChunk]:
    """A few chunks ahead and no further: memory stays what those take."""
    links: list[BaseDatabaseWrapper] = []
    readers = ThreadPoolExecutor(READERS, initializer=_force_index_plans, initargs=(links,))
    waiting: deque[Future[_RawChunk]] = deque()
    try:
        for span in spans:
            waiting.append(readers.submit(_read, manifest_id, *span))
            if len(waiting) > READERS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        readers.shutdown(cancel_futures=True)
        for link in links:
            link.close()


def _force_index_plans(links: list[BaseDatabaseWrapper]) -> None:
    """A connection of this thread's own. Who made the thread closes it."""
    connection.inc_thread_sharing()
    with connection.cursor() as cursor:
        cursor.execute(_INDEX_PLAN_SETTINGS)
    links.append(connections[connection.alias])


def _read(manifest_id: int, start: int, stop: int) -> _RawChunk:
    where = {"manifest": manifest_id, "start": start, "stop": stop}
    submissions = [RowFacts._make(row) for row in rawsql.fetch_rows(_SUBMISSIONS, where)]
    texts = {row[0]: row for row in rawsql.fetch_rows(_TEXTS, where)}
    ratings = _read_ratings(where, [each.position for each in submissions if each.submission is not None])
    others = [at for each in submissions if not _is_compact(texts.get(at := each.position), ratings.get(at))]
    careful = (
        row_rebuilder.rebuild_rows(manifest_id, others, {each.position: each for each in submissions}) if others else {}
    )
    return submissions, texts, ratings, careful


def _read_ratings(where: dict[str, int], positions: list[int]) -> dict[int, _Row]:
    stretches = rawsql.fetch_rows(_RATINGS_IN_STRETCHES, where)
    # Where nothing was rated there is no stretch.
    found = {row[0]: (*row[:4], 0, row[4], _join_cells(row[5], row[6])) for row in stretches if row[3]}
    apart = [position for position in positions if position not in found]
    if apart:
        rows = rawsql.fetch_rows(_RATINGS, {"manifest": where["manifest"], "positions": apart})
        found |= {row[0]: row for row in rows}
    return found


def _join_cells(chosen: str, judged: str) -> str:
    return ";".join([f"0,{place},{said}" for place, said in zip(chosen.split(";"), judged.split(";"), strict=True)])


def _is_compact(texts: _Row | None, ratings: _Row | None) -> bool:
    """Whether texts and ratings say it all: see `readings.Plain`."""
    if texts is None or ratings is None:
        return False
    _, n_rows, n_texts, first_step, last, n_others, _, joined = texts
    return (
        n_rows == n_texts
        and first_step == last
        and not n_others
        and not ratings[4]
        and ratings[1] == first_step
        and ratings[2] - first_step == ratings[3] - 1
        and joined.count(SEPARATOR) == n_texts - 1
    )


def _build_rows(
    submissions: list[RowFacts], texts: dict[int, _Row], ratings: dict[int, _Row], careful: dict[int, ExportRow]
) -> Iterator[ExportRow]:
    for facts in submissions:
        at = facts.position
        if at in careful:
            yield careful[at]
            continue
        _, _, n_texts, first_step, _, _, more, joined = texts[at]
        times, cells = ratings[at][5:]
        yield ExportRow(facts, CompactRow(joined, n_texts, more, first_step, times, cells))
