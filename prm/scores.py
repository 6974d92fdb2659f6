"""Scores of traces: compute, push, save, load, delete, and count how fresh they are.

Only this module changes Score rows. A job scores the traces that a PRM has not scored yet, in parallel shards that
resume after an interruption. A failure changes nothing: earlier scores and the queue stay as they are, and the job
reports the reason.

A training cluster pushes scores in bulk, as NDJSON with one line per trace:

    {"trace": 17, "scores": [0.98, 0.4]}     or     {"digest": "3a…", "scores": [0.98, 0.4]}

A null marks a context step. Invalid lines are reported by number and do not affect the others; a repeated line changes
nothing.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, islice
from typing import Any

import msgspec
import numpy as np
from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Mod

from accounts.models import User
from events import audit_log
from jobs import control, paging
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import Project, Trace, TraceDraw
from labeling.models.trace import TraceKind
from prm import generations, labeled_traces, registry
from prm.backends import base
from prm.backends.base import BackendError
from prm.labeled_traces import TraceText
from prm.models import PRM, Generation, Score
from prm.models.generation import RUNNING
from prm.models.prm import BackendKind
from stats.arrays import Floats, Ints

RETENTION = dt.timedelta(days=14)  # after a later version became current
MAX_REPORTED_LINES = 50
COLUMNS = 3  # score (NaN for context), words, characters
MAX_STEPS = 6000  # per chunk
_BUILTIN_LEASE, _EXTERNAL_LEASE = dt.timedelta(seconds=45), dt.timedelta(minutes=3)
_LINES_PER_TRANSACTION = 500
_TRACES_PER_DELETE = 500
_MANY = 50_000  # counting more than this takes over 50 ms


def encode_scores(scores: Floats, texts: Sequence[str], is_rateable: Sequence[bool]) -> bytes:
    """Encode the score, the words and the characters of each step."""
    rows = np.empty((len(texts), COLUMNS), dtype="<f4")
    rows[:, 0] = np.where(is_rateable, scores, np.nan)
    rows[:, 1] = [len(text.split()) for text in texts]
    rows[:, 2] = [len(text) for text in texts]
    return rows.tobytes()


def decode_scores(encoded: Sequence[bytes]) -> tuple[Floats, Ints]:
    """Return all steps of all traces end to end as (steps, COLUMNS), and the length of each trace."""
    lengths = np.array([len(each) // (4 * COLUMNS) for each in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), dtype="<f4").astype(np.float64).reshape(-1, COLUMNS), lengths


def save_scores(*, prm: PRM, texts: Sequence[TraceText], scores: Sequence[Floats], now: dt.datetime) -> int:
    """Save new scores and return their number. Scores of the same version are never overwritten."""
    rows = [
        Score(
            prm=prm,
            trace_id=text.trace,
            numbers=encode_scores(each, text.steps, text.is_rateable),
            scored_at=now,
        )
        for text, each in zip(texts, scores, strict=True)
    ]
    return len(Score.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500))


def load_scores(prm: PRM | int, trace_ids: Sequence[int]) -> dict[int, Floats]:
    """Return the columns of each of these traces that this PRM has scored, as (steps, COLUMNS)."""
    parts = (Score.objects.filter(prm=prm, trace__in=part) for part in paging.split(trace_ids))
    rows = (row for part in parts for row in part.values_list("trace_id", "numbers"))
    return {trace: decode_scores([bytes(encoded)])[0] for trace, encoded in rows}


def load_step_scores(prm_id: int, trace_ids: Sequence[int]) -> dict[int, list[float | None]]:
    """Return the scores of each of these traces that this PRM has scored, None for context."""
    return {
        trace: [None if np.isnan(score) else float(score) for score in columns[:, 0]]
        for trace, columns in load_scores(prm_id, trace_ids).items()
    }


def traces_scored_by(prm: PRM) -> QuerySet[Any]:
    """Return the scored traces, for use in a subquery."""
    return Score.objects.filter(prm=prm).values("trace")


def delete_old_scores(*, now: dt.datetime) -> int:
    """Delete the scores of replaced versions after the retention time, and return how many were deleted.

    Two kinds are kept: scores by which a trace was drawn, to explain the draw, and the scores of the version that a
    rollback would restore.
    """
    n_deleted = 0
    for prm in _outdated_prms(now):
        last = 0
        while traces := list(_next_scored_traces(prm, last)):
            last = traces[-1]
            drawn = TraceDraw.objects.filter(trace=OuterRef("trace"), prm=prm.label)
            n_deleted += Score.objects.filter(~Exists(drawn), prm=prm, trace__in=traces).delete()[0]
    return n_deleted


def _outdated_prms(now: dt.datetime) -> list[PRM]:
    later = PRM.objects.filter(project=OuterRef("project"), is_current=True, version__gt=OuterRef("version"))
    is_replaced = Exists(later.filter(made_current_at__lt=now - RETENTION).exclude(predecessor=OuterRef("pk")))
    running = Generation.objects.filter(stage__in=RUNNING)
    is_used = Exists(running.filter(candidate=OuterRef("pk"))) | Exists(running.filter(scored_with=OuterRef("pk")))
    has_scores = Exists(Score.objects.filter(prm=OuterRef("pk")))
    return list(PRM.objects.filter(is_replaced, ~is_used, has_scores).defer("weights", "trained").order_by("pk"))


def _next_scored_traces(prm: PRM, after: int) -> QuerySet[Score, int]:
    rows = Score.objects.filter(prm=prm, trace__gt=after).order_by("trace_id")
    return rows.values_list("trace_id", flat=True)[:_TRACES_PER_DELETE]


# --- freshness --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScoreFreshness:
    """How many scorable traces the current PRM has scored; the others have older scores or none."""

    prm: PRM | None
    n_traces: int
    n_fresh: int

    @property
    def n_stale(self) -> int:
        return self.n_traces - self.n_fresh

    @property
    def share(self) -> float:
        return self.n_fresh / self.n_traces if self.n_traces else 1.0


def scorable_traces(project: Project | int) -> QuerySet[Trace]:
    """Return the traces that are not withdrawn, have steps and were not generated during rating."""
    return Trace.objects.available().filter(project=project, kind=TraceKind.PREGENERATED, n_steps__gt=0)


def unscored_traces(prm: PRM) -> QuerySet[Trace]:
    return scorable_traces(prm.project_id).filter(~Exists(Score.objects.filter(prm=prm, trace=OuterRef("pk"))))


def list_scorable_traces(
    *, project: Project, unscored_by: PRM | None, after: int, size: int, condition: Q
) -> list[tuple[str, TraceText]]:
    """Return the next scorable traces by id, with their digests; with a PRM, only those that it has not scored."""
    rows = scorable_traces(project) if unscored_by is None else unscored_traces(unscored_by)
    digests = dict(rows.filter(condition, pk__gt=after).order_by("pk").values_list("pk", "digest")[:size])
    return [(digests[text.trace], text) for text in labeled_traces.load_trace_texts(list(digests))]


def count_fresh_scores(project: Project) -> ScoreFreshness:
    prm, n_traces = registry.current_prm(project.pk), scorable_traces(project).count()
    return ScoreFreshness(prm, n_traces, n_traces - unscored_traces(prm).count() if prm else 0)


def cached_freshness(project: Project) -> ScoreFreshness:
    """Count for a page; in a large project the result may be up to a minute old."""
    prm = registry.current_prm(project.pk)
    key = f"prm.freshness.{project.pk}.{prm.pk if prm else 0}"
    if (counts := cache.get(key)) is not None:
        return ScoreFreshness(prm, *counts)
    freshness = count_fresh_scores(project)
    if freshness.n_traces > _MANY:
        cache.set(key, (freshness.n_traces, freshness.n_fresh), timeout=60)
    return freshness


# --- the job that computes scores -------------------------------------------------------------------------------------


def request_scoring(*, prm: PRM, by: User | None, now: dt.datetime) -> list[Job]:
    """Request jobs for the unscored traces outside of any generation; none while earlier ones are unfinished."""
    subject = f"prm:{prm.pk}"
    if Job.objects.unfinished().filter(kind=generations.SCORE, subject=subject).exists():
        return []
    n_traces = unscored_traces(prm).count()
    shards = generations.count_shards(n_traces)
    return [
        control.request_job(
            kind=generations.SCORE,
            subject=subject,
            arguments={"prm": prm.pk, "shard": shard, "of": shards, "generation": None},
            by=by,
            now=now,
        )
        for shard in range(shards)
    ]


def lease_of_job(job_id: int) -> dt.timedelta:
    """Return a short lease for the builtin PRM: after a kill the job resumes only when its lease has ended."""
    prm = Job.objects.get(pk=job_id).arguments["prm"]
    is_builtin = PRM.objects.filter(pk=prm, backend=BackendKind.BUILTIN).exists()
    return _BUILTIN_LEASE if is_builtin else _EXTERNAL_LEASE


def run_scoring_job(job: Job) -> Iterator[JobProgress | Chunk]:
    prm = PRM.objects.select_related("project").get(pk=job.arguments["prm"])
    after, done = job.checkpoint.get("after", 0), job.done
    traces = unscored_traces(prm).annotate(part=Mod(F("pk"), job.arguments["of"])).filter(part=job.arguments["shard"])
    total = done + traces.filter(pk__gt=after).count()
    backend = registry.load_backend(prm)
    n_per_chunk = 500 if prm.backend == BackendKind.BUILTIN else 64  # fewer if another server computes the scores
    yield JobProgress(done, total)
    while ids := _next_trace_ids(traces.filter(pk__gt=after), n_per_chunk):
        texts = labeled_traces.load_trace_texts(ids)
        step_scores = base.validate_scores(backend.score(texts), texts, prm.semantics)
        after, done = ids[-1], done + len(ids)
        yield partial(_save_chunk, prm, texts, step_scores, JobProgress(done, max(total, done), {"after": after}))
    yield partial(_finish_shard, job.arguments["generation"], done)


def _next_trace_ids(traces: QuerySet[Trace], size: int) -> list[int]:
    """Return the next traces with at most MAX_STEPS steps, but at least one: a chunk must fit into its lease."""
    rows = list(traces.order_by("pk").values_list("pk", "n_steps")[:size])
    totals = accumulate(n_steps for _, n_steps in rows)
    return [pk for n, ((pk, _), total) in enumerate(zip(rows, totals, strict=True)) if not n or total <= MAX_STEPS]


def _save_chunk(
    prm: PRM, texts: Sequence[TraceText], step_scores: Sequence[Floats], progress: JobProgress, now: dt.datetime
) -> JobProgress:
    save_scores(prm=prm, texts=texts, scores=step_scores, now=now)
    return progress


def _finish_shard(generation_id: int | None, done: int, now: dt.datetime) -> JobProgress:
    if generation_id is not None:
        generations.record_finished_shard(generation_id=generation_id, now=now)
    return JobProgress(done, done)


# --- push -------------------------------------------------------------------------------------------------------------


class NotPushable(Exception):
    """The PRM was not registered for pushed scores."""


class PushedLine(msgspec.Struct):
    scores: list[float | None]
    trace: int | None = None
    digest: str | None = None


@dataclass
class ScorePushReport:
    added: int = 0
    known: int = 0
    steps: int = 0
    bad: int = 0
    bad_lines: list[tuple[int, str]] = field(default_factory=list)

    def refuse(self, number: int, reason: str) -> None:
        self.bad += 1
        if len(self.bad_lines) < MAX_REPORTED_LINES:
            self.bad_lines.append((number, reason))


_decoder = msgspec.json.Decoder(PushedLine)
_NumberedLine = tuple[int, PushedLine]


def push_scores(*, prm: PRM, lines: Iterable[bytes], by: User | None, now: dt.datetime) -> ScorePushReport:
    """Save all valid lines. After an interruption, push the same file again: the rest is added."""
    if prm.backend != BackendKind.PUSHED:
        raise NotPushable(
            "This PRM takes no pushed scores. Register one with the backend “pushed”, and push to its version."
        )
    report, numbered = ScorePushReport(), enumerate(lines, start=1)
    while part := list(islice(numbered, _LINES_PER_TRANSACTION)):
        _push_part(prm, _parse_lines(part, report), report, now)
    report.bad_lines.sort()
    audit_log.log_event(
        what="scores.pushed",
        by=by,
        now=now,
        project=prm.project_id,
        subject=f"prm:{prm.pk}",
        detail={"added": report.added, "known": report.known, "bad": report.bad},
    )
    return report


def _parse_lines(part: Sequence[tuple[int, bytes]], report: ScorePushReport) -> Iterator[_NumberedLine]:
    for number, raw in part:
        if not raw.strip():
            continue
        try:
            line = _decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            report.refuse(number, str(error))
            continue
        if (line.trace is None) == (line.digest is None):
            report.refuse(number, "set either “trace” or “digest”")
            continue
        yield number, line


def _push_part(prm: PRM, lines: Iterable[_NumberedLine], report: ScorePushReport, now: dt.datetime) -> None:
    numbered = list(lines)
    ids = _resolve_trace_ids(prm.project, [line for _, line in numbered])
    texts = {text.trace: text for text in labeled_traces.load_trace_texts(sorted(set(ids.values())))}
    rows = Score.objects.filter(prm=prm, trace__in=texts).values_list("trace_id", "numbers")
    known = {trace: bytes(encoded) for trace, encoded in rows}
    new: dict[int, Floats] = {}
    for number, line in numbered:
        trace = ids.get(line.trace if line.trace is not None else line.digest or "")
        if trace is None:
            report.refuse(number, "no such trace in this project")
            continue
        text = texts[trace]
        try:
            numbers = _validate_line(prm, line, text)
        except BackendError as error:
            report.refuse(number, str(error))
            continue
        encoded = encode_scores(numbers, text.steps, text.is_rateable)
        if trace not in known:
            known[trace], new[trace] = encoded, numbers
            report.steps += len(text.steps)
        elif known[trace] == encoded:
            report.known += 1
        else:
            report.refuse(number, "this version already has other scores for the trace: push to a new version")
    with transaction.atomic():
        new_texts = [texts[trace] for trace in new]
        report.added += save_scores(prm=prm, texts=new_texts, scores=list(new.values()), now=now)


def _validate_line(prm: PRM, line: PushedLine, text: TraceText) -> Floats:
    numbers = np.array([np.nan if each is None else each for each in line.scores], dtype=np.float64)
    if len(numbers) == len(text.steps):
        numbers[~np.array(text.is_rateable, dtype=np.bool_)] = 0.5  # scores of context are not stored
    return base.validate_scores([numbers], [text], prm.semantics)[0]


def _resolve_trace_ids(project: Project, lines: Sequence[PushedLine]) -> dict[int | str, int]:
    """Map the ids and digests of the lines to traces of this project."""
    ids: dict[int | str, int] = {}
    traces = Trace.objects.filter(project=project)
    numbers = [line.trace for line in lines if line.trace is not None]
    digests = [line.digest for line in lines if line.digest is not None]
    ids.update((pk, pk) for pk in traces.filter(pk__in=numbers).values_list("pk", flat=True))
    ids.update(traces.filter(digest__in=digests).values_list("digest", "pk"))
    return ids
