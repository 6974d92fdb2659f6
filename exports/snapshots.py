"""Make snapshots: order, freeze, and build shards. Only this module and `exports.finish_job` write `Snapshot`, `Shard`,
and `SnapshotFile`.

One job scans the project and freezes the manifest; one job per shard writes files, on all available workers; the job of
the last shard requests the job that writes the card (`exports.finish_job`). The command line runs the same generators,
with `enqueue=False`.
"""

import datetime as dt
import re
import shutil
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils.translation import gettext as _

import rawsql
from accounts.models import User
from events import audit_log
from exports import card, orders, splits
from exports.files import WrittenFile
from exports.models import Shard, Snapshot, SnapshotFile, SnapshotPurpose
from exports.orders import InvalidOrder, SnapshotOrder, load_order
from exports.shards import BuildPlan, ShardWriter
from formats.examples import WEIGHT_CAP
from jobs import control
from jobs.failures import check_free_space
from jobs.models import Job, JobState
from jobs.runner import Chunk, JobProgress
from labeling.datasets import manifest
from labeling.datasets.selection import ExclusionRule, ScoreSource
from labeling.models import Consensus, Manifest, ManifestRow, Project, Source
from labeling.quality import chosen_raters, new_submissions
from labeling.quality.chosen_raters import RaterChoice
from machines import judges
from prm import registry, scores

PREPARE, BUILD, FINISH = "exports.prepare", "exports.build_shard", "exports.finish"
SHARD = 20_000  # manifest rows per shard


@dataclass(frozen=True)
class SnapshotStatus:
    """The progress of a snapshot, from its jobs."""

    state: Literal["building", "built", "failed", "cancelled"]
    done: int
    total: int | None
    failure: str = ""
    failed: Job | None = None

    @property
    def is_at_work(self) -> bool:
        return self.state == "building"


def order_snapshot(
    *,
    project: Project,
    name: str,
    purpose: str,
    order: SnapshotOrder,
    by: User | None,
    now: dt.datetime,
    enqueue: bool = True,
) -> Snapshot:
    """Create the snapshot, and request the job that builds it."""
    if purpose == SnapshotPurpose.TRAINING:
        order.rule = msgspec.structs.replace(order.rule, takes_cut_off=False, takes_contested=False)
    elif order.taken_in:
        raise InvalidOrder("archive", "An archive includes everything: there are no exclusions to override.")
    orders.validate_order(order)
    if order.filters.agreeing_machines:
        order.filters.agreeing_machines = judges.replace_labels(project, order.filters.agreeing_machines)
        orders.validate_machines(project, order.filters.agreeing_machines)
    try:
        with transaction.atomic():
            snapshot = Snapshot.objects.create(
                project=project,
                name=name,
                purpose=purpose,
                order=msgspec.to_builtins(order),
                statement=card.load_disclosure(project),
                asked_at=now,
                asked_by=by,
            )
            detail = {"has_names": order.has_labeler_names}
            log_snapshot_event(what="snapshot.ordered", snapshot=snapshot, by=by, now=now, detail=detail)
            if enqueue:
                _request_job(PREPARE, snapshot, by=by, now=now)
    except IntegrityError as error:
        raise InvalidOrder("name", f"A snapshot named {name} already exists. Choose another name.") from error
    return snapshot


def cancel_snapshot(*, snapshot: Snapshot, by: User | None, now: dt.datetime) -> None:
    """Cancel the jobs of an unfinished snapshot, and delete its files."""
    if not Snapshot.objects.filter(pk=snapshot.pk, built_at=None, cancelled_at=None).update(cancelled_at=now):
        return
    for job in Job.objects.filter(subject=job_subject(snapshot)).unfinished():
        control.cancel_job(job=job, by=by, now=now)
    shutil.rmtree(snapshot_folder(snapshot), ignore_errors=True)


def job_subject(snapshot: Snapshot) -> str:
    return f"snapshot:{snapshot.pk}"


def snapshot_folder(snapshot: Snapshot) -> Path:
    return Path(settings.DATA_DIR) / "snapshots" / str(snapshot.pk)


