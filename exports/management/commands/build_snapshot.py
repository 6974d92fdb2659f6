"""`manage.py build_snapshot --project SLUG --out DIR`: export a project's labels to files.

Exit codes: 0 built, 1 cannot be built as ordered, 2 invalid arguments, 130 interrupted by Ctrl-C.
"""

import datetime as dt
import multiprocessing
import os
import shutil
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.utils import timezone
from django.utils.translation import gettext as _
from msgspec import Struct

from exports import deliveries, finish_job, snapshots
from exports.models import Snapshot, SnapshotPurpose
from exports.orders import ENDINGS, InvalidOrder, SnapshotOrder
from formats.catalog import OUTPUT_FORMATS
from formats.examples import LabelRule
from formats.label_sets import LABEL_SETS
from jobs import runner
from jobs.runner import Chunk, JobProgress
from jobs.terminal import ProgressBar
from labeling.datasets.selection import ManifestFilters, Unit
from labeling.models import Project
from labeling.models.assignment import FinishReason
from labeling.models.rater import PEOPLE, RaterKind

INTERRUPTED = 130  # the exit code that shells report for Ctrl-C


class Command(BaseCommand):
    help = (
        "Freeze a project's labels and write them to files. An `archive` contains all labels; a `training`"
        " snapshot leaves out evaluation and gold data. Exit codes: 0 built, 1 cannot be built with these"
        " options, 2 invalid arguments, 130 interrupted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--project", required=True, metavar="SLUG", help="the project to export")
        add("--out", required=True, type=Path, metavar="DIR", help="the folder for the files")
        add("--format", action="append", choices=list(OUTPUT_FORMATS), help="repeatable; default: prm800k")
        add(
            "--purpose",
            default="archive",
            choices=[str(each.value) for each in SnapshotPurpose],
            help="archive (everything) or training (without evaluation and gold data)",
        )
        add("--ending", default="jsonl", choices=ENDINGS, help="file type and compression")
        add("--name", help="name of the snapshot (default: the project's slug with the next version number)")
        add("--again", action="store_true", help="rewrite the files of the existing snapshot --name and compare them")
        add(
            "--labeler-names",
            dest="has_labeler_names",
            action="store_true",
            help="export the names of imported labelers as they are in the files (default: pseudonyms)",
        )
        add("--validation", type=float, default=0.0, metavar="SHARE", help="share of problems for validation, 0 to 1")
        add("--test", type=float, default=0.0, metavar="SHARE", help="share of problems for testing, 0 to 1")
        add("--without-duplicates", action="store_true", help="leave out traces with the same problem and steps")
        add(
            "--take-in",
            dest="taken_in",
            action="append",
            default=[],
            metavar="REASON",
            help="include traces that a training snapshot leaves out for this reason (repeatable), for example gold or"
            " 'benchmark:GSM8K test'",
        )
        add("--reason", default="", help="why --take-in is justified; printed on the dataset card")
        add(
            "--to",
            metavar="DESTINATION",
            help="also upload the files: the name of a configured destination, s3://bucket/prefix, or hf://owner/name",
        )
        add("--workers", type=int, default=1, help="number of processes that write shards in parallel")
        self._add_label_options(parser.add_argument_group("labels"))
        self._add_filters(parser.add_argument_group("filters", "Without filters, every submission is exported."))

    def _add_label_options(self, group: Any) -> None:
        add = group.add_argument
        add(
            "--neutral",
            default="positive",
            choices=["positive", "negative", "drop"],
            help="for binary labels: count neutral steps as correct or incorrect, or end the row before them",
        )
        add(
            "--human-steps",
            default="omit",
            choices=["omit", "positive"],
            help="for binary labels: end the row before a step that the rater wrote, or count it as correct",
        )
        add(
            "--label-set",
            default="as_rated",
            choices=LABEL_SETS,
            help="which labels steps after the first error get (docs/guides/snapshots.md); default: as_rated",
        )
        add(
            "--without-alternatives",
            dest="has_alternatives",
            action="store_false",
            help="leave out rows of alternatives that were not chosen",
        )

    def _add_filters(self, group: Any) -> None:
        inclusion = ["in", "out", "only"]
        add = group.add_argument
        add(
            "--consensus",
            dest="is_consensus",
            action="store_true",
            help="export the consensus of each trace instead of individual raters' labels",
        )
        add(
            "--generation",
            dest="generations",
            action="append",
            type=_parse_generation,
            metavar="N",
            help="only this generation, or `none` for submissions without one (repeatable)",
        )
        add("--domain", dest="domains", action="append", metavar="NAME", help="only this domain (repeatable)")
        add("--tag", dest="tags", action="append", metavar="TAG", help="only traces with this tag (repeatable)")
        add("--without-tag", dest="without_tags", action="append", metavar="TAG", help="without this tag (repeatable)")
        add(
            "--finish-reason",
            dest="finish_reasons",
            action="append",
            choices=FinishReason.values,
            help="only this finish reason (repeatable)",
        )
        date: dict[str, Any] = {"type": _parse_time, "metavar": "DATE"}
        add("--from", dest="submitted_from", **date, help="only labels submitted at or after this date or time (UTC)")
        add("--until", dest="submitted_until", **date, help="only labels submitted before this date or time (UTC)")
        add("--contested", default="in", choices=inclusion, help="contested traces: include, leave out, or only these")
        add("--gold", default="in", choices=inclusion, help="gold traces: include, leave out, or only these")
        add(
            "--set-aside",
            default="out",
            choices=inclusion,
            help="labels that a lead set aside: include, leave out (default), or only these",
        )
        add("--min-raters", type=int, default=0, metavar="N", help="minimum number of raters per trace")
        self._add_rater_filters(group)

    def _add_rater_filters(self, group: Any) -> None:
        add = group.add_argument
        kinds = group.add_mutually_exclusive_group()
        add(
            "--blind",
            dest="is_blind",
            action="store_const",
            const=True,
            help="only labels by people who saw no scores or suggestions",
        )
        kinds.add_argument(
            "--human",
            dest="rater_kinds",
            action="store_const",
            const=list(PEOPLE),
            help="only labels by people, also by those who saw scores",
        )
        add(
            "--agreeing-machine",
            dest="agreeing_machines",
            action="append",
            metavar="NAME",
            help="only traces for which this machine and the others named here find the same first error (repeatable)",
        )
        kinds.add_argument(
            "--rater-kind",
            dest="rater_kinds",
            action="append",
            choices=RaterKind.values,
            help="only labels by this kind of rater (repeatable; default: all, including machines)",
        )
        add("--rater", dest="labelers", action="append", metavar="ID", help="only labels by this rater (repeatable)")
        add(
            "--without-rater",
            dest="without_labelers",
            action="append",
            metavar="ID",
            help="no labels by this rater (repeatable); with --consensus, infer it from the other labels",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(_("Project %(slug)s does not exist.") % {"slug": options["project"]})
        if options["again"]:
            self._rewrite(project, options)
            return
        try:
            snapshot = snapshots.order_snapshot(
                project=project,
                name=options["name"] or snapshots.suggest_name(project),
                purpose=options["purpose"],
                order=_build_order(options),
                by=None,
                now=timezone.now(),
                enqueue=False,
            )
        except InvalidOrder as error:
            raise CommandError(str(error)) from error
        self._bar = ProgressBar(self.stderr)
        try:
            self._build(snapshot, options["workers"])
        except KeyboardInterrupt:
            self._bar.clear()
            snapshots.cancel_snapshot(snapshot=snapshot, by=None, now=timezone.now())
            message = _("Interrupted. Snapshot %(name)s was not built.") % {"name": snapshot.name}
            raise CommandError(message, returncode=INTERRUPTED) from None
        self._bar.clear()
        snapshot.refresh_from_db()
        folder = snapshots.snapshot_folder(snapshot)
        shutil.copytree(folder, options["out"], copy_function=_link_file, dirs_exist_ok=True)
        self._report(snapshot, options["out"])
        if options["to"]:
            self._upload(snapshot, options["to"])

    def _upload(self, snapshot: Snapshot, destination: str) -> None:
        address = destination
        if destination in settings.DESTINATIONS:
            address = deliveries.build_address(destination, project=snapshot.project.slug, snapshot=snapshot.name)
        try:
            names = list(deliveries.send_files(snapshot, deliveries.open_target(address)))
        except deliveries.DeliveryFailed as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_("Uploaded %(n)s files to %(address)s") % {"n": len(names), "address": address})

    def _build(self, snapshot: Snapshot, workers: int) -> None:
        _run(snapshots.prepare_snapshot(snapshot, enqueue=False))
        snapshot.refresh_from_db()
        numbers = list(snapshot.shards.order_by("number").values_list("number", flat=True))
        if workers > 1 and len(numbers) > 1:
            self._build_in_parallel(snapshot, numbers, workers)
            return
        for number in numbers:
            for progress in runner.run_here(snapshots.build_shard(snapshot, number, enqueue=False)):
                self._show_progress(progress.done + snapshots.SHARD * number, snapshot)
        snapshot.refresh_from_db()
        _run(finish_job.finish_snapshot(snapshot))

    def _build_in_parallel(self, snapshot: Snapshot, numbers: list[int], workers: int) -> None:
        """Fork workers; one of them counts the facts of the card while the others write shards."""
        connections.close_all()  # a forked process must not share them
        with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork")) as pool:
            facts = pool.submit(_count_facts, snapshot.pk)
            for done, _none in enumerate(pool.map(_build_shard, [snapshot.pk] * len(numbers), numbers), start=1):
                self._show_progress(done * snapshots.SHARD, snapshot)
            snapshot.refresh_from_db()
            _run(finish_job.finish_snapshot(snapshot, facts.result()))

    def _rewrite(self, project: Project, options: dict[str, Any]) -> None:
        snapshot = Snapshot.objects.filter(project=project, name=options["name"], built_at__isnull=False).first()
        if snapshot is None:
            raise CommandError(
                _("There is no built snapshot with this name. Pass the name of a built snapshot with --name.")
            )
        differing = snapshots.rewrite_files(snapshot, options["out"])
        finish_job.write_card_files(snapshot, options["out"])
        if differing:
            raise CommandError(_("These files differ from the snapshot: %(names)s") % {"names": ", ".join(differing)})
        self._report(snapshot, options["out"])

    def _show_progress(self, done: int, snapshot: Snapshot) -> None:
        total = snapshot.manifest.n_rows if snapshot.manifest else 0
        self._bar.show(_("Building:"), min(done, total), total)

    def _report(self, snapshot: Snapshot, out: Path) -> None:
        assert snapshot.manifest is not None
        for file in snapshot.files.order_by("name"):
            rows = "" if file.rows is None else f"{file.rows:,} rows, "
            self.stdout.write(f"{out / file.name}: {rows}sha256 {file.sha256}")
        if not snapshots.has_rows(snapshot):
            self.stderr.write(
                self.style.WARNING(_("The snapshot has no rows: the filters and exclusions removed every submission."))
            )
        for reason, n in sorted(snapshot.manifest.left_out.items()):
            self.stdout.write(_("excluded (%(reason)s): %(n)s") % {"reason": reason, "n": f"{n:,}"})
        for name, n in sorted(snapshot.plan.get("benchmarks", {}).items()):
            self.stdout.write(_("problems on benchmark list %(name)s: %(n)s") % {"name": name, "n": f"{n:,}"})


