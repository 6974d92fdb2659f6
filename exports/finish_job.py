"""The last job of a snapshot: count the facts of its card, then write the card, its charts, and manifest.json."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
from django.db.models import Count, Max, Min, Q

from exports import card, deliveries, files, snapshots
from exports.files import WrittenFile
from exports.models import Snapshot
from exports.orders import load_order
from jobs.runner import Chunk, JobProgress
from labeling.models import AgreementTally, Gold, Manifest, ManifestRow, Rater, ScreeningResult, StoredImage, Submission
from labeling.models.assignment import AssignmentOrigin
from labeling.models.gold import GoldUse
from labeling.models.rater import RaterKind
from labeling.quality import imported_labels, tallies
from machines import identities
from prm import promotion

MAX_DOMAINS = 12
_ASSIGNMENT = "submission__assignment__"
# Each fact counts the rows by one column: its path from a row of the manifest.
_COUNTED_COLUMNS = {
    "guidelines": f"{_ASSIGNMENT}guideline__version",
    "rater_kinds": f"{_ASSIGNMENT}rater__kind",
    "machines": f"{_ASSIGNMENT}rater__machine",
    "origins": f"{_ASSIGNMENT}origin",
    "assisted": f"{_ASSIGNMENT}is_assisted",
    "saw_reference_answer": f"{_ASSIGNMENT}saw_reference_answer",
    "saw_final_verdict": f"{_ASSIGNMENT}saw_final_verdict",
    "finish_reasons": "submission__finish_reason",
    "domains": "trace__problem__domain",
    "base_models": "trace__provenance__base_model",
    "policies": "trace__provenance__policy",
    "scaffolds": "trace__provenance__scaffold",
    "segmenters": "trace__provenance__segmenter",
    "contested": "is_contested",
    "choosing_prms": f"{_ASSIGNMENT}draw__prm",
}
_SOURCE = ("trace__source__name", "trace__source__licence")
_ARM = (f"{_ASSIGNMENT}draw__arm", f"{_ASSIGNMENT}lane__arm")


def finish_snapshot(snapshot: Snapshot, facts: dict[str, Any] | None = None) -> Iterator[JobProgress | Chunk]:
    """Store the figures, then write the files. Pass `facts` if they are already counted. Repeating it is harmless."""
    if snapshot.built_at is not None:
        return
    if not snapshot.figures:
        shard_figures = list(snapshot.shards.order_by("number").values_list("figures", flat=True))
        spreads = [each["ratings"] for each in shard_figures]
        spread = {part: _add_counts([each[part] for each in spreads]) for part in ("labels", "first_errors")}
        tallies = _merge_tallies([each["tallies"] for each in shard_figures])
        snapshot.figures = {"facts": {**(facts or count_facts(snapshot)), **spread}, "tallies": tallies}
        yield JobProgress(0, 2)
        yield partial(_save_figures, snapshot)
    written = write_card_files(snapshot, snapshots.snapshot_folder(snapshot))
    yield partial(_mark_built, snapshot, written)


def _save_figures(snapshot: Snapshot, now: dt.datetime) -> JobProgress:
    Snapshot.objects.filter(pk=snapshot.pk, built_at=None).update(figures=snapshot.figures)
    return JobProgress(1, 2)


def _mark_built(snapshot: Snapshot, written: list[WrittenFile], now: dt.datetime) -> JobProgress:
    """Record the last files. From now on the snapshot does not change."""
    if Snapshot.objects.filter(pk=snapshot.pk, built_at=None).update(built_at=now):
        snapshots.save_files(snapshot=snapshot, written=written, now=now)
        snapshots.log_snapshot_event(what="snapshot.built", snapshot=snapshot, by=snapshot.asked_by, now=now)
    for destination in load_order(snapshot).deliver_to:
        deliveries.request_delivery(snapshot=snapshot, destination=destination, by=snapshot.asked_by, now=now)
    return JobProgress(2, 2)


def write_card_files(snapshot: Snapshot, folder: Path) -> list[WrittenFile]:
    """Write README.md, its charts, and manifest.json into this folder."""
    data_files = list_data_files(snapshot)
    figures = list(card.draw_card_figures(snapshot.figures["facts"], snapshot.plan))
    written = [files.write_text(folder / figure.file_name, figure.svg) for figure in figures]
    written.append(files.write_text(folder / "README.md", card.write_card(snapshot, data_files, figures)))
    written.append(files.write_json(folder / deliveries.MANIFEST_NAME, describe_snapshot(snapshot, data_files)))
    return written


def list_data_files(snapshot: Snapshot) -> list[WrittenFile]:
    rows = snapshot.files.exclude(format="").order_by("name")
    return [WrittenFile(row.name, row.rows or 0, row.size, row.sha256, row.format, row.split) for row in rows]


def describe_snapshot(snapshot: Snapshot, data_files: list[WrittenFile]) -> dict[str, Any]:
    """Return the content of manifest.json."""
    assert snapshot.manifest is not None
    return {
        "snapshot": snapshot.name,
        "project": snapshot.project.slug,
        "purpose": snapshot.purpose,
        "manifest": snapshot.manifest_id,
        "frozen_at": card.format_frozen_at(snapshot),
        "code_version": snapshot.manifest.code_version,
        "rows": snapshot.manifest.n_rows,
        "left_out": snapshot.manifest.left_out,
        "order": _describe_order(snapshot),
        "plan": {key: value for key, value in snapshot.plan.items() if key not in ("places", "licences")},
        "judges": snapshot.figures["facts"]["judges"],
        "tallies": snapshot.figures["tallies"],
        "files": [msgspec.to_builtins(each) for each in data_files],
    }


def _describe_order(snapshot: Snapshot) -> dict[str, Any]:
    """Return the order. Unless it exports names, its filters contain the pseudonyms of labelers."""
    order = load_order(snapshot)
    filters = order.filters
    named = [name for name in (*(filters.labelers or ()), *(filters.without_labelers or ())) if name is not None]
    if named and not order.has_labeler_names:
        raters = Rater.objects.filter(project=snapshot.project_id, kind=RaterKind.IMPORTED, labeler__in=named)
        pseudonyms = {rater.labeler: str(rater.pseudonym) for rater in raters}
        if filters.labelers:
            filters.labelers = [pseudonyms.get(name, name) for name in filters.labelers]
        if filters.without_labelers:
            filters.without_labelers = [pseudonyms.get(name, name) for name in filters.without_labelers]
    return cast(dict[str, Any], msgspec.to_builtins(order))


def _merge_tallies(shard_tallies: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Add up the tallies of all shards, by format."""
    merged = {}
    for name in {name for shard in shard_tallies for name in shard}:
        parts = [shard[name] for shard in shard_tallies if name in shard]
        counts = {key: _add_counts([part[key] for part in parts]) for key in ("left_out", "labels", "lengths")}
        lengths = counts.pop("lengths")
        merged[name] = {"rows": sum(part["rows"] for part in parts), **counts, "characters": _length_quantiles(lengths)}
    return merged


