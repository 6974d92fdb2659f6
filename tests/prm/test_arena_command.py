"""The command `arena`."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from prm import arena
from prm.models import ArenaEdit
from tests import factories
from tests.prm import arena_project

pytestmark = pytest.mark.django_db


def call(*words: str, **options: Any) -> str:
    out = StringIO()
    call_command("arena", *words, stdout=out, **options)
    return out.getvalue()


def test_arena_is_opened_counted_and_exported(tmp_path: Path) -> None:
    project = factories.make_project(overlap=2)
    with pytest.raises(CommandError):
        call("open", project=project.slug)
    (trace,) = arena_project.make_settled(project, 1)
    arena_project.open_arena(project)
    call("close", project=project.slug)
    assert not arena.is_open(project.pk)
    call("open", project=project.slug)
    author = factories.make_rater(project)
    edit = ArenaEdit.objects.create(
        project=project,
        trace=trace,
        position=1,
        rater=author,
        prm=arena.find_scorer(project.pk),
        text="Edited.",
        reason="Wrong.",
        n_changed=1,
        p_right_before=0.1,
        p_right_after=0.9,
        state="confirmed",
        made_at=factories.NOW,
    )
    assert json.loads(call("show", project=project.slug)) == {
        "is_open": True,
        "edits": {"failed": 0, "waiting": 0, "confirmed": 1, "rejected": 0},
    }
    file = tmp_path / "hard.jsonl"
    call("export", project=project.slug, out=file)
    (row,) = map(json.loads, file.read_text().splitlines())
    assert (row["id"], row["label"], row["steps"][1]) == (f"arena-{edit.pk}", 1, "Edited.")
    with pytest.raises(CommandError):
        call("show", project="none")
