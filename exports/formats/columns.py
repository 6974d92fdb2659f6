"""Columns of a table, said once: as types of Parquet, and as features of the Hugging Face card. Pure."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

# A column is a name of a type, a list of one type ["string"], or a list of objects [{"role": "string"}].
Type = str | list[Any] | dict[str, Any]
Columns = Mapping[str, Type]
Row = dict[str, Any]

_ARROW = {"string": pa.string(), "bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64()}


def schema(columns: Columns) -> pa.Schema:
    """With the features beside it, so that no reader has to guess what an empty column holds."""
    about = json.dumps({"info": {"features": features(columns)}})
    fields = [pa.field(name, _arrow(kind)) for name, kind in columns.items()]
    return pa.schema(fields, metadata={"huggingface": about})


def _arrow(kind: Type) -> pa.DataType:
    if isinstance(kind, str):
        return _ARROW[kind]
    if isinstance(kind, list):
        return pa.list_(_arrow(kind[0]))
    return pa.struct([pa.field(name, _arrow(inner)) for name, inner in kind.items()])


def batch(rows: list[Row], of: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=of)


def features(columns: Columns) -> dict[str, Any]:
    """As `datasets` keeps them in a file of its own."""
    return {name: _feature(kind) for name, kind in columns.items()}


def _feature(kind: Type) -> Any:
    if isinstance(kind, str):
        return {"dtype": kind, "_type": "Value"}
    if isinstance(kind, list):
        return [_feature(kind[0])]
    return {name: _feature(inner) for name, inner in kind.items()}


def yaml(columns: Columns, indent: str) -> Iterable[str]:
    """As they stand in the head of a card."""
    for name, kind in columns.items():
        yield f"{indent}- name: {name}"
        yield from _yaml_type(kind, f"{indent}  ")


def _yaml_type(kind: Type, indent: str) -> Iterable[str]:
    if isinstance(kind, str):
        yield f"{indent}dtype: {kind}"
    elif isinstance(kind, dict):
        yield f"{indent}struct:"
        yield from yaml(kind, indent)
    elif isinstance(kind[0], str):
        yield f"{indent}list: {kind[0]}"
    else:
        yield f"{indent}list:"
        yield from yaml(kind[0], indent)
