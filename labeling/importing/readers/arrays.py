"""Values that stand in one array put together again, where the array is the record and not its items."""

from collections.abc import Iterable, Iterator

from labeling.importing.readers import lines
from labeling.importing.readers.objects import Found
from labeling.importing.records import BadLine


def joined(items: Iterable[Found | BadLine]) -> Iterator[Found | BadLine]:
    """Each array as one value. Of one that is broken somewhere nothing comes: half a record is none."""
    array: _Array | None = None
    for item in items:
        if isinstance(item, BadLine):
            yield item
            return
        if array is not None and item.array != array.number:
            yield array.whole()
            array = None
        if array is None:
            array = _Array(item)
        else:
            array.add(item)
        if array.size > lines.LINE_LIMIT:
            yield BadLine(array.line, array.column, f"the record is longer than {lines.LINE_LIMIT:,} bytes")
            return
    if array is not None:
        yield array.whole()


class _Array:
    """The text of an array, with as much space between its items that each stands where it stands in the file."""

    def __init__(self, first: Found) -> None:
        self.number = first.array
        self.line = first.line if first.column > 1 else first.line - 1
        self.column = max(first.column - 1, 1)
        self.size = 0
        self._pieces: list[bytes] = []
        self._at = self.line, self.column
        self._put(b"[")
        self._put_item(first)

    def add(self, item: Found) -> None:
        self._put(b",")
        self._put_item(item)

    def whole(self) -> Found:
        return Found(b"".join([*self._pieces, b"]"]), self.line, self.column, self.number)

    def _put_item(self, item: Found) -> None:
        line, column = self._at
        self._put(b"\n" * (item.line - line))
        self._put(b" " * (item.column - (column if item.line == line else 1)))
        self._put(item.raw)

    def _put(self, text: bytes) -> None:
        below = text.count(b"\n")
        rest = len(text[text.rfind(b"\n") + 1 :].decode(errors="replace"))
        line, column = self._at
        self._at = line + below, rest + 1 if below else column + rest
        self.size += len(text)
        self._pieces.append(text)
