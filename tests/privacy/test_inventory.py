"""Every field that takes text is in the inventory, and every personal one in the documentation."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.db import models

from events import append_only
from privacy import inventory

_TEXT_FIELDS = (
    models.CharField,
    models.TextField,
    models.JSONField,
    models.BinaryField,
    models.FileField,
    models.GenericIPAddressField,
)


def list_text_fields() -> Iterator[str]:
    """Yield `app.Model.field` for each field in which a person could be named."""
    for model in apps.get_models(include_auto_created=True):
        if model._meta.label not in inventory.DELETED_ROWS:
            for field in model._meta.local_concrete_fields:
                if isinstance(field, _TEXT_FIELDS) and not field.choices:
                    yield f"{model._meta.label}.{field.name}"


def list_handled_fields() -> Counter[str]:
    lists = (
        inventory.CLEARED_FIELDS,
        {label: texts.fields for label, texts in inventory.REPLACED_TEXTS.items()},
        inventory.SEARCHED_TEXTS,
        inventory.IMPORTED_TEXTS,
        inventory.TECHNICAL_FIELDS,
    )
    return Counter(f"{label}.{field}" for each in lists for label, fields in each.items() for field in fields)


def test_every_text_field_is_handled_once() -> None:
    handled = list_handled_fields()
    assert {name for name, times in handled.items() if times > 1} == set()
    assert set(list_text_fields()) == set(handled)


def test_deleted_rows_exist() -> None:
    assert {apps.get_model(label)._meta.label for label in inventory.DELETED_ROWS} == set(inventory.DELETED_ROWS)


def test_erasable_columns_are_personal() -> None:
    """The database permits an erasure in these columns of append-only tables, and in no other."""
    replaced = {label: texts.fields for label, texts in inventory.REPLACED_TEXTS.items()}
    personal = {
        apps.get_model(label)._meta.db_table: (*replaced.get(label, ()), *inventory.SEARCHED_TEXTS.get(label, ()))
        for label in (*replaced, *inventory.SEARCHED_TEXTS)
    }
    locked = {table: fields for table, fields in personal.items() if table in append_only.registered_tables()}
    assert append_only.erasable_columns() == locked


def test_every_personal_field_is_documented() -> None:
    documented = set(re.findall(r"`(\w+\.\w+\.\w+)`", Path(settings.BASE_DIR, "docs/privacy.md").read_text()))
    personal = {
        *(f"{label}.{field}" for label, texts in inventory.REPLACED_TEXTS.items() for field in texts.fields),
        *(f"{label}.{field}" for label, fields in inventory.CLEARED_FIELDS.items() for field in fields),
        *(f"{label}.{field}" for label, fields in inventory.SEARCHED_TEXTS.items() for field in fields),
    }
    rows = set(re.findall(r"`(\w+\.\w+)`", Path(settings.BASE_DIR, "docs/privacy.md").read_text()))
    assert personal <= documented
    assert set(inventory.DELETED_ROWS) <= rows
