"""Register an external PRM as the next version of a project."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from labeling.models import Manifest, Project
from prm import registry
from prm.backends.remote import PROMPT_STYLES
from prm.management.secret_file import read_secret
from prm.models.prm import BackendKind, SemanticsKind
from prm.registry import PRMIdentity


class Command(BaseCommand):
    help = "Register a PRM behind vLLM or another HTTP server, or one with pushed scores."

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = [each.value for each in BackendKind if each is not BackendKind.BUILTIN]
        parser.add_argument("--project", required=True)
        parser.add_argument("--backend", required=True, choices=kinds)
        parser.add_argument("--model", required=True, help="model name as its server knows it")
        parser.add_argument("--digest", default="", help="a hash of its weights")
        parser.add_argument("--address", default="")
        parser.add_argument(
            "--style", choices=sorted(PROMPT_STYLES), default="qwen", help="prompt style of a vllm backend"
        )
        parser.add_argument("--semantics", choices=SemanticsKind.values, default="hazard")
        parser.add_argument("--snapshot", help="the snapshot that it was trained on, for audits")
        parser.add_argument("--secret-file", type=Path, help="bearer token (vllm) or signing secret (http)")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
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
                manifest=_find_manifest(project, options["snapshot"]),
            )
        except registry.NotRegistrable as error:
            raise CommandError(str(error)) from error
        self.stderr.write("Registered as version:")
        self.stdout.write(str(prm.version))  # nothing else is printed, so that scripts can capture it


def _find_manifest(project: Project, snapshot: str | None) -> Manifest | None:
    """Find the manifest by its snapshot's name; this package may not import snapshots."""
    if snapshot is None:
        return None
    manifest = Manifest.objects.filter(project=project, snapshot__name=snapshot).first()
    if manifest is None:
        raise CommandError(f"The project {project.slug} has no snapshot {snapshot!r}.")
    return manifest
