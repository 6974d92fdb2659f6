"""A file is one source, however often it is imported."""

import datetime as dt

import pytest

from labeling.traces import sources
from tests import factories

pytestmark = pytest.mark.django_db


def test_ensure_finds_the_source_of_the_same_file(now: dt.datetime) -> None:
    project = factories.make_project()
    one = sources.ensure_source(project=project, name="a.jsonl", format="prm800k", sha256="1", licence="MIT", now=now)
    assert sources.ensure_source(project=project, name="a.jsonl", format="prm800k", sha256="1", now=now) == one
    assert one.licence == "MIT"


def test_ensure_distinguishes_files_with_the_same_name(now: dt.datetime) -> None:
    project = factories.make_project()
    one, other = (
        sources.ensure_source(project=project, name="a.jsonl", format="prm800k", sha256=digest, now=now)
        for digest in "12"
    )
    assert one != other
