"""Make model instances from the rows of a hand-written statement.

Django builds the text of a query with many columns again for each request, which takes longer than PostgreSQL needs to
answer it."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, models

ModelRow = TypeVar("ModelRow", bound=models.Model)


class ModelColumns(Generic[ModelRow]):
    """All columns of a model: `sql` for the SELECT, and the instance that one row makes."""

    def __init__(self, model: type[ModelRow], alias: str) -> None:
        fields = model._meta.concrete_fields
        self._model = model
        self._names = [field.attname for field in fields]
        converters = ((n, getattr(field, "from_db_value", None)) for n, field in enumerate(fields))
        self._converters = [(n, convert) for n, convert in converters if convert is not None]
        self.sql = ", ".join(f'{alias}."{field.column}"' for field in fields)

    def __len__(self) -> int:
        return len(self._names)

    def make_instance(self, values: Sequence[Any]) -> ModelRow:
        row = list(values)
        for n, convert in self._converters:
            row[n] = convert(row[n], None, connection)
        return self._model.from_db(DEFAULT_DB_ALIAS, self._names, row)
