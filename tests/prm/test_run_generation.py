"""Commands that cannot run: `tests/commands/test_guides.py` runs those of the engineers' guide."""

import pytest
from django.core.management import CommandError, call_command

from prm import registry
from prm.models import PRM, Generation
from prm.models.generation import Stage
from tests import factories
from tests.prm import generation_project

pytestmark = pytest.mark.django_db


def test_impossible_generation_is_refused() -> None:
    with pytest.raises(CommandError, match="nowhere"):
        call_command("run_generation", "--project", "nowhere")
    project = generation_project.make_project(labeled=0, unread=5)
    with pytest.raises(CommandError, match="7"):
        call_command("run_generation", "--project", project.slug, "--prm", "7")
    assert not Generation.objects.exists()
    with pytest.raises(CommandError):
        call_command("run_generation", "--project", project.slug)
    assert Generation.objects.get().stage == Stage.STOPPED


def test_registration_without_a_secret_is_refused() -> None:
    project = factories.make_project()
    options = ("--backend", "http", "--model", "m", "--address", "http://127.0.0.1:1/")
    with pytest.raises(CommandError) as refused:
        call_command("register_prm", "--project", project.slug, *options)
    assert isinstance(refused.value.__cause__, registry.NotRegistrable)
    assert not PRM.objects.exists()
