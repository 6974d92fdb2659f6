"""A row of a person in every table that takes text about people, made from the models."""

import datetime as dt
import itertools
from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.db import connection, models

from accounts.models import User
from events import append_only
from labeling.models import Project, Rater
from labeling.quality import pay, project_stats
from privacy import inventory
from tests.factories import NOW

NAME, EMAIL, USERNAME, WORKER = "Quincy Quark", "q@quark.example", "quark-77", "QUARK1"
TEXT = "quark"  # in everything that the person wrote

# Values without which a constraint would refuse the row.
_VALUES: dict[str, dict[str, Any]] = {
    "labeling.Rater": {"kind": "member", "paused_at": NOW, "machine": "", "labeler": "p"},
    "labeling.Assignment": {"state": "released", "ended_at": NOW, "revision": 1, "submitted_revision": 0},
    "labeling.RatingEdit": {"kind": "comment"},
    "labeling.Consensus": {"source": "person"},
    "live.LiveTurn": {"ended_at": NOW},
    "jobs.Job": {"state": "failed", "ended_at": NOW},
    "notices.NoticeDelivery": {"state": "failed", "ended_at": NOW},
    "machines.MachinePassport": {"expired_because": ""},
    "machines.MachineLicense": {"ended_because": "", "may_settle": False},
    "people.MemberMessage": {"kind": "message", "read_at": NOW, "answered_at": NOW},
    "people.Invitation": {"role": "annotator"},
}
# A row refers to an existing one of these, because lookups join them.
_JOINED = ("labeling.Rater", "people.Membership", "labeling.Assignment")
_numbers = itertools.count(1)


def fill_all_tables(person: User, project: Project) -> None:
    """Write texts with the names of the person into every personal field of every model."""
    with connection.cursor() as cursor:
        # Until the test ends, rows need not refer to existing ones. Append-only tables stay locked.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for label, paths in inventory.DELETED_ROWS.items():
            for path in paths:
                if label != "people.WorkerId":  # a person has one
                    _make_row(label, person, project, path, None)
        for label, texts in inventory.REPLACED_TEXTS.items():
            for path in texts.paths:
                _make_row(label, person, project, path, texts.fields)
        for label, fields in inventory.SEARCHED_TEXTS.items():
            _make_row(label, None, project, "", fields)
        for table in append_only.registered_tables():
            cursor.execute(f'ALTER TABLE "{table}" ENABLE ALWAYS TRIGGER "{table}_refuses_update"')


def _make_row(label: str, person: User | None, project: Project, path: str, texts: Iterable[str] | None) -> int:
    """Insert a row whose `path` leads to the person, with texts in these fields, and in all of a deleted row."""
    model = apps.get_model(label)
    first, _, rest = path.partition("__")
    row = model()
    for field in model._meta.local_concrete_fields:
        if field.name == first:
            setattr(row, field.attname, _make_parent(field, person, project, rest))
        elif field.attname in _VALUES.get(label, {}):
            setattr(row, field.attname, _VALUES[label][field.attname])
        else:
            is_text = texts is None or field.name in texts
            setattr(row, field.attname, _make_value(field, project, is_text=is_text, is_by=person is not None))
    row.save(force_insert=True)
    return int(row.pk)


def _make_parent(field: Any, person: User | None, project: Project, rest: str) -> int:
    if not rest:
        assert person
        return int(person.pk)
    label = field.related_model._meta.label
    if label in (*_JOINED[:2], "people.WorkerId"):  # the person has one in a project
        return int(field.related_model.objects.get(user=person, project=project).pk)
    return _make_row(label, person, project, rest, ())


def _make_value(field: Any, project: Project, *, is_text: bool, is_by: bool) -> Any:
    number = next(_numbers)
    if field.is_relation:
        return _make_reference(field, project, number)
    if field.primary_key:
        return 1_000_000 + number
    is_text = (
        is_text and isinstance(field, (models.CharField, models.TextField, models.JSONField)) and not field.choices
    )
    if is_text:
        text = f"{TEXT} {number}" if is_by else f"{number} by {NAME}, {EMAIL}, {USERNAME} and {WORKER}"
        return {"note": text, "list": [text]} if isinstance(field, models.JSONField) else text[: field.max_length]
    return None if field.null else _make_plain_value(field, number)


def _make_plain_value(field: Any, number: int) -> Any:
    if isinstance(field, models.DateTimeField):
        return NOW.replace(hour=12) if field.name.startswith(("expires", "until")) else NOW
    if field.has_default():
        return field.get_default()
    if field.choices:
        return field.choices[0][0]
    if isinstance(field, (models.CharField, models.TextField)):
        return f"{number:032d}"[-(field.max_length or 32) :]
    return b"" if isinstance(field, models.BinaryField) else 1


def _make_reference(field: Any, project: Project, number: int) -> int | None:
    if field.null and field.related_model is not Project:
        return None
    if field.related_model._meta.label in _JOINED and not field.unique:
        return int(field.related_model.objects.values_list("pk", flat=True).first())
    # Another project for a rater, because the person has one here.
    is_here = field.related_model is Project and not field.unique and field.model is not Rater
    return project.pk if is_here else 1_000_000 + number


def read_figures(project: Project, now: dt.datetime) -> list[object]:
    """Return the figures that an erasure must not change: agreement and pay."""
    stats = project_stats.build_stats_content(project_id=project.pk, now=now)
    return [stats["headline"], stats["pair"], stats["confusion"], pay.list_pay(project=project)]


def list_tables_with(text: str) -> dict[str, int]:
    """Search the text of whole rows in every table, with ordinary SQL instead of the platform's own search."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT count(*) FROM "{table}" AS row WHERE row::text ILIKE %s', [f"%{text}%"])
            if n := cursor.fetchone()[0]:
                found[table] = n
    return found
