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
from events import log
from exports import building, destinations, orders, planning, seating, statements
from exports.building import Plan, Shelf
from exports.files import Written
from exports.models import Purpose, Shard, Snapshot, SnapshotFile
from exports.orders import Order, Unfit
from jobs import work
from jobs.models import Job
from jobs.runner import Chunk, Progress
from labeling import manifest
from labeling.choosing import Barred, Scored
from labeling.models import Manifest, ManifestRow, Project, Source
from prm import registry, scores

PREPARE, BUILD, FINISH = "exports.prepare", "exports.build_shard", "exports.finish"
SHARD = 20_000  # rows of a manifest


def order(
    *, project: Project, name: str, purpose: str, wanted: Order, by: User | None, now: dt.datetime, asks: bool = True
) -> Snapshot:
    """Make the snapshot, and ask for it to be built behind the scenes."""
    if purpose == Purpose.TRAINING:
        wanted.rule = msgspec.structs.replace(wanted.rule, takes_cut_off=False, takes_contested=False)
    elif wanted.taken_in:
        raise Unfit("An archive takes everything in: there is nothing to give a reason for.")
    orders.check(wanted)
    destinations.check(wanted.deliver_to)
    try:
        with transaction.atomic():
            made = Snapshot.objects.create(
                project=project,
                name=name,
                purpose=purpose,
                order=msgspec.to_builtins(wanted),
                statement=statements.of(project),
                asked_at=now,
                asked_by=by,
            )
            log.append(what="snapshot.ordered", by=by, now=now, project=project.pk, subject=subject(made))
            if asks:
                _ask(PREPARE, made, by=by, now=now)
    except IntegrityError as error:
        raise Unfit(f"There is a snapshot called {name} already: choose another name.") from error
    return made


def cancel(*, snapshot: Snapshot, by: User | None, now: dt.datetime) -> None:
    """End its jobs. What was built of it is thrown away; a snapshot that is whole stays."""
    if not Snapshot.objects.filter(pk=snapshot.pk, built_at=None, cancelled_at=None).update(cancelled_at=now):
        return
    for job in Job.objects.filter(subject=subject(snapshot)).unfinished():
        work.cancel(job=job, by=by, now=now)
    shutil.rmtree(folder(snapshot), ignore_errors=True)


def subject(snapshot: Snapshot) -> str:
    return f"snapshot:{snapshot.pk}"


def folder(snapshot: Snapshot) -> Path:
    return Path(settings.DATA_DIR) / "snapshots" / str(snapshot.pk)


def file_of(snapshot: Snapshot, name: str) -> SnapshotFile | None:
    """Only what the snapshot lists and still has: a name is looked up, never followed, and may be anything."""
    row = snapshot.files.filter(name=name).first() if "\0" not in name else None
    return row if row and (folder(snapshot) / row.name).is_file() else None


def order_of(snapshot: Snapshot) -> Order:
    return msgspec.convert(snapshot.order, Order)


def plan_of(snapshot: Snapshot) -> Plan:
    return msgspec.convert(snapshot.plan, Plan)


def next_name(project: Project) -> str:
    """The project's name and the next number."""
    names = Snapshot.objects.filter(project=project).values_list("name", flat=True)
    numbers = [int(found[1]) for name in names if (found := re.search(r"-v(\d+)$", name))]
    return f"{project.slug[:90]}-v{max(numbers, default=0) + 1}"


def _ask(kind: str, snapshot: Snapshot, *, by: User | None, now: dt.datetime, **arguments: Any) -> None:
    given = {"snapshot": snapshot.pk, **arguments}
    work.ask(kind=kind, subject=subject(snapshot), arguments=given, by=by, now=now)


# --- planning and freezing -------------------------------------------------------------------------------------------


def prepare(snapshot: Snapshot, *, asks: bool) -> Iterator[Progress | Chunk]:
    """Look around, then freeze in one transaction what the snapshot reads."""
    if snapshot.manifest_id is not None:
        return
    wanted = order_of(snapshot)
    if wanted.is_split:
        yield from seating.decide(snapshot.project)
    looking = planning.look_around(snapshot.project, snapshot.purpose, wanted)
    while True:
        try:
            yield Progress(0, checkpoint={"read": next(looking)})
        except StopIteration as found:
            barred, plan = found.value
            break
    yield partial(_freeze, snapshot, barred, plan, asks)


def _freeze(snapshot: Snapshot, barred: Barred, plan: Plan, asks: bool, now: dt.datetime) -> Progress:
    wanted, prm = order_of(snapshot), registry.current(snapshot.project_id)
    if prm is not None:
        plan.prm, plan.prm_label = prm.pk, prm.label
    frozen = manifest.freeze(
        project=snapshot.project,
        filters=wanted.filters,
        purpose=snapshot.purpose,
        now=now,
        by=snapshot.asked_by,
        barred=barred,
        scored=Scored(prm.label, scores.scored_by(prm)) if prm else None,
        by_trace=wanted.by_trace,
    )
    plan.licences = _licences(snapshot.project)
    _weigh(frozen, plan)
    spans = _spans(frozen, by_trace=wanted.by_trace)
    snapshot.manifest, snapshot.frozen_at, snapshot.shards_left = frozen, now, len(spans)
    snapshot.plan = msgspec.to_builtins(plan)
    snapshot.save(update_fields=["manifest", "frozen_at", "shards_left", "plan"])
    for number, (start, stop) in enumerate(spans):
        Shard.objects.create(snapshot=snapshot, number=number, start=start, stop=stop)
        if asks:
            _ask(BUILD, snapshot, by=snapshot.asked_by, now=now, shard=number)
    return Progress(frozen.n_rows, frozen.n_rows)


