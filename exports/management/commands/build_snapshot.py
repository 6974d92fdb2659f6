"""Writes what was judged in a project into files: `manage.py build_snapshot --project SLUG --out DIR`.

Exit codes: 0 it is built, 1 it cannot be made as asked (why is said), 2 the command was not understood, 130 stopped
by Ctrl-C.
"""

import datetime as dt
import multiprocessing
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from exports import deliveries, destinations, finish_job, snapshots
from exports.models import Snapshot, SnapshotPurpose
from exports.orders import ENDINGS, InvalidOrder, SnapshotOrder
from formats.catalog import OUTPUT_FORMATS
from formats.labeled_paths import LabelRule
from jobs.runner import Chunk, JobProgress
from jobs.terminal import ProgressBar
from labeling.datasets.selection import ManifestFilters
from labeling.models import Project
from labeling.models.assignment import FinishReason

STOPPED = 130  # what shells say of a program that was interrupted


class Command(BaseCommand):
    help = (
        "Freezes what was judged in a project and writes it into files. `archive` holds all of it as it is. "
        "Exit codes: 0 it is built, 1 it cannot be made as asked, 2 the command was not understood, 130 stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--out", required=True, type=Path, metavar="DIR")
        parser.add_argument(
            "--format", action="append", choices=list(OUTPUT_FORMATS), help="may be said more than once"
        )
        parser.add_argument("--purpose", default="archive", choices=[str(each.value) for each in SnapshotPurpose])
        parser.add_argument("--ending", default="jsonl", choices=ENDINGS)
        parser.add_argument("--name", help="of the snapshot; otherwise the project's with the next number")
        parser.add_argument("--again", action="store_true", help="write the files of the snapshot --name once more")
        parser.add_argument("--neutral", default="positive", choices=["positive", "negative", "drop"])
        parser.add_argument("--human-steps", default="omit", choices=["omit", "positive"])
        parser.add_argument(
            "--without-alternatives", action="store_true", help="no rows of options that were not taken"
        )
        parser.add_argument("--validation", type=float, default=0.0, metavar="SHARE")
        parser.add_argument("--test", type=float, default=0.0, metavar="SHARE")
        parser.add_argument("--without-duplicates", action="store_true")
        parser.add_argument("--take-in", action="append", default=[], metavar="REASON")
        parser.add_argument("--reason", default="", help="why it is taken in: stands in the card")
        parser.add_argument(
            "--to",
            metavar="PLACE",
            help="also send it to a destination that is set up, by name, or to s3://bucket/prefix or hf://owner/name",
        )
        parser.add_argument("--workers", type=int, default=1, help="processes that write shards at the same time")
        self._add_filters(parser.add_argument_group("which submissions"))

    def _add_filters(self, group: Any) -> None:
        """What is not said asks for nothing; what may be said more than once names all that is wanted."""
        side = ["in", "out", "only"]
        add = group.add_argument
        add("--consensus", action="store_true", help="what all raters stand behind, not what each said")
        add(
            "--generation",
            action="append",
            type=_round,
            metavar="N",
            help="a round; `none` for submissions without one",
        )
        add("--domain", action="append", metavar="NAME")
        add("--finish-reason", action="append", choices=FinishReason.values)
        add("--from", dest="since", type=_moment, metavar="DATE", help="submitted from this day or moment on, in UTC")
        add("--until", type=_moment, metavar="DATE", help="submitted before it")
        add("--blind", action="store_true", help="only raters who saw no PRM's scores")
        add("--contested", default="in", choices=side)
        add("--gold", default="in", choices=side)
        add("--min-raters", type=int, default=0, metavar="N", help="of a trace")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(_("There is no project %(slug)s.") % {"slug": options["project"]})
        if options["again"]:
            self._again(project, options)
            return
        try:
            made = snapshots.order_snapshot(
                project=project,
                name=options["name"] or snapshots.suggest_name(project),
                purpose=options["purpose"],
                wanted=_wanted(options),
                by=None,
                now=timezone.now(),
                asks=False,
            )
        except InvalidOrder as error:
            raise CommandError(str(error)) from error
        self._bar = ProgressBar(self.stderr)
        try:
            self._build(made, options["workers"])
        except KeyboardInterrupt:
            self._bar.clear()
            snapshots.cancel_snapshot(snapshot=made, by=None, now=timezone.now())
            message = _("Stopped: the snapshot %(name)s is not built.") % {"name": made.name}
            raise CommandError(message, returncode=STOPPED) from None
        self._bar.clear()
        made.refresh_from_db()
        _copy(snapshots.snapshot_folder(made), options["out"])
        self._say(made, options["out"])
        if options["to"]:
            self._send(made, options["to"])

    def _send(self, made: Snapshot, place: str) -> None:
        is_known = place in destinations.configured_destinations()
        address = (
            destinations.build_address(place, project=made.project.slug, snapshot=made.name) if is_known else place
        )
        try:
            sent = list(deliveries.send_files(made, deliveries.open_target(address)))
        except deliveries.DeliveryFailed as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_("%(n)s files were sent to %(address)s") % {"n": len(sent), "address": address})

    def _build(self, made: Snapshot, workers: int) -> None:
        _run(snapshots.prepare_snapshot(made, asks=False))
        made.refresh_from_db()
        numbers = list(made.shards.order_by("number").values_list("number", flat=True))
        if workers > 1 and len(numbers) > 1:
            self._build_together(made, numbers, workers)
            return
        for number in numbers:
            for progress in _running(snapshots.build_shard(made, number, asks=False)):
                self._show(progress.done + snapshots.SHARD * number, made)
        made.refresh_from_db()
        _run(finish_job.finish_snapshot(made))

    def _build_together(self, made: Snapshot, numbers: list[int], workers: int) -> None:
        """Each process has connections of its own: those of this one are closed before it is copied. One of them counts
        for the card while the others write."""
        connections.close_all()
        forking = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(workers, mp_context=forking) as pool:
            counted = pool.submit(_count, made.pk)
            for done, _nothing in enumerate(pool.map(_build_shard, [made.pk] * len(numbers), numbers), start=1):
                self._show(done * snapshots.SHARD, made)
            made.refresh_from_db()
            _run(finish_job.finish_with_facts(made, counted.result()))

    def _again(self, project: Project, options: dict[str, Any]) -> None:
        made = Snapshot.objects.filter(project=project, name=options["name"], built_at__isnull=False).first()
        if made is None:
            raise CommandError(_("There is no such snapshot that was built: name one with --name."))
        differing = snapshots.rewrite_files(made, options["out"])
        finish_job.write_card_files(made, options["out"])
        if differing:
            raise CommandError(_("These files came out otherwise: %(names)s") % {"names": ", ".join(differing)})
        self._say(made, options["out"])

    def _show(self, done: int, made: Snapshot) -> None:
        total = made.manifest.n_rows if made.manifest else 0
        self._bar.show(_("Building:"), min(done, total), total)

    def _say(self, made: Snapshot, out: Path) -> None:
        assert made.manifest is not None
        for file in made.files.order_by("name"):
            rows = "" if file.rows is None else f"{file.rows:,} rows, "
            self.stdout.write(f"{out / file.name}: {rows}sha256 {file.sha256}")
        for reason, n in sorted(made.manifest.left_out.items()):
            self.stdout.write(_("left out: %(reason)s %(n)s") % {"reason": reason, "n": f"{n:,}"})
        for name, n in sorted(made.plan.get("benchmarks", {}).items()):
            self.stdout.write(_("problems on the list of %(name)s: %(n)s") % {"name": name, "n": f"{n:,}"})


