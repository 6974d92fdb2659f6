"""The last job of a snapshot: count its figures, then write the card, its charts, and manifest.json."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from exports import card, card_facts, card_figures, deliveries, files, snapshots
from exports.card import CardContext
from exports.files import WrittenFile
from exports.models import Snapshot
from jobs.runner import Chunk, JobProgress


def finish_snapshot(snapshot: Snapshot, facts: dict[str, Any] | None = None) -> Iterator[JobProgress | Chunk]:
    """Store the figures, then write the files. Pass `facts` if they are already counted. Repeating it is harmless."""
    if snapshot.built_at is not None:
        return
    if not snapshot.figures:
        shard_figures = list(snapshot.shards.order_by("number").values_list("figures", flat=True))
        spread = card_facts.merge_spreads(each["ratings"] for each in shard_figures)
        tallies = _merge_tallies([each["tallies"] for each in shard_figures])
        snapshot.figures = {"facts": {**(facts or count_facts(snapshot)), **spread}, "tallies": tallies}
        yield JobProgress(0, 2)
        yield partial(_save_figures, snapshot)
    written = write_card_files(snapshot, snapshots.snapshot_folder(snapshot))
    yield partial(_mark_built, snapshot, written)


def count_facts(snapshot: Snapshot) -> dict[str, Any]:
    """Count the facts of the card. This needs the manifest only, so it can run while shards are written."""
    assert snapshot.manifest is not None
    return card_facts.gather_card_facts(snapshot.manifest)


def _save_figures(snapshot: Snapshot, now: dt.datetime) -> JobProgress:
    snapshots.save_figures(snapshot=snapshot, figures=snapshot.figures, now=now)
    return JobProgress(1, 2)


def _mark_built(snapshot: Snapshot, written: list[WrittenFile], now: dt.datetime) -> JobProgress:
    snapshots.mark_built(snapshot=snapshot, written=written, now=now)
    for destination in snapshots.load_order(snapshot).deliver_to:
        deliveries.request_delivery(snapshot=snapshot, destination=destination, by=snapshot.asked_by, now=now)
    return JobProgress(2, 2)


def write_card_files(snapshot: Snapshot, folder: Path) -> list[WrittenFile]:
    """Write README.md, its charts, and manifest.json into this folder."""
    context = load_card_context(snapshot)
    charts = card_figures.draw_card_figures(context.facts, context.plan)
    written = [files.write_text(folder / chart.file_name, chart.svg) for chart in charts]
    written.append(files.write_text(folder / "README.md", card.write_card(context)))
    written.append(files.write_json(folder / deliveries.MANIFEST_NAME, describe_snapshot(snapshot, context)))
    return written


def load_card_context(snapshot: Snapshot) -> CardContext:
    assert snapshot.manifest is not None
    assert snapshot.frozen_at is not None
    facts, project = snapshot.figures["facts"], snapshot.project
    return CardContext(
        name=snapshot.name,
        project=project.name,
        description=project.description,
        protocol=project.protocol,
        purpose=snapshot.purpose,
        frozen_at=f"{snapshot.frozen_at:%Y-%m-%d %H:%M} UTC",
        code_version=snapshot.manifest.code_version,
        order=snapshots.load_order(snapshot),
        rows=snapshot.manifest.n_rows,
        left_out=snapshot.manifest.left_out,
        plan=snapshot.plan,
        disclosure=snapshot.statement,
        facts=facts,
        tallies=snapshot.figures["tallies"],
        files=list_data_files(snapshot),
        charts={each.file_name: each.caption for each in card_figures.draw_card_figures(facts, snapshot.plan)},
    )


def list_data_files(snapshot: Snapshot) -> list[WrittenFile]:
    rows = snapshot.files.exclude(format="").order_by("name")
    return [WrittenFile(row.name, row.rows or 0, row.size, row.sha256, row.format, row.split) for row in rows]


def describe_snapshot(snapshot: Snapshot, context: CardContext) -> dict[str, Any]:
    """Return the content of manifest.json."""
    return {
        "snapshot": snapshot.name,
        "project": snapshot.project.slug,
        "purpose": snapshot.purpose,
        "manifest": snapshot.manifest_id,
        "frozen_at": context.frozen_at,
        "code_version": context.code_version,
        "rows": context.rows,
        "left_out": context.left_out,
        "order": msgspec.to_builtins(context.order),
        "plan": {key: value for key, value in snapshot.plan.items() if key not in ("places", "licences")},
        "tallies": context.tallies,
        "files": [msgspec.to_builtins(each) for each in context.files],
    }


def _merge_tallies(shard_tallies: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Add up the tallies of all shards, by format."""
    merged = {}
    for name in {name for tallies in shard_tallies for name in tallies}:
        parts = [tallies[name] for tallies in shard_tallies if name in tallies]
        counts = {key: _add_counts([part[key] for part in parts]) for key in ("left_out", "labels", "lengths")}
        lengths = counts.pop("lengths")
        merged[name] = {"rows": sum(part["rows"] for part in parts), **counts, "characters": _length_quantiles(lengths)}
    return merged


def _add_counts(counts: list[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


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
