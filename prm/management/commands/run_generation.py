"""One whole generation in the foreground: snapshot, train or take a registered PRM, judge, gate, score, select."""

import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from jobs import runner
from jobs.models import Job, JobState
from labeling.models import Project
from prm import generations, loop_rules
from prm.models import PRM, Generation

_LOOK_EVERY = 0.3  # seconds


class Command(BaseCommand):
    help = "Run a generation of a project to its end, without a worker, and print what came of it as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, help="the project's address, as in its links")
        parser.add_argument(
            "--prm", type=int, help="the version of a registered PRM; without, a builtin one is trained"
        )
        parser.add_argument("--batch-size", type=int, help="kept as the project's rule")
        parser.add_argument(
            "--acquisition", help="what chooses: a name, or module:function; kept as the project's rule"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"no project {options['project']}")
        candidate = _candidate(project, options["prm"])
        try:
            if chosen := {name: options[name] for name in ("batch_size", "acquisition") if options[name] is not None}:
                loop_rules.change_loop_rules(project=project, by=None, now=timezone.now(), **chosen)
            generation = generations.start_generation(project=project, by=None, now=timezone.now(), candidate=candidate)
        except (generations.AlreadyRunning, loop_rules.InvalidLoopRule) as refused:
            raise CommandError(str(refused)) from None
        self._work_off(generation)
        generation.refresh_from_db()
        self.stdout.write(json.dumps(_told(generation), indent=2))

    def _work_off(self, generation: Generation) -> None:
        """Its jobs one after the other. A worker that takes one up first does no harm: it is waited for."""
        from prm import batch_job, scoring, training_job  # scikit-learn takes a second to load: not for --help

        handlers = {
            generations.TRAIN: training_job.run_training_job,
            generations.SCORE: scoring.run_scoring_job,
            generations.SELECT: batch_job.run_batch_job,
        }
        while (job := _next_job(generation)) is not None:
            if job.state == JobState.QUEUED:
                self.stderr.write(f"{job.kind} …")
                runner.run_job(job.pk, handlers[job.kind])
                job.refresh_from_db()
            if job.state == JobState.FAILED:
                generations.stop_generation(generation=generation, by=None, now=timezone.now())
                raise CommandError(f"{job.failure} The old scores and the queue are as they were.")
            if job.state == JobState.RUNNING:
                time.sleep(_LOOK_EVERY)


def _next_job(generation: Generation) -> Job | None:
    """What failed, else what waits, else what a worker has in hand; None where all is done."""
    jobs = Job.objects.filter(subject=generation.subject).order_by("pk")
    for state in (JobState.FAILED, JobState.QUEUED, JobState.RUNNING):
        if (found := jobs.filter(state=state).first()) is not None:
            return found
    return None


def _candidate(project: Project, version: int | None) -> PRM | None:
    if version is None:
        return None
    found = PRM.objects.filter(project=project, version=version).first()
    if found is None:
        raise CommandError(f"no PRM {version} in {project.slug}")
    return found


def _contamination(told: dict[str, Any]) -> dict[str, int] | None:
    """How many problems of what judges it was trained on; null where that is not stated."""
    if not told.get("is_stated"):
        return None
    found = ((each["name"] or each["kind"], each["n_equal"] + each["n_overlapping"]) for each in told["judges"])
    return {name: n for name, n in found if n}


def _told(generation: Generation) -> dict[str, Any]:
    candidate = generation.candidate
    return {
        "generation": generation.number,
        "prm": candidate.label if candidate else None,
        "has_passed": generation.has_passed,
        "why": generation.gate.get("why"),
        "alarms": generation.gate.get("alarms"),
        "contamination": _contamination(generation.gate.get("contamination", {})),
        "figures": {name: each["value"] for name, each in generation.gate.get("figures", {}).items()},
        "acquisition": generation.acquisition,
        "drawn": {"policy": generation.n_policy, "uniform": generation.n_uniform},
        "payoff": generation.payoff,
    }
