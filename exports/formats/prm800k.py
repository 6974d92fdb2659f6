"""PRM800K, phase 1 and 2: JSON Lines, byte for byte as they came where they came from such a file."""

from collections.abc import Iterable, Iterator

from labeling.importing.readers import prm800k
from labeling.importing.records import TraceRecord


def write(records: Iterable[TraceRecord]) -> Iterator[bytes]:
    """A line for each record. Shape and reading stand together in the reader, which composes what it reads."""
    for record in records:
        yield (record.residue or prm800k.compose(record)) + b"\n"
