"""Hand-written statements are prepared, counted, and refused like other queries."""

from pathlib import Path
from typing import NamedTuple

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

import rawsql
from labeling.models import Lane
from tests import factories

pytestmark = pytest.mark.django_db


def test_rows_of_a_statement_are_returned() -> None:
    project = factories.make_project()
    assert rawsql.fetch_rows("SELECT id, slug FROM labeling_project WHERE id = %s", [project.pk]) == [
        (project.pk, project.slug)
    ]
    assert rawsql.fetch_rows("UPDATE labeling_project SET name = %s WHERE id = %s", ["x", project.pk]) == []


def test_statements_are_counted() -> None:
    with CaptureQueriesContext(connection) as queries:
        rawsql.fetch_rows("SELECT 1", [])
    assert len(queries) == 1


def test_statement_is_prepared_once() -> None:
    sql = "SELECT slug FROM labeling_project WHERE id = %s"
    for number in range(3):
        rawsql.fetch_rows(sql, [number])
    prepared = rawsql.fetch_rows("SELECT statement FROM pg_prepared_statements", [])
    assert [text for (text,) in prepared].count(sql.replace("%s", "$1")) == 1


def test_parameters_are_bound_by_name() -> None:
    sql = "SELECT %(b)s::int, %(a)s::int, %(b)s::int, 7 %% 4"
    assert rawsql.fetch_rows(sql, {"a": 1, "b": 2, "unused": 3}) == [(2, 1, 2, 3)]
    with CaptureQueriesContext(connection):
        assert rawsql.fetch_rows(sql, {"a": 1, "b": 2}) == [(2, 1, 2, 3)]
    with pytest.raises(KeyError):
        rawsql.fetch_rows(sql, {"a": 1})


def test_load_sql_reads_the_file_beside_a_module(tmp_path: Path) -> None:
    (tmp_path / "one.sql").write_text("-- head\n-- section: first\nSELECT 1\n-- section: second\nWHERE true\n")
    sql = rawsql.load_sql(str(tmp_path / "module.py"), "one.sql")
    assert rawsql.fetch_rows(sql, {}) == [(1,)]
    assert rawsql.sections(sql) == {"first": "SELECT 1\n", "second": "WHERE true\n"}


def test_errors_are_those_of_django() -> None:
    factories.make_project("taken")
    with pytest.raises(IntegrityError), transaction.atomic():
        rawsql.fetch_rows("UPDATE labeling_project SET overlap = %s", [0])


@pytest.mark.parametrize("count", [0, 1, 16, 17, 40])
def test_rows_are_written_some_at_a_time(count: int) -> None:
    project = factories.make_project()
    values = [(project.pk, "uniform", number) for number in range(count)]
    sql = "INSERT INTO labeling_lane (project_id, arm, generation) VALUES {rows}"
    with CaptureQueriesContext(connection) as queries:
        rawsql.write_rows(sql, "(%s, %s, %s)", values)
    assert len(queries) == -(-count // 16)
    rows = rawsql.fetch_rows("SELECT project_id, arm, generation FROM labeling_lane ORDER BY generation", [])
    assert rows == values


def test_bulk_rows_get_new_ids_and_the_defaults_of_the_other_columns() -> None:
    project = factories.make_project()
    table = rawsql.BulkTable(Lane, "id", "project_id", "arm")
    ids = rawsql.new_ids(table.name)
    table.insert([(next(ids), project.pk, "uniform"), (next(ids), project.pk, "gold")])
    assert list(Lane.objects.order_by("pk").values_list("arm", "generation")) == [("uniform", 0), ("gold", 0)]
    assert next(rawsql.new_ids(table.name)) > next(ids)


class ProjectRow(NamedTuple):
    slug: str
    overlap: int


def test_fetch_named_binds_columns_by_name() -> None:
    factories.make_project("sums", overlap=2)
    sql = "SELECT slug, overlap FROM labeling_project WHERE slug = %(slug)s"
    assert rawsql.fetch_named(ProjectRow, sql, {"slug": "sums"}) == [ProjectRow("sums", 2)]
    with pytest.raises(TypeError, match="ProjectRow"):
        rawsql.fetch_named(ProjectRow, "SELECT overlap, slug FROM labeling_project", {})