def _wanted(options: dict[str, Any]) -> SnapshotOrder:
    formats = options["format"] or ["prm800k"]
    return SnapshotOrder(
        formats=formats,
        filters=_filters(options),
        rule=LabelRule(
            neutral=options["neutral"],
            human_steps=options["human_steps"],
            has_alternatives=not options["without_alternatives"],
        ),
        ending=options["ending"],
        validation=options["validation"],
        test=options["test"],
        without_duplicates=options["without_duplicates"],
        taken_in=options["take_in"],
        reason=options["reason"],
    )


def _filters(options: dict[str, Any]) -> ManifestFilters:
    formats = options["format"] or ["prm800k"]
    return ManifestFilters(
        unit="submissions" if OUTPUT_FORMATS[formats[0]].wants_raters else "traces",
        is_consensus=options["consensus"],
        generations=options["generation"],
        domains=options["domain"],
        finish_reasons=options["finish_reason"],
        submitted_from=options["since"],
        submitted_until=options["until"],
        is_blind=True if options["blind"] else None,
        contested=options["contested"],
        gold=options["gold"],
        min_raters=options["min_raters"],
    )


def _round(text: str) -> int | None:
    return None if text == "none" else int(text)


def _moment(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _running(chunks: Iterator[JobProgress | Chunk]) -> Iterator[JobProgress]:
    """The same generators that jobs run, here and now."""
    for chunk in chunks:
        if isinstance(chunk, JobProgress):
            yield chunk
            continue
        with transaction.atomic():
            progress = chunk(timezone.now())
        yield progress


def _run(chunks: Iterator[JobProgress | Chunk]) -> None:
    for _progress in _running(chunks):
        pass


def _build_shard(snapshot_id: int, number: int) -> None:
    _run(snapshots.build_shard(Snapshot.objects.get(pk=snapshot_id), number, asks=False))
    connections.close_all()


def _count(snapshot_id: int) -> dict[str, Any]:
    counted = finish_job.count_facts(Snapshot.objects.get(pk=snapshot_id))
    connections.close_all()
    return counted


def _copy(source: Path, out: Path) -> None:
    """Links where both lie on one disk, copies otherwise."""
    for path in sorted(source.rglob("*")):
        target = out / path.relative_to(source)
        if path.is_dir():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        try:
            os.link(path, target)
        except OSError:
            shutil.copy2(path, target)
