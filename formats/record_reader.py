"""Read the records of a format from JSON Lines, JSON arrays, a single JSON object, CSV or Parquet."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO

import msgspec

from formats import json_values, strict_json, table_reader
from formats.json_values import RawValue
from formats.records import BadLine, TraceRecord

RawValues = Iterable[RawValue | BadLine]


class RecordReader:
    """The `read` of a format, built from the type of its items and a function that makes traces of one item.

    `regroup` splits or joins the raw values of a JSON file where an item is not exactly one of them. With
    `takes_segmenter`, `parse` accepts the name of a segmenter for texts that are not divided into steps.
    """

    def __init__(
        self,
        item: Any,
        parse: Callable[..., Iterable[TraceRecord]],
        *,
        regroup: Callable[[RawValues], Iterator[RawValue | BadLine]] = iter,
        takes_segmenter: bool = False,
    ) -> None:
        self.decoder = msgspec.json.Decoder(item)
        # CSV cells are text: numbers and truth values are converted where the format has them.
        self._csv_decoder = msgspec.json.Decoder(item, strict=False)
        self._text_keys = table_reader.find_text_keys(item)
        self._parse, self._regroup, self._takes_segmenter = parse, regroup, takes_segmenter

    @property
    def item_fields(self) -> tuple[str, ...]:
        """The keys that an item can have, for the documentation of the format."""
        return tuple(getattr(self.decoder.type, "__struct_encode_fields__", ()))

    def __call__(
        self, stream: BinaryIO, *, table: str | None = None, segmenter: str = ""
    ) -> Iterator[TraceRecord | BadLine]:
        """Yield every record of the file in order. `table` is "csv" or "parquet", None for JSON."""
        parse = partial(self._parse, segmenter=segmenter) if segmenter and self._takes_segmenter else self._parse
        if table is None:
            return _parse_values(self._regroup(json_values.split_values(stream)), self.decoder, parse)
        decoder = self._csv_decoder if table == table_reader.CSV else self.decoder
        return _parse_values(table_reader.read_rows(stream, table, texts=self._text_keys), decoder, parse)


def _parse_values(
    values: RawValues, decoder: "msgspec.json.Decoder[Any]", parse: Callable[[Any], Iterable[TraceRecord]]
) -> Iterator[TraceRecord | BadLine]:
    """Yield the traces of every value. A value with an error yields a bad line and no trace."""
    for value in values:
        if isinstance(value, BadLine):
            yield value
            continue
        try:
            item = strict_json.decode(value.raw, decoder)
            strict_json.check_strictness(value.raw)
            records = list(parse(item))
        except strict_json.JsonRefused as refused:
            yield value.to_bad_line(refused)
        except strict_json.RecordMisfit as misfit:
            yield value.to_bad_line(misfit.locate_in(value.raw))
        else:
            yield from _identify_records(records, value)


def _identify_records(records: list[TraceRecord], value: RawValue) -> Iterator[TraceRecord]:
    """Give each record of a value its line and its digest."""
    digest = hashlib.sha256(value.raw).hexdigest()
    for number, record in enumerate(records):
        record.line = value.line
        record.digest = digest if number == 0 else hashlib.sha256(f"{digest}:{number}".encode()).hexdigest()
        yield record
