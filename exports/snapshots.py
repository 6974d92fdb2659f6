"""Makes snapshots: orders them, freezes what they read, has their shards built, and finishes them. Alone changes
Snapshot, Shard and SnapshotFile.

One job plans and freezes; one job for each shard, on as many workers as there are, writes files; who writes the last
shard asks for the job that writes the card. The same three generators are what the command line runs by itself.
"""

import datetime as dt
import re
import shutil
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from accounts.models import User
from events import audit_log
from exports import destinations, disclosures, freeze_scan, orders, shards, split_assignment
from exports.files import WrittenFile
from exports.models import Shard, Snapshot, SnapshotFile, SnapshotPurpose
from exports.orders import InvalidOrder, SnapshotOrder
from exports.shards import BuildPlan, ShardWriter
from jobs import control
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.datasets import manifest
from labeling.datasets.selection import Exclusions, ScoreSource
from labeling.models import Manifest, ManifestRow, Project, Source
from prm import registry, scores

PREPARE, BUILD, FINISH = "exports.prepare", "exports.build_shard", "exports.finish"
SHARD = 20_000  # rows of a manifest


def order_snapshot(
    *,
    project: Project,
    name: str,
    purpose: str,
    wanted: SnapshotOrder,
    by: User | None,
    now: dt.datetime,
    asks: bool = True,
) -> Snapshot:
    """Make the snapshot, and ask for it to be built behind the scenes."""
    if purpose == SnapshotPurpose.TRAINING:
        wanted.rule = msgspec.structs.replace(wanted.rule, takes_cut_off=False, takes_contested=False)
    elif wanted.taken_in:
        raise InvalidOrder("An archive takes everything in: there is nothing to give a reason for.")
    orders.validate_order(wanted)
    destinations.validate_destinations(wanted.deliver_to)
    try:
        with transaction.atomic():
            made = Snapshot.objects.create(
                project=project,
                name=name,
                purpose=purpose,
                order=msgspec.to_builtins(wanted),
                statement=disclosures.load_disclosure(project),
                asked_at=now,
                asked_by=by,
            )
            audit_log.log_event(what="snapshot.ordered", by=by, now=now, project=project.pk, subject=job_subject(made))
            if asks:
                _request_job(PREPARE, made, by=by, now=now)
    except IntegrityError as error:
        raise InvalidOrder(f"There is a snapshot called {name} already: choose another name.") from error
    return made


def cancel_snapshot(*, snapshot: Snapshot, by: User | None, now: dt.datetime) -> None:
    """End its jobs. What was built of it is thrown away; a snapshot that is whole stays."""
    if not Snapshot.objects.filter(pk=snapshot.pk, built_at=None, cancelled_at=None).update(cancelled_at=now):
        return
    for job in Job.objects.filter(subject=job_subject(snapshot)).unfinished():
        control.cancel_job(job=job, by=by, now=now)
    shutil.rmtree(snapshot_folder(snapshot), ignore_errors=True)


def job_subject(snapshot: Snapshot) -> str:
    return f"snapshot:{snapshot.pk}"


def snapshot_folder(snapshot: Snapshot) -> Path:
    return Path(settings.DATA_DIR) / "snapshots" / str(snapshot.pk)


def find_file(snapshot: Snapshot, name: str) -> SnapshotFile | None:
    """Only what the snapshot lists and still has: a name is looked up, never followed, and may be anything."""
    row = snapshot.files.filter(name=name).first() if "\0" not in name else None
    return row if row and (snapshot_folder(snapshot) / row.name).is_file() else None


def load_order(snapshot: Snapshot) -> SnapshotOrder:
    return msgspec.convert(snapshot.order, SnapshotOrder)


def load_plan(snapshot: Snapshot) -> BuildPlan:
    return msgspec.convert(snapshot.plan, BuildPlan)


def suggest_name(project: Project) -> str:
    """The project's name and the next number."""
    names = Snapshot.objects.filter(project=project).values_list("name", flat=True)
    numbers = [int(found[1]) for name in names if (found := re.search(r"-v(\d+)$", name))]
    return f"{project.slug[:90]}-v{max(numbers, default=0) + 1}"


def _request_job(kind: str, snapshot: Snapshot, *, by: User | None, now: dt.datetime, **arguments: Any) -> None:
    given = {"snapshot": snapshot.pk, **arguments}
    control.request_job(kind=kind, subject=job_subject(snapshot), arguments=given, by=by, now=now)