def _build_order(options: dict[str, Any]) -> SnapshotOrder:
    formats = options["format"] or ["prm800k"]
    unit: Unit = "submissions" if OUTPUT_FORMATS[formats[0]].wants_raters else "traces"
    return SnapshotOrder(
        formats=formats,
        filters=ManifestFilters(unit=unit, **_pick_fields(ManifestFilters, options)),
        rule=LabelRule(**_pick_fields(LabelRule, options)),
        **_pick_fields(SnapshotOrder, options),
    )


def _pick_fields(kind: type[Struct], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are fields of this type."""
    return {name: options[name] for name in kind.__struct_fields__ if name in options}


def _parse_generation(text: str) -> int | None:
    return None if text == "none" else int(text)


def _parse_time(text: str) -> dt.datetime:
    time = dt.datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=dt.UTC)


def _run(chunks: Iterator[JobProgress | Chunk]) -> None:
    deque(runner.run_here(chunks), maxlen=0)


def _build_shard(snapshot_id: int, number: int) -> None:
    _run(snapshots.build_shard(Snapshot.objects.get(pk=snapshot_id), number, enqueue=False))
    connections.close_all()


def _count_facts(snapshot_id: int) -> dict[str, Any]:
    facts = finish_job.count_facts(Snapshot.objects.get(pk=snapshot_id))
    connections.close_all()
    return facts


def _link_file(source: str, target: str) -> None:
    """Hard-link the file, or copy it to another file system."""
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
