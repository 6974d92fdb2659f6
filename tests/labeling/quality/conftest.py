"""Fixtures of the tests of quality."""

from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from labeling import raters
from tests import module_rows
from tests.labeling.quality import submitted_work


@pytest.fixture(autouse=True)
def _pauses_take_effect_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raters, "MAX_TRACES_BEFORE_PAUSE", 0)


@pytest.fixture(scope="module")
def kept_project(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[int]:
    """A project with two submissions, for all tests of a module; each takes back its changes."""
    with module_rows.keep_rows(django_db_blocker):
        with django_db_blocker.unblock():
            project = submitted_work.project_with_two_submissions()
        yield project.pk