# --- planning and freezing -------------------------------------------------------------------------------------------


def prepare_snapshot(snapshot: Snapshot, *, asks: bool) -> Iterator[JobProgress | Chunk]:
    """Look around, then freeze in one transaction what the snapshot reads."""
    if snapshot.manifest_id is not None:
        return
    wanted = load_order(snapshot)
    if wanted.is_split:
        yield from split_assignment.assign_splits(snapshot.project)
    looking = freeze_scan.scan_before_freeze(snapshot.project, snapshot.purpose, wanted)
    while True:
        try:
            yield JobProgress(0, checkpoint={"read": next(looking)})
        except StopIteration as found:
            excluded, plan = found.value
            break
    yield partial(_freeze, snapshot, excluded, plan, asks)


def _freeze(snapshot: Snapshot, excluded: Exclusions, plan: BuildPlan, asks: bool, now: dt.datetime) -> JobProgress:
    wanted, prm = load_order(snapshot), registry.current_prm(snapshot.project_id)
    if prm is not None:
        plan.prm, plan.prm_label = prm.pk, prm.label
    frozen = manifest.freeze_manifest(
        project=snapshot.project,
        filters=wanted.filters,
        purpose=snapshot.purpose,
        now=now,
        by=snapshot.asked_by,
        excluded=excluded,
        scored=ScoreSource(prm.label, scores.traces_scored_by(prm)) if prm else None,
        by_trace=wanted.by_trace,
    )
    plan.licences = _load_licences(snapshot.project)
    _compute_weights(frozen, plan)
    spans = _shard_spans(frozen, by_trace=wanted.by_trace)
    snapshot.manifest, snapshot.frozen_at, snapshot.shards_left = frozen, now, len(spans)
    snapshot.plan = msgspec.to_builtins(plan)
    snapshot.save(update_fields=["manifest", "frozen_at", "shards_left", "plan"])
    for number, (start, stop) in enumerate(spans):
        Shard.objects.create(snapshot=snapshot, number=number, start=start, stop=stop)
        if asks:
            _request_job(BUILD, snapshot, by=snapshot.asked_by, now=now, shard=number)
    return JobProgress(frozen.n_rows, frozen.n_rows)


def _load_licences(project: Project) -> dict[str, str]:
    """Of each source by its name, as they are stated now: a licence may be stated anew when the file comes again."""
    found: dict[str, set[str]] = {}
    for name, licence in Source.objects.filter(project=project).values_list("name", "licence"):
        found.setdefault(name, set()).add(licence)
    return {name: " / ".join(sorted(licences - {""})) for name, licences in found.items()}


def _shard_spans(frozen: Manifest, *, by_trace: bool) -> list[tuple[int, int]]:
    """Stretches of about as many rows. Where readings of a trace stand together, none is cut in two."""
    ends = []
    for at in range(SHARD, frozen.n_rows, SHARD):
        ends.append(_next_trace(frozen, at) if by_trace else at)
    bounds = sorted({0, *(end for end in ends if end is not None), frozen.n_rows})
    return list(pairwise(bounds)) or [(0, 0)]


def _next_trace(frozen: Manifest, at: int) -> int | None:
    rows = ManifestRow.objects.filter(manifest=frozen)
    before = rows.get(position=at - 1).trace_id
    after = rows.filter(position__gte=at).exclude(trace_id=before).order_by("position")
    return after.values_list("position", flat=True).first()


_WEIGHTS = """SELECT COUNT(w), SUM(w), SUM(w * w) FROM (
  SELECT CASE WHEN 1.0 / (d.q * d.n_left) > %s THEN %s ELSE 1.0 / (d.q * d.n_left) END AS w
  FROM labeling_tracedraw d WHERE d.id IN (
    SELECT a.draw_id FROM labeling_manifestrow m JOIN labeling_submission u ON u.id = m.submission_id
    JOIN labeling_assignment a ON a.id = u.assignment_id WHERE m.manifest_id = %s)) AS drawn"""


def _compute_weights(frozen: Manifest, plan: BuildPlan) -> None:
    """The mean by which weights are made to average one, and how many equal draws those of this snapshot are worth."""
    from formats.examples import WEIGHT_CAP

    with connection.cursor() as cursor:
        cursor.execute(_WEIGHTS, [WEIGHT_CAP, WEIGHT_CAP, frozen.pk])
        n, total, squares = cursor.fetchone()
    if n:
        plan.n_weighted = n
        plan.mean_weight = float(total) / n
        plan.effective_sample_size = float(total) ** 2 / float(squares)


