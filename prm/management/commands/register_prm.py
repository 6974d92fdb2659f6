"""Registers a PRM that runs elsewhere as the next version of a project."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from labeling.models import Manifest, Project
from prm import registry
from prm.backends.vllm import PROMPT_STYLES
from prm.management.secret_file import read_secret
from prm.models.prm import BackendKind, SemanticsKind
from prm.registry import PRMIdentity


class Command(BaseCommand):
    help = "Register a PRM behind vLLM, behind our own HTTP contract, or one whose scores are pushed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = [each.value for each in BackendKind if each is not BackendKind.BUILTIN]
        parser.add_argument("--project", required=True)
        parser.add_argument("--backend", required=True, choices=kinds)
        parser.add_argument("--model", required=True, help="its name where it runs")
        parser.add_argument("--digest", default="", help="a hash of its weights")
        parser.add_argument("--address", default="")
        parser.add_argument("--style", choices=sorted(PROMPT_STYLES), default="qwen", help="of a vllm backend")
        parser.add_argument("--semantics", choices=SemanticsKind.values, default="hazard")
        parser.add_argument("--snapshot", help="what it was trained on, by its name: audits then look into it")
        parser.add_argument("--secret-file", type=Path, help="bearer token (vllm) or signing secret (http)")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"no project {options['project']}")
        secret = read_secret(options["secret_file"])
        names = ("backend", "model", "digest", "address", "semantics")
        style = {"style": options["style"]} if options["backend"] == BackendKind.VLLM else {}
        identity = PRMIdentity(**{name: options[name] for name in names}, options=style, secret=secret)
        try:
            prm = registry.register_prm(
                project=project,
                identity=identity,
                by=None,
                now=timezone.now(),
                manifest=_manifest(project, options["snapshot"]),
            )
        except registry.NotRegistrable as refused:
            raise CommandError(str(refused)) from None
        self.stdout.write(f"registered as version {prm.version}")


def _manifest(project: Project, snapshot: str | None) -> Manifest | None:
    """What a snapshot was frozen as. Snapshots belong to a room above: this one knows their manifests."""
    if snapshot is None:
        return None
    found = Manifest.objects.filter(project=project, snapshot__name=snapshot).first()
    if found is None:
        raise CommandError(f"no snapshot {snapshot} in {project.slug}")
    return found
