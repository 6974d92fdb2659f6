"""Run a whole generation in the foreground: snapshot, training, evaluation, gate, scoring, selection."""

import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from jobs import runner
from jobs.models import Job, JobState
from labeling.models import Project
from prm import generations, scores
from prm.models import PRM, Generation

_POLL_SECONDS = 0.3


class Command(BaseCommand):
    help = "Run a generation of a project to its end without a worker, and print the result as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, help="the project's slug, as in its links")
        parser.add_argument(
            "--prm", type=int, help="version of a registered PRM to evaluate (default: train a new built-in PRM)"
        )
        parser.add_argument(
            "--batch-size", type=int, help="number of traces to select; saved in the project's settings"
        )
        parser.add_argument(
            "--acquisition", help="name of an acquisition function, or module:function; saved in the project's settings"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        candidate = _find_candidate(project, options["prm"])
        try:
            if changed := {name: options[name] for name in ("batch_size", "acquisition") if options[name] is not None}:
                generations.change_loop_rules(project=project, by=None, now=timezone.now(), **changed)
            generation = generations.start_generation(project=project, by=None, now=timezone.now(), candidate=candidate)
        except (generations.AlreadyRunning, generations.InvalidLoopRule) as error:
            raise CommandError(str(error)) from error
        self._run_jobs(generation)
        generation.refresh_from_db()
        self.stdout.write(json.dumps(_summarize(generation), indent=2))

    def _run_jobs(self, generation: Generation) -> None:
        """Run the generation's jobs one after the other; wait for those that a worker has already started."""
        from prm import batch_job, training_job  # scikit-learn takes a second to load: not for --help

        handlers = {
            generations.TRAIN: training_job.run_training_job,
            generations.SCORE: scores.run_scoring_job,
            generations.SELECT: batch_job.run_batch_job,
        }
        while (job := _next_job(generation)) is not None:
            if job.state == JobState.QUEUED:
                self.stderr.write(f"{job.kind} …")
                runner.run_job(job.pk, handlers[job.kind])
                job.refresh_from_db()
            if job.state == JobState.FAILED:
                generations.stop_generation(generation=generation, by=None, now=timezone.now())
                raise CommandError(f"{job.failure} Earlier scores and the queue are unchanged.")
            if job.state == JobState.RUNNING:
                time.sleep(_POLL_SECONDS)


def _next_job(generation: Generation) -> Job | None:
    """Return a failed job, else a queued one, else a running one; None if all are done."""
    jobs = Job.objects.filter(subject=generation.subject).order_by("pk")
    for state in (JobState.FAILED, JobState.QUEUED, JobState.RUNNING):
        if (job := jobs.filter(state=state).first()) is not None:
            return job
    return None


def _find_candidate(project: Project, version: int | None) -> PRM | None:
    if version is None:
        return None
    prm = PRM.objects.filter(project=project, version=version).first()
    if prm is None:
        raise CommandError(f"The project {project.slug} has no PRM version {version}.")
    return prm


def _count_contamination(contamination: dict[str, Any]) -> dict[str, int] | None:
    """Count the evaluated problems in the training set by kind; None if the training set is not stated."""
    if not contamination.get("is_stated"):
        return None
    counts = {each["name"] or each["kind"]: each["n_equal"] + each["n_overlapping"] for each in contamination["judges"]}
    return {name: n for name, n in counts.items() if n}


def _summarize(generation: Generation) -> dict[str, Any]:
    candidate, gate = generation.candidate, generation.gate
    return {
        "generation": generation.number,
        "prm": candidate.label if candidate else None,
        "verdict": generation.verdict,
        "why": gate.get("why"),
        "comparison": gate.get("comparison"),
        "alarms": gate.get("alarms"),
        "contamination": _count_contamination(gate.get("contamination", {})),
        "figures": {name: figure["value"] for name, figure in gate.get("figures", {}).items()},
        "acquisition": generation.acquisition,
        "drawn": {"policy": generation.n_policy, "uniform": generation.n_uniform},
        "payoff": generation.payoff,
    }