def describe_lost_files() -> Iterator[str]:
    """Name the built snapshots whose files are not on this machine, with the command that writes them again."""
    for snapshot in Snapshot.objects.exclude(built_at=None).select_related("project").order_by("pk"):
        folder = snapshot_folder(snapshot)
        names = snapshot.files.values_list("name", flat=True)
        if missing := sum(not (folder / name).is_file() for name in names):
            values = {"n": missing, "project": snapshot.project.slug, "name": snapshot.name, "folder": folder}
            yield (
                _(
                    "Snapshot %(name)s of %(project)s: %(n)d files are missing. Write them again: manage.py"
                    " build_snapshot --project %(project)s --name %(name)s --again --out %(folder)s"
                )
                % values
            )


def has_rows(snapshot: Snapshot) -> bool:
    """Tell whether a data file of a built snapshot has any row."""
    return snapshot.files.exclude(format="").filter(rows__gt=0).exists()


def list_lost_files(snapshot: Snapshot) -> list[str]:
    """Return the files of a built snapshot that are gone, as after a restore: a backup has no files of snapshots."""
    if snapshot.built_at is None:
        return []
    names = snapshot.files.order_by("name").values_list("name", flat=True)
    return [name for name in names if not (snapshot_folder(snapshot) / name).is_file()]


def find_file(snapshot: Snapshot, name: str) -> SnapshotFile | None:
    """Return the row of a file that the snapshot lists and that exists. The name is untrusted: it is only compared."""
    row = snapshot.files.filter(name=name).first() if "\0" not in name else None
    return row if row and (snapshot_folder(snapshot) / row.name).is_file() else None


def log_download(*, snapshot: Snapshot, file: str, by: User, now: dt.datetime) -> None:
    """Log who downloaded which file. If a download is continued (ranges), each part is logged."""
    log_snapshot_event(what="snapshot.downloaded", snapshot=snapshot, by=by, now=now, detail={"file": file})


def load_snapshot_status(snapshot: Snapshot) -> SnapshotStatus:
    """Return the state, the number of manifest rows written, and the failed job, if any."""
    if snapshot.built_at is not None:
        return SnapshotStatus("built", 0, None)
    jobs = list(Job.objects.filter(subject=job_subject(snapshot)).order_by("pk"))
    failed = next((job for job in jobs if job.state == JobState.FAILED), None)
    total = snapshot.manifest.n_rows if snapshot.manifest else None
    done = min(sum(job.done for job in jobs if job.kind == BUILD), total or 0)
    if snapshot.cancelled_at is not None:
        return SnapshotStatus("cancelled", done, total)
    if failed is not None:
        return SnapshotStatus("failed", done, total, failed.failure, failed)
    return SnapshotStatus("building", done, total)


def suggest_name(project: Project) -> str:
    """Return the project's slug with the next version number."""
    names = Snapshot.objects.filter(project=project).values_list("name", flat=True)
    numbers = [int(match[1]) for name in names if (match := re.search(r"-v(\d+)$", name))]
    return f"{project.slug[:90]}-v{max(numbers, default=0) + 1}"


def _request_job(kind: str, snapshot: Snapshot, *, by: User | None, now: dt.datetime, **arguments: Any) -> None:
    arguments["snapshot"] = snapshot.pk
    control.request_job(kind=kind, subject=job_subject(snapshot), arguments=arguments, by=by, now=now)


def log_snapshot_event(
    *, what: str, snapshot: Snapshot, by: User | None, now: dt.datetime, detail: Mapping[str, object] | None = None
) -> None:
    subject = job_subject(snapshot)
    audit_log.log_event(what=what, by=by, now=now, project=snapshot.project_id, subject=subject, detail=detail)


# --- scanning and freezing -------------------------------------------------------------------------------------------


def prepare_snapshot(snapshot: Snapshot, *, enqueue: bool) -> Iterator[JobProgress | Chunk]:
    """Scan the project for exclusions and splits, then freeze the manifest in one transaction."""
    if snapshot.manifest_id is not None:
        return
    yield _count_submissions
    project, order, plan = snapshot.project, load_order(snapshot), BuildPlan()
    is_training = snapshot.purpose == SnapshotPurpose.TRAINING
    split = None
    if order.is_split:
        yield from splits.assign_splits(project)
        split = yield from splits.scan_assignments(project, validation=order.validation, test=order.test)
        plan.places = split.positions
    texts = yield from orders.scan_texts(project, is_training=is_training, without_duplicates=order.without_duplicates)
    if is_training:
        plan.benchmarks = orders.count_benchmark_problems(project)
    revisions: dict[int, int] = {}
    if order.filters.is_consensus and not order.filters.choice.is_everybody:
        for chunk in chosen_raters.iterate_chunks(project=project, choice=order.filters.choice):
            yield partial(_infer_consensus, project, order.filters.choice, chunk, revisions, plan)
    rules = orders.build_rules(
        project, order.filters, is_training=is_training, overrides=order.taken_in, texts=texts, split=split
    )
    yield partial(_freeze, snapshot, rules, plan, revisions, enqueue)


