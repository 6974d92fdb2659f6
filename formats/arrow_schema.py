"""Columns as an Arrow schema, and rows as a batch. Separate from `columns` because importing pyarrow is slow."""

import json

import pyarrow as pa

from formats.columns import Columns, ColumnType, OutputRow, describe_features

_ARROW = {"string": pa.string(), "bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64()}


def make_schema(columns: Columns) -> pa.Schema:
    """Return the schema, with the Hugging Face features as metadata: they also type a column without values."""
    metadata = json.dumps({"info": {"features": describe_features(columns)}})
    fields = [pa.field(name, _arrow(kind)) for name, kind in columns.items()]
    return pa.schema(fields, metadata={"huggingface": metadata})


def _arrow(kind: ColumnType) -> pa.DataType:
    if isinstance(kind, str):
        return _ARROW[kind]
    if isinstance(kind, list):
        return pa.list_(_arrow(kind[0]))
    return pa.struct([pa.field(name, _arrow(inner)) for name, inner in kind.items()])


def make_batch(rows: list[OutputRow], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=schema)