# --- shards ------------------------------------------------------------------------------------------------------


def build_shard(snapshot: Snapshot, number: int, *, asks: bool) -> Iterator[JobProgress | Chunk]:
    """Write the files of one shard and keep what they are."""
    shard = Shard.objects.get(snapshot=snapshot, number=number)
    if shard.built_at is not None:
        return
    total, shard_writer = shard.stop - shard.start, open_shard_writer(snapshot, shard, snapshot_folder(snapshot))
    for done in write_shard(snapshot, shard, shard_writer):
        yield JobProgress(done, total)
    yield partial(_mark_shard_built, snapshot, shard, shard_writer.close(), shard_writer.figures(), asks)


def open_shard_writer(snapshot: Snapshot, shard: Shard, into: Path) -> ShardWriter:
    name = partial(shard_file_name, shard.number, snapshot.shards.count())
    return ShardWriter(into, load_order(snapshot), load_plan(snapshot), name)


def write_shard(snapshot: Snapshot, shard: Shard, shard_writer: ShardWriter) -> Iterator[int]:
    """From the manifest alone: begun anew after a crash, or years later, it writes the same."""
    assert snapshot.manifest is not None
    return shards.write_chunks(
        snapshot.manifest, shard_writer, load_order(snapshot), start=shard.start, stop=shard.stop
    )


def rewrite_files(snapshot: Snapshot, into: Path) -> list[str]:
    """Write all data files once more, elsewhere. Names those that came out otherwise."""
    known = dict(snapshot.files.values_list("name", "sha256"))
    differing = []
    for shard in snapshot.shards.order_by("number"):
        shard_writer = open_shard_writer(snapshot, shard, into)
        for _done in write_shard(snapshot, shard, shard_writer):
            pass
        differing += [each.name for each in shard_writer.close() if known.get(each.name) != each.sha256]
    return differing


def shard_file_name(number: int, n: int, format: str, split: str, ending: str) -> str:
    """As the Hugging Face hub names shards."""
    weights = ".weights" if format.endswith(".weights") else ""
    place = f"-{number:05}-of-{n:05}" if n > 1 else ""
    return f"data/{format.removesuffix('.weights')}/{split}{place}{weights}.{ending}"


def _mark_shard_built(
    snapshot: Snapshot, shard: Shard, written: list[WrittenFile], figures: dict[str, Any], asks: bool, now: dt.datetime
) -> JobProgress:
    total = shard.stop - shard.start
    if not Shard.objects.filter(pk=shard.pk, built_at=None).update(built_at=now, figures=figures):
        return JobProgress(total, total)
    save_files(snapshot=snapshot, written=written, now=now)
    Snapshot.objects.filter(pk=snapshot.pk).update(shards_left=F("shards_left") - 1)
    snapshot.refresh_from_db(fields=["shards_left"])
    if asks and snapshot.shards_left == 0:
        _request_job(FINISH, snapshot, by=snapshot.asked_by, now=now)
    return JobProgress(total, total)


def save_files(*, snapshot: Snapshot, written: list[WrittenFile], now: dt.datetime) -> None:
    SnapshotFile.objects.bulk_create(
        SnapshotFile(
            snapshot=snapshot,
            name=each.name,
            format=each.format,
            split=each.split,
            rows=each.rows or None,
            size=each.size,
            sha256=each.sha256,
        )
        for each in written
    )


def save_figures(*, snapshot: Snapshot, figures: dict[str, Any], now: dt.datetime) -> None:
    """What was counted, before the card is written from it."""
    Snapshot.objects.filter(pk=snapshot.pk, built_at=None).update(figures=figures)


def mark_built(*, snapshot: Snapshot, written: list[WrittenFile], now: dt.datetime) -> None:
    """The last word: card and manifest are written, nothing changes any more."""
    if not Snapshot.objects.filter(pk=snapshot.pk, built_at=None).update(built_at=now):
        return
    save_files(snapshot=snapshot, written=written, now=now)
    audit_log.log_event(
        what="snapshot.built", by=snapshot.asked_by, now=now, project=snapshot.project_id, subject=job_subject(snapshot)
    )
