"""Find and replace what identifies a person: email addresses, worker IDs, user names and full names."""

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from allauth.account.models import EmailAddress
from django.apps import apps
from django.db import connection
from django.db.models import CharField, JSONField, Model

import rawsql
from accounts.models import User
from events.append_only import TOMBSTONE
from people.models import WorkerId
from privacy.inventory import SEARCHED_TEXTS

# A name in one word, such as "Will" or "lead", is also an ordinary word. It is reported, not replaced.
_IS_UNAMBIGUOUS = re.compile(r".*[\s@\d._+-]")
# Codes of the platform in events: "gave_up", "annotator", "2026-11-18". Everything else was typed.
_CODE = re.compile(r"[a-z0-9_.:-]{1,40}")
_TYPED_KEYS = frozenset({"reason", "note", "name", "text", "explanation", "comment", "file", "changes", "description"})

_TEXT_COLUMNS = """
SELECT table_name, array_agg(column_name::text ORDER BY column_name) FROM information_schema.columns
WHERE table_schema = current_schema() AND data_type IN ('text', 'character varying', 'jsonb', 'inet')
GROUP BY table_name ORDER BY table_name"""


class Mention(NamedTuple):
    table: str
    column: str
    n_rows: int


def list_identifiers(user: User) -> frozenset[str]:
    """Return the names, addresses and IDs of a user, before they are erased."""
    addresses = EmailAddress.objects.filter(user=user).values_list("email", flat=True)
    workers = WorkerId.objects.filter(user=user).values_list("worker", "session")
    found = {user.username, user.email, user.name, *addresses, *(each for row in workers for each in row)}
    return frozenset(each.strip() for each in found if len(each.strip()) > 2)


def replace_mentions(*, identifiers: Iterable[str]) -> None:
    """Replace unambiguous identifiers in the texts of all projects."""
    wanted = sorted((each for each in identifiers if _IS_UNAMBIGUOUS.match(each)), key=len, reverse=True)
    if not wanted:
        return
    with connection.cursor() as cursor:
        for label, names in SEARCHED_TEXTS.items():
            model = apps.get_model(label)
            changes, conditions, values = [], [], []
            for name in names:
                column, pattern = connection.ops.quote_name(model._meta.get_field(name).column), _pattern(wanted)
                if isinstance(model._meta.get_field(name), JSONField):
                    pattern = _pattern(json.dumps(each, ensure_ascii=False)[1:-1] for each in wanted)
                changes.append(f"{column} = {_replaced(model, name, column)}")
                conditions.append(f"{column}::text ~* %s")
                values.append(pattern)
            table = connection.ops.quote_name(model._meta.db_table)
            statement = f"UPDATE {table} SET {', '.join(changes)} WHERE {' OR '.join(conditions)}"  # noqa: S608  names of columns
            cursor.execute(statement, [*values, *values])


def _replaced(model: type[Model], name: str, column: str) -> str:
    field = model._meta.get_field(name)
    replaced = f"regexp_replace({column}::text, %s, '{TOMBSTONE}', 'gi')"
    if isinstance(field, JSONField):
        return f"{replaced}::jsonb"
    return f"left({replaced}, {field.max_length})" if isinstance(field, CharField) else replaced


def _pattern(texts: Iterable[str]) -> str:
    """Return a PostgreSQL regular expression that matches any of these texts as whole words."""
    return rf"(?<!\w)({'|'.join(re.escape(each) for each in texts)})(?!\w)"


def find_mentions(identifiers: Iterable[str]) -> list[Mention]:
    """Search every column of every table."""
    pattern, found = _pattern(sorted(identifiers, key=len, reverse=True)), []
    for table, columns in rawsql.fetch_rows(_TEXT_COLUMNS, []):
        names = [connection.ops.quote_name(column) for column in columns]
        counts = ", ".join(f"count(*) FILTER (WHERE {name}::text ~* %s)" for name in names)
        statement = f"SELECT {counts} FROM {connection.ops.quote_name(table)}"  # noqa: S608  names of tables and columns
        numbers = rawsql.fetch_rows(statement, [pattern] * len(names))[0]
        found += [Mention(table, column, n) for column, n in zip(columns, numbers, strict=True) if n]
    return found


def remove_typed_texts(value: Any, key: str = "") -> Any:
    """Return a JSON value in which the tombstone replaces every text that a person may have typed."""
    if isinstance(value, dict):
        return {name: remove_typed_texts(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [remove_typed_texts(each, key) for each in value]
    is_code = not isinstance(value, str) or not value or (key not in _TYPED_KEYS and _CODE.fullmatch(value))
    return value if is_code else TOMBSTONE
