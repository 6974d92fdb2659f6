"""Columns as types of Parquet, and rows as a batch of them. Pure; apart from `columns`, for pyarrow weighs much."""

import json

import pyarrow as pa

from formats.columns import Columns, ColumnType, OutputRow, describe_features

_ARROW = {"string": pa.string(), "bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64()}


def make_schema(columns: Columns) -> pa.Schema:
    """With the features beside it, so that no reader has to guess what an empty column holds."""
    about = json.dumps({"info": {"features": describe_features(columns)}})
    fields = [pa.field(name, _arrow(kind)) for name, kind in columns.items()]
    return pa.schema(fields, metadata={"huggingface": about})


def _arrow(kind: ColumnType) -> pa.DataType:
    if isinstance(kind, str):
        return _ARROW[kind]
    if isinstance(kind, list):
        return pa.list_(_arrow(kind[0]))
    return pa.struct([pa.field(name, _arrow(inner)) for name, inner in kind.items()])


def make_batch(rows: list[OutputRow], of: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=of)
