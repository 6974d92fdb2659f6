"""The last job of a snapshot: card, figures and the manifest as a file, from what is kept with the snapshot alone."""

import datetime as dt
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from exports import card, card_facts, card_figures, deliveries, files, rating_spread, snapshots
from exports.card import CardContext
from exports.files import WrittenFile
from exports.models import Snapshot
from jobs.runner import Chunk, JobProgress


def finish_snapshot(snapshot: Snapshot) -> Iterator[JobProgress | Chunk]:
    """Counts first, and keeps what it counted; then writes. Done twice, it writes the same."""
    if snapshot.built_at is not None:
        return
    if not snapshot.figures:
        yield from _keep_counts(snapshot, count_facts(snapshot))
    written = write_card_files(snapshot, snapshots.snapshot_folder(snapshot))
    yield partial(_mark_built, snapshot, written)


def count_facts(snapshot: Snapshot) -> dict[str, Any]:
    """What is true of the rows, shards or none: it may be found out while they are written."""
    assert snapshot.manifest is not None
    return card_facts.gather_card_facts(snapshot.manifest)


def finish_with_facts(snapshot: Snapshot, counted: dict[str, Any]) -> Iterator[JobProgress | Chunk]:
    """The same, told what was counted."""
    yield from _keep_counts(snapshot, counted)
    yield from finish_snapshot(snapshot)


def _keep_counts(snapshot: Snapshot, counted: dict[str, Any]) -> Iterator[JobProgress | Chunk]:
    of_shards = list(snapshot.shards.order_by("number").values_list("figures", flat=True))
    spread = rating_spread.merge_spreads(each["ratings"] for each in of_shards)
    snapshot.figures = {"facts": {**counted, **spread}, "tallies": _merge_tallies(of_shards)}
    yield JobProgress(0, 2)
    yield partial(_save_figures, snapshot)


def _save_figures(snapshot: Snapshot, now: dt.datetime) -> JobProgress:
    snapshots.save_figures(snapshot=snapshot, figures=snapshot.figures, now=now)
    return JobProgress(1, 2)


def _mark_built(snapshot: Snapshot, written: list[WrittenFile], now: dt.datetime) -> JobProgress:
    snapshots.mark_built(snapshot=snapshot, written=written, now=now)
    for destination in snapshots.load_order(snapshot).deliver_to:
        deliveries.request_delivery(snapshot=snapshot, destination=destination, by=snapshot.asked_by, now=now)
    return JobProgress(2, 2)


def write_card_files(snapshot: Snapshot, into: Path) -> list[WrittenFile]:
    """README.md, its figures, and manifest.json, below this folder."""
    about = load_card_context(snapshot)
    written = []
    for figure in card_figures.draw_card_figures(about.facts, about.plan):
        written.append(files.write_text(into / figure.file_name, figure.svg))
    written.append(files.write_text(into / "README.md", card.write_card(about)))
    written.append(files.write_json(into / "manifest.json", describe_snapshot(snapshot, about)))
    return written


def load_card_context(snapshot: Snapshot) -> CardContext:
    assert snapshot.manifest is not None
    assert snapshot.frozen_at is not None
    project = snapshot.project
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
        statement=snapshot.statement,
        facts=snapshot.figures["facts"],
        tallies=snapshot.figures["tallies"],
        files=list_data_files(snapshot),
        figures={
            figure.file_name: figure.caption
            for figure in card_figures.draw_card_figures(snapshot.figures["facts"], snapshot.plan)
        },
    )


def list_data_files(snapshot: Snapshot) -> list[WrittenFile]:
    rows = snapshot.files.exclude(format="").order_by("name")
    return [WrittenFile(row.name, row.rows or 0, row.size, row.sha256, row.format, row.split) for row in rows]


def describe_snapshot(snapshot: Snapshot, about: CardContext) -> dict[str, Any]:
    """What a program wants to know of the snapshot."""
    return {
        "snapshot": snapshot.name,
        "project": snapshot.project.slug,
        "purpose": snapshot.purpose,
        "manifest": snapshot.manifest_id,
        "frozen_at": about.frozen_at,
        "code_version": about.code_version,
        "rows": about.rows,
        "left_out": about.left_out,
        "order": msgspec.to_builtins(about.order),
        "plan": {key: value for key, value in snapshot.plan.items() if key not in ("places", "licences")},
        "tallies": about.tallies,
        "files": [msgspec.to_builtins(each) for each in about.files],
    }


def _merge_tallies(of_shards: list[dict[str, Any]]) -> dict[str, Any]:
    """What came of the shards, put together."""
    total: dict[str, dict[str, Any]] = {}
    for found in of_shards:
        for name, tally in found["tallies"].items():
            into = total.setdefault(name, {"rows": 0, "left_out": {}, "labels": {}, "lengths": {}})
            into["rows"] += tally["rows"]
            for part in ("left_out", "labels", "lengths"):
                for key, n in tally[part].items():
                    into[part][key] = into[part].get(key, 0) + n
    for tally in total.values():
        tally["characters"] = _length_quantiles(tally.pop("lengths"))
    return total


def _length_quantiles(lengths: dict[str, int]) -> dict[str, int]:
    """Below how many characters so many of the rows are, to the next power of two: trainers cut what is longer."""
    total, seen, found = sum(lengths.values()), 0, dict[str, int]()
    wanted = [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("1", 1.0)]
    for bucket in sorted(lengths, key=int):
        seen += lengths[bucket]
        while wanted and seen >= wanted[0][1] * total:
            found[wanted.pop(0)[0]] = 1 << int(bucket)
    return found