def _infer_consensus(
    project: Project,
    choice: RaterChoice,
    current: Sequence[Consensus],
    revisions: dict[int, int],
    plan: BuildPlan,
    now: dt.datetime,
) -> JobProgress:
    saved = chosen_raters.save_chosen_revisions(project=project, revisions=current, choice=choice, now=now)
    revisions.update({trace: revision for trace, revision, _n_votes in saved})
    plan.n_inferred += len(saved)
    plan.n_inferred_from_one += sum(n_votes == 1 for *_, n_votes in saved)
    plan.n_undetermined += len(current) - len(saved)
    return JobProgress(0)


def _count_submissions(now: dt.datetime) -> JobProgress:
    """Count the newest submissions, so that the agreement of the card covers every row of the manifest."""
    new_submissions.process_new_submissions(now=now)
    return JobProgress(0)


def _freeze(
    snapshot: Snapshot,
    rules: Sequence[ExclusionRule],
    plan: BuildPlan,
    revisions: Mapping[int, int],
    enqueue: bool,
    now: dt.datetime,
) -> JobProgress:
    order, prm = load_order(snapshot), registry.current_prm(snapshot.project_id)
    if prm is not None:
        plan.prm, plan.prm_label = prm.pk, prm.label
    frozen = manifest.freeze_manifest(
        project=snapshot.project,
        filters=order.filters,
        purpose=snapshot.purpose,
        now=now,
        by=snapshot.asked_by,
        exclusions=rules,
        score_source=ScoreSource(prm.label, scores.traces_scored_by(prm)) if prm else None,
        by_trace=order.by_trace,
        chosen_revisions=revisions,
    )
    plan.licences = _load_licences(snapshot.project)
    _compute_weights(frozen, plan)
    spans = _shard_spans(frozen, by_trace=order.by_trace)
    snapshot.manifest, snapshot.frozen_at, snapshot.shards_left = frozen, now, len(spans)
    snapshot.plan = msgspec.to_builtins(plan)
    snapshot.save(update_fields=["manifest", "frozen_at", "shards_left", "plan"])
    for number, (start, stop) in enumerate(spans):
        Shard.objects.create(snapshot=snapshot, number=number, start=start, stop=stop)
        if enqueue:
            _request_job(BUILD, snapshot, by=snapshot.asked_by, now=now, shard=number)
    return JobProgress(frozen.n_rows, frozen.n_rows)


def _load_licences(project: Project) -> dict[str, str]:
    """Return the current license of each source. A later import of the same file may state another one, so the build
    reads this copy."""
    licences: dict[str, set[str]] = {}
    for name, licence in Source.objects.filter(project=project).values_list("name", "licence"):
        licences.setdefault(name, set()).add(licence)
    return {name: " / ".join(sorted(texts - {""})) for name, texts in licences.items()}


def _shard_spans(frozen: Manifest, *, by_trace: bool) -> list[tuple[int, int]]:
    """Divide the manifest into ranges of about the same size. With `by_trace`, no trace is divided."""
    ends = [_next_trace(frozen, at) if by_trace else at for at in range(SHARD, frozen.n_rows, SHARD)]
    bounds = sorted({0, *(end for end in ends if end is not None), frozen.n_rows})
    return list(pairwise(bounds)) or [(0, 0)]


def _next_trace(frozen: Manifest, at: int) -> int | None:
    """Return the position of the first row after the trace of row `at - 1`."""
    rows = ManifestRow.objects.filter(manifest=frozen)
    trace_id = rows.get(position=at - 1).trace_id
    following = rows.filter(position__gte=at).exclude(trace_id=trace_id).order_by("position")
    return following.values_list("position", flat=True).first()