def _licences(project: Project) -> dict[str, str]:
    """Of each source by its name, as they are stated now: a licence may be stated anew when the file comes again."""
    found: dict[str, set[str]] = {}
    for name, licence in Source.objects.filter(project=project).values_list("name", "licence"):
        found.setdefault(name, set()).add(licence)
    return {name: " / ".join(sorted(licences - {""})) for name, licences in found.items()}


def _spans(frozen: Manifest, *, by_trace: bool) -> list[tuple[int, int]]:
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
  FROM labeling_draw d WHERE d.id IN (
    SELECT a.draw_id FROM labeling_manifestrow m JOIN labeling_submission u ON u.id = m.submission_id
    JOIN labeling_assignment a ON a.id = u.assignment_id WHERE m.manifest_id = %s)) AS drawn"""


def _weigh(frozen: Manifest, plan: Plan) -> None:
    """The mean by which weights are made to average one, and how many equal draws those of this snapshot are worth."""
    from exports.formats.examples import CAP

    with connection.cursor() as cursor:
        cursor.execute(_WEIGHTS, [CAP, CAP, frozen.pk])
        n, total, squares = cursor.fetchone()
    if n:
        plan.n_weighted = n
        plan.mean_weight = float(total) / n
        plan.effective_sample_size = float(total) ** 2 / float(squares)


# --- shards ------------------------------------------------------------------------------------------------------


def build(snapshot: Snapshot, number: int, *, asks: bool) -> Iterator[Progress | Chunk]:
    """Write the files of one shard and keep what they are."""
    shard = Shard.objects.get(snapshot=snapshot, number=number)
    if shard.built_at is not None:
        return
    total, shelf = shard.stop - shard.start, shelf_of(snapshot, shard, folder(snapshot))
    for done in write(snapshot, shard, shelf):
        yield Progress(done, total)
    yield partial(_shard_is_built, snapshot, shard, shelf.close(), shelf.figures(), asks)


def shelf_of(snapshot: Snapshot, shard: Shard, into: Path) -> Shelf:
    name = partial(file_name, shard.number, snapshot.shards.count())
    return Shelf(into, order_of(snapshot), plan_of(snapshot), name)


def write(snapshot: Snapshot, shard: Shard, shelf: Shelf) -> Iterator[int]:
    """From the manifest alone: begun anew after a crash, or years later, it writes the same."""
    assert snapshot.manifest is not None
    return building.chunks(snapshot.manifest, shelf, order_of(snapshot), start=shard.start, stop=shard.stop)


def write_again(snapshot: Snapshot, into: Path) -> list[str]:
    """Write all data files once more, elsewhere. Names those that came out otherwise."""
    known = dict(snapshot.files.values_list("name", "sha256"))
    differing = []
    for shard in snapshot.shards.order_by("number"):
        shelf = shelf_of(snapshot, shard, into)
        for _done in write(snapshot, shard, shelf):
            pass
        differing += [each.name for each in shelf.close() if known.get(each.name) != each.sha256]
    return differing


def file_name(number: int, n: int, format: str, split: str, ending: str) -> str:
    """As the Hugging Face hub names shards."""
    weights = ".weights" if format.endswith(".weights") else ""
    place = f"-{number:05}-of-{n:05}" if n > 1 else ""
    return f"data/{format.removesuffix('.weights')}/{split}{place}{weights}.{ending}"


def _shard_is_built(
    snapshot: Snapshot, shard: Shard, written: list[Written], figures: dict[str, Any], asks: bool, now: dt.datetime
) -> Progress:
    total = shard.stop - shard.start
    if not Shard.objects.filter(pk=shard.pk, built_at=None).update(built_at=now, figures=figures):
        return Progress(total, total)
    keep_files(snapshot=snapshot, written=written, now=now)
    Snapshot.objects.filter(pk=snapshot.pk).update(shards_left=F("shards_left") - 1)
    snapshot.refresh_from_db(fields=["shards_left"])
    if asks and snapshot.shards_left == 0:
        _ask(FINISH, snapshot, by=snapshot.asked_by, now=now)
    return Progress(total, total)


def keep_files(*, snapshot: Snapshot, written: list[Written], now: dt.datetime) -> None:
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


def keep_figures(*, snapshot: Snapshot, figures: dict[str, Any], now: dt.datetime) -> None:
    """What was counted, before the card is written from it."""
    Snapshot.objects.filter(pk=snapshot.pk, built_at=None).update(figures=figures)


def is_built(*, snapshot: Snapshot, written: list[Written], now: dt.datetime) -> None:
    """The last word: card and manifest are written, nothing changes any more."""
    if not Snapshot.objects.filter(pk=snapshot.pk, built_at=None).update(built_at=now):
        return
    keep_files(snapshot=snapshot, written=written, now=now)
    log.append(
        what="snapshot.built", by=snapshot.asked_by, now=now, project=snapshot.project_id, subject=subject(snapshot)
    )
