"""Steps and options as rows of PostgreSQL's binary COPY format: of a trace, nearly all rows are of these two tables.

A row begins with the number of its columns; each value follows its length in bytes, and NULL has the length -1.
"""

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct

from formats.records import StepRecord
from labeling.models import Option, Step
from labeling.models.trace import OptionOrigin
from rawsql import BinaryTable

STEP = BinaryTable(Step, "id", "trace_id", "position", "kind", "is_rateable", "separator", "source_position", "agent")
OPTION = BinaryTable(Option, "id", "step_id", "position", "origin", "text")

_INTEGER = Struct("!ii").pack
_LENGTH = Struct("!i").pack
_STEP_START = Struct("!h iq iq ii").pack
_NULL = _LENGTH(-1)
# What packs the beginning of an option's row up to its text, and the value, by origin.
_PACKED_ORIGINS = {
    origin: (Struct(f"!h iq iq ih i{len(origin)}s i").pack, origin.encode()) for origin in OptionOrigin.values
}


def pack_steps(ids: Sequence[int], trace_id: int, records: Sequence[StepRecord], *, first: int = 0) -> list[bytes]:
    """Return the rows of steps at consecutive positions of a trace."""
    start, facts = _STEP_START, _pack_facts
    return [
        start(8, 8, pk, 8, trace_id, 4, position)
        + facts(each.kind, each.is_rateable, each.separator, each.source_position, each.agent)
        for position, (pk, each) in enumerate(zip(ids, records, strict=True), start=first)
    ]


def pack_options(
    ids: Sequence[int], step_ids: Sequence[int], records: Sequence[StepRecord], *, first: int = 0
) -> list[bytes]:
    """Return the rows of the options of these steps, each in two pieces. The first option has the position `first`."""
    pieces: list[bytes] = []
    add, next_id = pieces.append, iter(ids).__next__
    for step_id, record in zip(step_ids, records, strict=True):
        position = first
        for option in record.options:
            text = option.text.encode()
            pack, name = _PACKED_ORIGINS[option.origin]
            add(pack(5, 8, next_id(), 8, step_id, 2, position, len(name), name, len(text)))
            add(text)
            position += 1
    return pieces


@lru_cache(maxsize=1000)  # nearly all steps have the same facts
def _pack_facts(kind: str, is_rateable: bool, separator: str, source_position: int | None, agent: str) -> bytes:
    place = _NULL if source_position is None else _INTEGER(4, source_position)
    return _pack_text(kind) + _LENGTH(1) + bytes([is_rateable]) + _pack_text(separator) + place + _pack_text(agent)


def _pack_text(text: str) -> bytes:
    encoded = text.encode()
    return _LENGTH(len(encoded)) + encoded
