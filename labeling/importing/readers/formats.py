"""Every format that can be read, by name, and how one is told from its first record."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

import msgspec

from labeling.importing.readers import (
    bigbench_mistake,
    chat,
    gsm8k,
    math_shepherd,
    mr_ben,
    native,
    objects,
    prm800k,
    prmbench,
    processbench,
    strictjson,
    swe_agent,
    tables,
    trl,
)
from labeling.importing.records import BadLine, TraceRecord

TRIED = 20  # records of which detection takes the first that can be read

Read = Callable[[BinaryIO], Iterator[TraceRecord | BadLine]]


class Format(NamedTuple):
    name: str
    read: Read
    looks_like: Callable[[object], bool]
    read_table: Callable[[BinaryIO, str], Iterator[TraceRecord | BadLine]] | None = None
    counts_from: int | None = None  # where it names a step by a number: that of the first step
    read_cut: Callable[[BinaryIO, str | None, str], Iterator[TraceRecord | BadLine]] | None = None


class UnknownFormat(Exception):
    """The file is none of the formats, or the name is none of theirs."""


def _of(name: str, module: Any, counts_from: int | None = None) -> Format:
    joined = getattr(module, "joined", iter)
    # Cells of a table are text: a number or a truth value is made of it where the format has one.
    texts = tables.texts_of(module.decoder.type)
    lax = msgspec.json.Decoder(module.decoder.type, strict=False)

    def read(stream: BinaryIO) -> Iterator[TraceRecord | BadLine]:
        return objects.read_values(joined(objects.values(stream)), module.decoder, module.traces)

    def read_table(stream: BinaryIO, kind: str, traces: Any = module.traces) -> Iterator[TraceRecord | BadLine]:
        decoder = lax if kind == tables.CSV else module.decoder
        return objects.read_values(tables.rows(stream, kind, texts=texts), decoder, traces)

    def read_cut(stream: BinaryIO, kind: str | None, segmenter: str) -> Iterator[TraceRecord | BadLine]:
        traces = partial(module.traces, segmenter=segmenter)
        return (
            read_table(stream, kind, traces)
            if kind
            else objects.read_values(joined(objects.values(stream)), module.decoder, traces)
        )

    cuts = read_cut if "segmenter" in inspect.signature(module.traces).parameters else None
    return Format(name, read, module.looks_like, read_table, counts_from, cuts)


# In the order in which they are tried: the native form asks for least and comes last.
FORMATS = {
    format.name: format
    for format in (
        Format("prm800k", prm800k.read, prm800k.looks_like, counts_from=0),
        _of("processbench", processbench, counts_from=0),
        _of("prmbench", prmbench, counts_from=1),
        _of("bigbench_mistake", bigbench_mistake, counts_from=0),
        _of("mr_ben", mr_ben, counts_from=1),
        _of("math_shepherd", math_shepherd),
        _of("trl", trl),
        _of("chat", chat, counts_from=0),
        _of("swe_agent", swe_agent),
        _of("gsm8k", gsm8k),
        _of("native", native),
    )
}


def named(name: str) -> Format:
    try:
        return FORMATS[name]
    except KeyError:
        raise UnknownFormat(f"no format is called {name}: there are {', '.join(FORMATS)}") from None


def read(stream: BinaryIO, *, format: str, table: str | None, segmenter: str = "") -> Iterator[TraceRecord | BadLine]:
    """Every record of a file, which is a table or not; texts that are not in steps yet are cut by the segmenter."""
    found = named(format)
    if segmenter and found.read_cut is not None:
        return found.read_cut(stream, table, segmenter)
    if table is None:
        return found.read(stream)
    if found.read_table is None:
        raise UnknownFormat(f"{format} does not come in tables: its files are JSON Lines")
    return found.read_table(stream, table)


def detect(stream: BinaryIO, *, table: str | None = None) -> Format:
    """The format whose records look like the first one of the file that can be read at all."""
    refused: BadLine | None = None
    for found in islice(tables.rows(stream, table) if table else objects.values(stream), TRIED):
        if isinstance(found, BadLine):
            refused = refused or found
            continue
        try:
            return _told_by(strictjson.decode(found.raw, _anything))
        except strictjson.Refused as error:
            refused = refused or found.bad(error)
    if refused is None:
        raise UnknownFormat("the file holds no record: name the format it would be in")
    raise UnknownFormat(f"no record can be read: {refused}")


_anything = msgspec.json.Decoder(object)


def _told_by(first: object) -> Format:
    for format in FORMATS.values():
        if format.looks_like(first):
            return format
    raise UnknownFormat(
        "this looks like none of the formats that can be read (" + ", ".join(FORMATS) + "): name the one it is in"
    )