_WEIGHTS = """SELECT COUNT(w), SUM(w), SUM(w * w) FROM (
  SELECT LEAST(1.0 / (d.q * d.n_left), %(cap)s::float8) AS w FROM labeling_tracedraw d WHERE d.id IN (
    SELECT a.draw_id FROM labeling_manifestrow m JOIN labeling_submission u ON u.id = m.submission_id
    JOIN labeling_assignment a ON a.id = u.assignment_id
    WHERE m.manifest_id = %(manifest)s AND a.population <> 'chosen')) AS drawn"""


def _compute_weights(frozen: Manifest, plan: BuildPlan) -> None:
    """Compute the mean weight, by which weights are normalized to average 1, and the effective sample size."""
    ((n, total, squares),) = rawsql.fetch_rows(_WEIGHTS, {"cap": WEIGHT_CAP, "manifest": frozen.pk})
    if n:
        plan.n_weighted = n
        plan.mean_weight = float(total) / n
        plan.effective_sample_size = float(total) ** 2 / float(squares)


# --- shards ----------------------------------------------------------------------------------------------------------


def build_shard(snapshot: Snapshot, number: int, *, enqueue: bool) -> Iterator[JobProgress | Chunk]:
    """Write the files of one shard, and record them."""
    shard = Shard.objects.get(snapshot=snapshot, number=number)
    if shard.built_at is not None:
        return
    assert snapshot.manifest is not None
    total, writer = shard.stop - shard.start, _open_writer(snapshot, shard, snapshot_folder(snapshot))
    for done in writer.write_rows(snapshot.manifest, start=shard.start, stop=shard.stop):
        check_free_space()
        yield JobProgress(done, total)
    yield partial(_mark_shard_built, snapshot, shard, writer.close(), writer.figures(), enqueue)


def _open_writer(snapshot: Snapshot, shard: Shard, folder: Path) -> ShardWriter:
    plan, n_shards = msgspec.convert(snapshot.plan, BuildPlan), snapshot.shards.count()
    return ShardWriter(folder, load_order(snapshot), plan, number=shard.number, n_shards=n_shards)


def rewrite_files(snapshot: Snapshot, folder: Path) -> list[str]:
    """Write all data files again into another folder, and return the names of files that differ."""
    assert snapshot.manifest is not None
    known = dict(snapshot.files.values_list("name", "sha256"))
    differing = []
    for shard in snapshot.shards.order_by("number"):
        writer = _open_writer(snapshot, shard, folder)
        deque(writer.write_rows(snapshot.manifest, start=shard.start, stop=shard.stop), maxlen=0)
        differing += [file.name for file in writer.close() if known.get(file.name) != file.sha256]
    return differing


def rebuild_snapshot(*, snapshot: Snapshot, by: User | None, now: dt.datetime) -> None:
    """Delete the files of a frozen snapshot and write them again, after texts of its rows were erased."""
    with transaction.atomic():
        shards = Shard.objects.filter(snapshot=snapshot)
        shards.update(built_at=None)
        Snapshot.objects.filter(pk=snapshot.pk).update(built_at=None, shards_left=shards.count())
        snapshot.files.all().delete()
        log_snapshot_event(what="snapshot.rebuilt", snapshot=snapshot, by=by, now=now)
        transaction.on_commit(partial(shutil.rmtree, snapshot_folder(snapshot), ignore_errors=True))
        for number in shards.order_by("number").values_list("number", flat=True):
            _request_job(BUILD, snapshot, by=by, now=now, shard=number)


def _mark_shard_built(
    snapshot: Snapshot,
    shard: Shard,
    written: list[WrittenFile],
    figures: dict[str, Any],
    enqueue: bool,
    now: dt.datetime,
) -> JobProgress:
    total = shard.stop - shard.start
    if not Shard.objects.filter(pk=shard.pk, built_at=None).update(built_at=now, figures=figures):
        return JobProgress(total, total)
    save_files(snapshot=snapshot, written=written, now=now)
    Snapshot.objects.filter(pk=snapshot.pk).update(shards_left=F("shards_left") - 1)
    snapshot.refresh_from_db(fields=["shards_left"])
    if enqueue and snapshot.shards_left == 0:
        _request_job(FINISH, snapshot, by=snapshot.asked_by, now=now)
    return JobProgress(total, total)


def save_files(*, snapshot: Snapshot, written: list[WrittenFile], now: dt.datetime) -> None:
    SnapshotFile.objects.bulk_create(
        SnapshotFile(snapshot=snapshot, **{**msgspec.structs.asdict(each), "rows": each.rows or None})
        for each in written
    )
