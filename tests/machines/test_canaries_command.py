"""The command `canaries`: freeze, score, show. The machines guide runs it as well."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests import factories
from tests.machines import judged_project
from tests.prm import canary_project
from tests.prm.backends import scorer_servers

pytestmark = pytest.mark.django_db


def call(*words: str, **options: Any) -> Any:
    out = StringIO()
    call_command("canaries", *words, stdout=out, **options)
    return json.loads(out.getvalue())


def test_canaries_are_frozen_scored_and_shown() -> None:
    project = canary_project.make_project(9)
    assert call("freeze", project=project.slug, edits=20)["n_edits"] == 20
    with scorer_servers.running_scorer(scorer_servers.FakeVllmServer()) as address:
        prm = canary_project.register_scorer(project, address)
        report = call("score", project=project.slug, prm=prm.version)
    assert (report["n"], report["set"]) == (20, 1)
    (result,) = call("show", project=project.slug)["results"]
    assert result["report"] == report


def test_impossible_requests_are_refused() -> None:
    project = factories.make_project()
    pushed = judged_project.make_prm(project)
    for words in (["freeze"], ["show"], ["score", "--prm", str(pushed.version)], ["score", "--prm", "9"]):
        with pytest.raises(CommandError):
            call(*words, "--project", project.slug)
    with pytest.raises(CommandError):
        call("show", project="none")
