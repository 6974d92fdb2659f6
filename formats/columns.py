"""Columns of an output table, and their description as the features of a Hugging Face data set.

`formats.arrow_schema` makes Parquet types of the same columns.
"""

from collections.abc import Iterable, Mapping
from typing import Any

# A type is a name, a list of one type ["string"], or an object {"role": "string"}.
ColumnType = str | list[Any] | dict[str, Any]
Columns = Mapping[str, ColumnType]
OutputRow = dict[str, Any]


def describe_features(columns: Columns) -> dict[str, Any]:
    """Return the features as the library `datasets` stores them."""
    return {name: _feature(kind) for name, kind in columns.items()}


def _feature(kind: ColumnType) -> Any:
    if isinstance(kind, str):
        return {"dtype": kind, "_type": "Value"}
    if isinstance(kind, list):
        return [_feature(kind[0])]
    return {name: _feature(inner) for name, inner in kind.items()}


def write_yaml(columns: Columns, indent: str) -> Iterable[str]:
    """Yield the lines of the features in the YAML head of a card."""
    for name, kind in columns.items():
        yield f"{indent}- name: {name}"
        yield from _yaml_type(kind, f"{indent}  ")


def _yaml_type(kind: ColumnType, indent: str) -> Iterable[str]:
    if isinstance(kind, str):
        yield f"{indent}dtype: {kind}"
    elif isinstance(kind, dict):
        yield f"{indent}struct:"
        yield from write_yaml(kind, indent)
    elif isinstance(kind[0], str):
        yield f"{indent}list: {kind[0]}"
    else:
        yield f"{indent}list:"
        yield from write_yaml(kind[0], indent)
