"""Snapshots whose files are not on this machine, as after a restore."""

import io
import shlex
import shutil

import pytest
from django.core.management import call_command

from events import backup
from exports import snapshots
from tests.exports.snapshot_builder import build_snapshot, make_labeled_project

pytestmark = pytest.mark.django_db


def test_lost_files_are_named_with_the_command_that_writes_them_again() -> None:
    snapshot = build_snapshot(make_labeled_project(2), "prm800k")
    names = list(snapshot.files.values_list("name", flat=True))
    assert backup.describe_missing_files() == []
    shutil.rmtree(snapshots.snapshot_folder(snapshot))
    (line,) = backup.describe_missing_files()
    command = shlex.split(line.partition("manage.py ")[2])
    call_command(*command, stdout=io.StringIO(), stderr=io.StringIO())
    assert backup.describe_missing_files() == []
    assert all(snapshots.find_file(snapshot, name) for name in names)
