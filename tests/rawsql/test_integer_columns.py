"""Integers are read unchanged, in blocks of any size."""

import numpy as np
import pytest
from django.db import connection

from labeling.models import Project
from rawsql import integer_columns
from rawsql.integer_columns import IntegerColumn
from tests import factories

pytestmark = pytest.mark.django_db
COLUMNS = {
    "id": IntegerColumn("p.id", 8),
    "overlap": IntegerColumn("p.overlap", 2),
    "far": IntegerColumn("CASE WHEN p.name = 'b' THEN -1 ELSE 9000000000000000000 END", 8),
    "seconds": IntegerColumn("p.lease_seconds"),
}
NOTHING = "SELECT NULL AS n_readings UNION ALL SELECT 1"
SOURCE = "FROM labeling_project p WHERE p.id >= %s AND p.overlap < %s ORDER BY p.id"


def make_projects(n: int) -> list[Project]:
    return [factories.make_project(name="ab"[k % 2], overlap=1 + k) for k in range(n)]


@pytest.mark.parametrize("block_size", [1, 2, 5, 50_000])
def test_blocks_have_the_values_of_the_rows(monkeypatch: pytest.MonkeyPatch, block_size: int) -> None:
    projects = make_projects(5)
    monkeypatch.setattr(integer_columns, "_ROWS_PER_BLOCK", block_size)
    blocks = list(integer_columns.read_blocks(COLUMNS, SOURCE, [projects[0].pk, 100]))
    values = {name: np.concatenate([block[name] for block in blocks]) for name in COLUMNS}
    assert values["id"].tolist() == [each.pk for each in projects]
    assert values["overlap"].tolist() == [1, 2, 3, 4, 5]
    assert values["far"].tolist() == [9 * 10**18, -1, 9 * 10**18, -1, 9 * 10**18]
    assert values["seconds"].tolist() == [each.lease_seconds for each in projects]
    assert {name: column.dtype for name, column in values.items()} == {
        name: np.dtype(f"i{column.size}") for name, column in COLUMNS.items()
    }
    assert len(blocks) >= min(5 // block_size, 2)


def test_no_rows_give_no_block() -> None:
    assert list(integer_columns.read_blocks(COLUMNS, SOURCE, [0, 0])) == []


def test_invalid_values_and_nulls_are_refused() -> None:
    make_projects(2)
    with pytest.raises(ValueError, match="invalid literal"):
        integer_columns.read_blocks(COLUMNS, SOURCE, ["1; DROP TABLE labeling_project", 2])  # type: ignore[list-item]  # the test passes an invalid value
    with pytest.raises((ValueError, TypeError)):
        list(integer_columns.read_blocks({"bar": IntegerColumn("p.n_readings")}, f"FROM ({NOTHING}) p", []))


def test_connection_is_usable_after_reading() -> None:
    projects = make_projects(3)
    for block in integer_columns.read_blocks(COLUMNS, SOURCE, [projects[0].pk, 100]):
        assert len(block["id"]) == 3
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM labeling_project")
        assert cursor.fetchone() == (3,)
