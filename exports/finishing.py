"""The last job of a snapshot: card, figures and the manifest as a file, from what is kept with the snapshot alone."""

import datetime as dt
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from exports import card, deliveries, drawings, facts, files, ratings, snapshots
from exports.card import Told
from exports.files import Written
from exports.models import Snapshot
from jobs.runner import Chunk, Progress


def finish(snapshot: Snapshot) -> Iterator[Progress | Chunk]:
    """Counts first, and keeps what it counted; then writes. Done twice, it writes the same."""
    if snapshot.built_at is not None:
        return
    if not snapshot.figures:
        yield from _kept(snapshot, count(snapshot))
    written = write(snapshot, snapshots.folder(snapshot))
    yield partial(_is_built, snapshot, written)


def count(snapshot: Snapshot) -> dict[str, Any]:
    """What is true of the rows, shards or none: it may be found out while they are written."""
    assert snapshot.manifest is not None
    return facts.gather(snapshot.manifest)


def finish_with(snapshot: Snapshot, counted: dict[str, Any]) -> Iterator[Progress | Chunk]:
    """The same, told what was counted."""
    yield from _kept(snapshot, counted)
    yield from finish(snapshot)


def _kept(snapshot: Snapshot, counted: dict[str, Any]) -> Iterator[Progress | Chunk]:
    of_shards = list(snapshot.shards.order_by("number").values_list("figures", flat=True))
    spread = ratings.together(each["ratings"] for each in of_shards)
    snapshot.figures = {"facts": {**counted, **spread}, "tallies": _tallies(of_shards)}
    yield Progress(0, 2)
    yield partial(_keep, snapshot)


def _keep(snapshot: Snapshot, now: dt.datetime) -> Progress:
    snapshots.keep_figures(snapshot=snapshot, figures=snapshot.figures, now=now)
    return Progress(1, 2)


def _is_built(snapshot: Snapshot, written: list[Written], now: dt.datetime) -> Progress:
    snapshots.is_built(snapshot=snapshot, written=written, now=now)
    for destination in snapshots.order_of(snapshot).deliver_to:
        deliveries.ask(snapshot=snapshot, destination=destination, by=snapshot.asked_by, now=now)
    return Progress(2, 2)


def write(snapshot: Snapshot, into: Path) -> list[Written]:
    """README.md, its figures, and manifest.json, below this folder."""
    about = told(snapshot)
    written = []
    for name, _shows, drawn in drawings.of(about.facts, about.plan):
        written.append(files.write_text(into / name, drawn))
    written.append(files.write_text(into / "README.md", card.write(about)))
    written.append(files.write_json(into / "manifest.json", described(snapshot, about)))
    return written


def told(snapshot: Snapshot) -> Told:
    assert snapshot.manifest is not None
    assert snapshot.frozen_at is not None
    project = snapshot.project
    return Told(
        name=snapshot.name,
        project=project.name,
        description=project.description,
        protocol=project.protocol,
        purpose=snapshot.purpose,
        frozen_at=f"{snapshot.frozen_at:%Y-%m-%d %H:%M} UTC",
        code_version=snapshot.manifest.code_version,
        order=snapshots.order_of(snapshot),
        rows=snapshot.manifest.n_rows,
        left_out=snapshot.manifest.left_out,
        plan=snapshot.plan,
        statement=snapshot.statement,
        facts=snapshot.figures["facts"],
        tallies=snapshot.figures["tallies"],
        files=data_files(snapshot),
        figures={name: shows for name, shows, _ in drawings.of(snapshot.figures["facts"], snapshot.plan)},
    )


def data_files(snapshot: Snapshot) -> list[Written]:
    rows = snapshot.files.exclude(format="").order_by("name")
    return [Written(row.name, row.rows or 0, row.size, row.sha256, row.format, row.split) for row in rows]


def described(snapshot: Snapshot, about: Told) -> dict[str, Any]:
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


def _tallies(of_shards: list[dict[str, Any]]) -> dict[str, Any]:
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
        tally["characters"] = _quantiles(tally.pop("lengths"))
    return total


def _quantiles(lengths: dict[str, int]) -> dict[str, int]:
    """Below how many characters so many of the rows are, to the next power of two: trainers cut what is longer."""
    total, seen, found = sum(lengths.values()), 0, dict[str, int]()
    wanted = [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("1", 1.0)]
    for bucket in sorted(lengths, key=int):
        seen += lengths[bucket]
        while wanted and seen >= wanted[0][1] * total:
            found[wanted.pop(0)[0]] = 1 << int(bucket)
    return found
