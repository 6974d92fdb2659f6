"""ARCHITECTURE.md lists the modules that a trace passes through, from the import to a PRM800K file."""

import gc
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver, reverse
from django.utils import timezone

from labeling import tasks
from labeling.models import Project
from labeling.projects import rating_rules
from people.models import Membership
from tests import factories
from tests.conventions.rule import PACKAGES, ROOT, text_of

MAX_MODULES = 75
STAGES = ("import", "claim", "page", "record", "submit", "settle", "export")


@contextmanager
def recorded(modules: set[str]) -> Iterator[None]:
    """Collect the modules of ours in which a function runs, models and settings aside."""

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        # Bodies of modules and classes run while they are imported; only functions are optimized code.
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            files.add(frame.f_code.co_filename)

    files: set[str] = set()
    # Closing a generator that another test left behind would call it.
    gc.collect()
    gc.disable()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        gc.enable()
    for file in files:
        if file.startswith(f"{ROOT}/"):
            parts = Path(file).relative_to(ROOT).with_suffix("").parts
            if parts[0] in PACKAGES - {"config"} and not {"models", "migrations"} & set(parts):
                modules.add(".".join(part for part in parts if part != "__init__"))


def post(client: Client, path: str, content: dict[str, Any]) -> dict[str, Any]:
    response = client.post(path, json.dumps(content), content_type="application/json")
    assert response.status_code == 200, response.content
    answer: dict[str, Any] = json.loads(response.content)
    return answer


def walk_a_trace(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield each stage with the call that runs it."""
    project = factories.make_project("path", overlap=1, rating_rules=rating_rules.copy_template("math"))
    rater = factories.make_rater(project)
    assert rater.user is not None
    Membership.objects.create(project=project, user=rater.user, role="annotator", joined_at=timezone.now())
    client = Client()
    client.force_login(rater.user)
    file = folder / "traces.jsonl"
    file.write_text(json.dumps({"problem": "1 + 1?", "steps": ["1 + 1 = 2.", "The answer is 2."]}) + "\n")
    trace: dict[str, Any] = {}
    edits = [{"sequence": n + 1, "seen": 0, "kind": "rate", "step": n, "option": 0, "rating": 1} for n in range(2)]

    def record() -> None:
        post(client, reverse("annotate:record", args=[trace["assignment"]]), {"client": "c", "writes": edits})

    yield "import", lambda: call_command("import_traces", str(file), project="path", format="native", verbosity=0)
    yield "claim", lambda: trace.update(post(client, reverse("annotate:claim", args=["path"]), {"opened": True}))
    yield "page", lambda: client.get(reverse("annotate:work", args=["path"]))
    yield "record", record
    yield "submit", lambda: post(client, reverse("annotate:submit", args=[trace["assignment"]]), {"client": "c"})
    yield "settle", tasks.refresh_quality
    yield (
        "export",
        lambda: call_command("build_snapshot", project="path", out=folder / "out", format=["prm800k"], verbosity=0),
    )


@pytest.mark.fault
@pytest.mark.django_db(transaction=True)
def test_listed_modules_are_those_that_a_trace_passes_through(tmp_path: Path) -> None:
    get_resolver().url_patterns  # noqa: B018  imports every view, which decorates them
    modules: dict[str, set[str]] = {stage: set() for stage in STAGES}
    for stage, run in walk_a_trace(tmp_path):
        with recorded(modules[stage]):
            run()
    assert Project.objects.get(slug="path").pk
    passed = set.union(*modules.values())
    section = text_of("ARCHITECTURE.md").partition("\n## The path of a trace\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`([a-z_]+(?:\.[a-z_0-9]+)+|rawsql)`", section))
    assert listed == passed
    assert len(passed) <= MAX_MODULES