def _add_counts(counts: list[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


def _length_quantiles(lengths: dict[str, int]) -> dict[str, int]:
    """Return quantiles of row lengths in characters, rounded up to powers of two: trainers truncate longer rows.
    `lengths` has the number of rows by the exponent."""
    total, n_rows, quantiles = sum(lengths.values()), 0, dict[str, int]()
    remaining = [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("1", 1.0)]
    for exponent in sorted(lengths, key=int):
        n_rows += lengths[exponent]
        while remaining and n_rows >= remaining[0][1] * total:
            quantiles[remaining.pop(0)[0]] = 1 << int(exponent)
    return quantiles


# --- facts -----------------------------------------------------------------------------------------------------------


def count_facts(snapshot: Snapshot) -> dict[str, Any]:
    """Return the facts of the card as plain JSON, which is stored with the snapshot, so that the card can be written
    again. This needs the manifest only, so it can run while shards are written."""
    assert snapshot.manifest is not None
    frozen = snapshot.manifest
    rows = ManifestRow.objects.filter(manifest=frozen)
    totals = rows.aggregate(
        traces=Count("trace", distinct=True),
        problems=Count("trace__problem__normal_digest", distinct=True),
        raters=Count(f"{_ASSIGNMENT}rater", distinct=True),
        submissions=Count("submission"),
    )
    counts = _count_rows(rows)
    has_machines = any(counts["machines"])
    return {
        **totals,
        **counts,
        "judges": identities.describe_machines(_list_submissions(rows)) if has_machines else [],
        "with_images": _count_traces_with_images(frozen, rows),
        "process": _describe_process(frozen, rows),
        "agreement": measure_agreement(frozen),
        "imported_agreement": measure_imported_agreement(frozen),
        "overridden_gates": [
            {**each, "at": each["at"].isoformat(timespec="seconds")}
            for each in promotion.list_overrides(project_id=frozen.project_id, until=snapshot.asked_at)
        ],
    }


def _count_traces_with_images(frozen: Manifest, rows: Any) -> int:
    if not StoredImage.objects.filter(project=frozen.project_id).exists():
        return 0
    asked = Q(trace__problem__images__isnull=False)
    shown = Q(trace__steps__options__parts__image__isnull=False)
    return int(rows.filter(asked | shown).aggregate(n=Count("trace", distinct=True))["n"])


def _list_submissions(rows: Any) -> Any:
    return rows.exclude(submission=None).values("submission")


def _count_rows(rows: Any) -> dict[str, Any]:
    """Count the rows by each column. One query groups by all columns together, which gives few groups."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in _COUNTED_COLUMNS}
    sources: Counter[tuple[str, str]] = Counter()
    arms: defaultdict[tuple[str, bool], list[tuple[int, float | None, float | None]]] = defaultdict(list)
    q = f"{_ASSIGNMENT}draw__q"
    groups = rows.order_by().values_list(*_COUNTED_COLUMNS.values(), *_SOURCE, *_ARM)
    for *values, source, licence, draw_arm, lane_arm, n, low, high in groups.annotate(
        n=Count("pk"), low=Min(q), high=Max(q)
    ):
        for counter, value in zip(counts.values(), values, strict=True):
            counter["" if value is None else str(value)] += n
        sources[source or "", licence or ""] += n
        arms[draw_arm or lane_arm or "", low is not None].append((n, low, high))
    return {
        **{name: dict(counter) for name, counter in counts.items()},
        "arms": sorted(
            (_sum_arm(arm, parts) for (arm, _), parts in arms.items()), key=lambda each: (-each["n"], each["arm"])
        ),
        "sources": [{"name": name, "licence": licence, "n": n} for (name, licence), n in sorted(sources.items())],
    }


def _sum_arm(arm: str, parts: list[tuple[int, float | None, float | None]]) -> dict[str, Any]:
    """Return the rows of a sampling source, and the range of the probabilities of its draws."""
    low = min((low for _, low, _ in parts if low is not None), default=None)
    high = max((high for _, _, high in parts if high is not None), default=None)
    return {"arm": arm, "n": sum(n for n, _, _ in parts), "low": low, "high": high}


def _describe_process(frozen: Manifest, rows: Any) -> dict[str, Any]:
    """Return the project's current settings for how traces are labeled."""
    project = frozen.project
    gold = dict(Gold.objects.filter(trace__project=project).values_list("use").annotate(n=Count("pk")))
    passed = ScreeningResult.objects.filter(has_passed=True, rater__in=rows.values(f"{_ASSIGNMENT}rater"))
    return {
        "overlap": project.overlap,
        "overlap_limit": project.overlap_limit,
        "training_traces": gold.get(GoldUse.TRAINING, 0),
        "screening_traces": gold.get(GoldUse.SCREENING, 0),
        "hidden_gold": gold.get(GoldUse.HIDDEN, 0),
        "pass_share": project.screening_pass_share,
        "screened": passed.values("rater").distinct().count(),
        "pay": f"{project.pay_per_hour} {project.currency}" if project.pay_per_hour is not None else "",
    }


# --- agreement -------------------------------------------------------------------------------------------------------


def measure_agreement(frozen: Manifest) -> dict[str, Any] | None:
    """Measure agreement on traces whose first two scheduled submissions are both among the rows. Return None if there
    are none."""
    traces = _find_paired_traces(frozen)
    audit_slice = tallies.find_audit_slice(frozen.project_id)
    if audit_slice is not None:
        traces &= set(audit_slice)
    if not traces:
        return None
    arrays = tallies.load_tally_arrays(project_id=frozen.project_id).only(sorted(traces))
    pairs = arrays.pairs
    by_domain = sorted(pairs.by("domain").items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        "steps": tallies.step_agreement_rows(arrays.all_steps(), with_bootstrap=True),
        "first_error": tallies.first_error_rows(pairs.reports()),
        "domains": [
            {"key": domain, "n_traces": len(rows), **tallies.first_error_rows(pairs.reports(rows))}
            for domain, rows in by_domain[:MAX_DOMAINS]
        ],
        "n_traces": len(pairs),
        "is_audit_slice": audit_slice is not None,
    }


def measure_imported_agreement(frozen: Manifest) -> dict[str, Any] | None:
    """Measure the agreement of the people whose labels came from files, on the rows of the snapshot. Return None if no
    trace has labels by two of these people."""
    imported = Submission.objects.filter(project=frozen.project_id, assignment__origin=AssignmentOrigin.IMPORTED)
    if not imported.exists():
        return None
    labels = imported_labels.load_imported_labels(frozen.project_id, manifest_id=frozen.pk)
    n_traces = imported_labels.count_traces_read_twice(labels)
    if not n_traces:
        return None
    return {
        "steps": tallies.step_agreement_rows(labels.steps, with_bootstrap=True),
        "first_error": tallies.first_error_rows(labels.reports),
        "n_traces": n_traces,
        "n_raters": len(labels.raters),
    }


def _find_paired_traces(frozen: Manifest) -> set[int]:
    rows = ManifestRow.objects.filter(manifest=frozen, submission__isnull=False)
    assignments = rows.values("submission__assignment")
    tallies = AgreementTally.objects.filter(project=frozen.project_id, trace__in=rows.values("trace"))
    return set(tallies.filter(first__in=assignments, second__in=assignments).values_list("trace", flat=True))
