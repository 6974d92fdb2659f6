"""Add judges, Monte Carlo raters and PRMs that label, try them, run them, and see what they cost."""

import json
import time
from argparse import ArgumentParser
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from jobs import runner
from jobs.models import Job, JobState
from labeling.models import Project
from machines import consensus_report, judges, machine_job, prompts, runs
from machines.answers import CheckerKind
from machines.judges import InvalidJudge, JudgeSettings
from machines.models import EndpointKind, Judge, JudgeContractKind, JudgeRun, JudgeRunState, JudgeVote, RunScope
from machines.rollouts import RolloutOptions, SearchKind
from machines.runs import RunRefused
from machines.stored_answers import read_stored_answer
from prm.models import PRM

_POLL_SECONDS = 0.3


class Command(BaseCommand):
    help = "Add judges to a project, try them on three traces, run them, and list them with their runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser("add", help="add a judge, and print its version")
        _add_settings(add)
        run = actions.add_parser("run", help="label traces, and print the result as JSON")
        run.add_argument("--scope", choices=RunScope.values, default=RunScope.ALL)
        run.add_argument("--most-traces", type=int)
        run.add_argument("--most-tokens", type=int, help="cost cap of the run")
        run.add_argument("--most-money", type=Decimal, help="cost cap of the run")
        for name, text in (
            ("try", "ask about three traces, and print the answers"),
            ("resume", "continue a paused run"),
            ("cancel", "end a run; its answers are kept"),
        ):
            actions.add_parser(name, help=text)
        for action in actions.choices.values():
            action.add_argument("--project", required=True, help="the project's slug, as in its links")
            action.add_argument("--name", required=True)
        for name in ("run", "try", "resume", "cancel"):
            actions.choices[name].add_argument("--version-number", type=int, help="default: the latest version")
        for name, text in (("list", "list judges and runs as JSON"), ("cap", "limit what all judges may cost")):
            actions.add_parser(name, help=text).add_argument("--project", required=True)
        actions.choices["cap"].add_argument("--most-tokens", type=int)
        actions.choices["cap"].add_argument("--most-money", type=Decimal)
        consensus = actions.add_parser("consensus", help="compare two machines with each other and people, as JSON")
        consensus.add_argument("--project", required=True)
        consensus.add_argument("--machine", action="append", required=True, metavar="NAME", dest="machines")
        actions.add_parser("prompt", help="print a built-in prompt").add_argument(
            "--contract", choices=list(prompts.BUILTIN_TEMPLATES), default=JudgeContractKind.CRITIC
        )

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        if action == "prompt":
            self.stdout.write(prompts.BUILTIN_TEMPLATES[options["contract"]].text)
            return
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        try:
            getattr(self, f"_{action}")(project, options)
        except (InvalidJudge, RunRefused) as error:
            field = f"{error.field}: " if isinstance(error, InvalidJudge) else ""
            raise CommandError(f"{field}{error}") from error

    def _add(self, project: Project, options: dict[str, Any]) -> None:
        if options["contract"] == JudgeContractKind.PRM:
            self._show_version(_add_prm_rater(project, options))
            return
        names = [name for name in JudgeSettings.__dataclass_fields__ if name != "rollouts"]
        values = {"address": "", "model": ""} | {name: options[name] for name in names if options.get(name) is not None}
        if options["contract"] == JudgeContractKind.ROLLOUTS:
            values["rollouts"] = _read_rollout_options(options)
        if options["prompt_file"]:
            values["prompt"] = _read_file(options["prompt_file"])
        if options["key_file"]:
            values["key"] = _read_file(options["key_file"]).strip()
        self._show_version(
            judges.add_judge(project=project, settings=JudgeSettings(**values), by=None, now=timezone.now())
        )

    def _show_version(self, judge: Judge) -> None:
        self.stderr.write("Added as version:")
        self.stdout.write(str(judge.version))  # nothing else is printed, so that scripts can capture it

    def _try(self, project: Project, options: dict[str, Any]) -> None:
        judge = _find_judge(project, options)
        run = self._follow(runs.start_run(judge=judge, by=None, now=timezone.now(), is_trial=True))
        for vote in JudgeVote.objects.filter(judge=judge).exclude(answer=None).order_by("trace", "number")[:3]:
            found = vote.state if vote.state != "parsed" else _describe_vote(vote)
            self.stdout.write(f"--- trace {vote.trace_id}, {found}\n{read_stored_answer(vote).text}")
        self._report(run)

    def _run(self, project: Project, options: dict[str, Any]) -> None:
        names = ("scope", "most_traces", "most_tokens", "most_money")
        wanted = {name: options[name] for name in names}
        judge = _find_judge(project, options)
        self._report(self._follow(runs.start_run(judge=judge, by=None, now=timezone.now(), **wanted)))

    def _resume(self, project: Project, options: dict[str, Any]) -> None:
        run = _find_unfinished(_find_judge(project, options))
        if run.state == JudgeRunState.PAUSED or not Job.objects.unfinished().filter(subject=run.subject).exists():
            runs.resume_run(run=run, by=None, now=timezone.now())
        self._report(self._follow(run))

    def _cancel(self, project: Project, options: dict[str, Any]) -> None:
        runs.cancel_run(run=_find_unfinished(_find_judge(project, options)), by=None, now=timezone.now())

    def _cap(self, project: Project, options: dict[str, Any]) -> None:
        caps = {name: options[name] for name in ("most_tokens", "most_money")}
        judges.set_budget(project=project, by=None, now=timezone.now(), **caps)

    def _list(self, project: Project, options: dict[str, Any]) -> None:
        rows = Judge.objects.filter(project=project).order_by("pk").prefetch_related("runs")
        self.stdout.write(json.dumps([_describe_judge(judge) for judge in rows], indent=2))

    def _consensus(self, project: Project, options: dict[str, Any]) -> None:
        found = [(name, consensus_report.find_machine(project, name)) for name in options["machines"]]
        machines = [machine for _, machine in found if machine is not None]
        if len(machines) != 2 or len(found) != 2:
            known = "\n".join(machine.machine for machine in consensus_report.list_machines(project))
            raise CommandError(f"Name two machines with --machine. Machines with labels:\n{known}")
        report = consensus_report.compare_machines(*machines)
        self.stdout.write(json.dumps(consensus_report.describe_report(report), indent=2))

    def _follow(self, run: JudgeRun) -> JudgeRun:
        """Run the job here, or wait for the worker that has it already."""
        while job := Job.objects.unfinished().filter(subject=run.subject).order_by("pk").first():
            if job.state == JobState.QUEUED:
                runner.run_job(job.pk, machine_job.run_machine_job)
            else:
                time.sleep(_POLL_SECONDS)
        run.refresh_from_db()
        failed = Job.objects.filter(pk=run.job or 0, state=JobState.FAILED).first()
        if failed is not None:
            raise CommandError(f"{failed.failure} Stored answers are kept. Continue with: judge resume")
        return run

    def _report(self, run: JudgeRun) -> None:
        self.stdout.write(json.dumps(_describe_run(run), indent=2))
        if run.state == JudgeRunState.PAUSED:
            raise CommandError(f"{run.pause_line} The run is paused. Continue with: judge resume", returncode=3)


def _add_settings(parser: ArgumentParser) -> None:
    parser.add_argument("--address", help="base URL of the API, for example http://gpu:8000/v1")
    parser.add_argument("--model", help="model name as the server knows it")
    parser.add_argument("--family", choices=EndpointKind.values)
    parser.add_argument("--model-digest", help="hash of the weights")
    parser.add_argument("--contract", choices=JudgeContractKind.values)
    parser.add_argument("--prompt-file", type=Path, help="file with an edited prompt (default: the built-in prompt)")
    parser.add_argument("--key-file", type=Path, help="file with the API key")
    parser.add_argument("--votes", type=int, dest="n_votes", help="votes per trace, or rollouts after each step")
    parser.add_argument("--concurrency", type=int, dest="n_concurrent", help="number of concurrent requests")
    for name in ("temperature", "top-p", "timeout"):
        parser.add_argument(f"--{name}", type=float)
    parser.add_argument("--max-tokens", type=int)
    for name in ("prompt-price", "completion-price"):
        parser.add_argument(f"--{name}", type=Decimal, help="price per million tokens")
    _add_rollout_options(parser.add_argument_group("rollouts (--contract rollouts)"))
    prm = parser.add_argument_group("a PRM (--contract prm)")
    prm.add_argument("--prm", type=int, help="version of the PRM; its --threshold is the probability of an error")


def _add_rollout_options(group: Any) -> None:
    group.add_argument("--checker", choices=list(map(str, CheckerKind)))
    group.add_argument("--pattern", help="regular expression whose group is the answer")
    group.add_argument("--checker-address", help="URL of a checker over HTTP")
    group.add_argument("--search", choices=list(map(str, SearchKind)), help="value every step, or halve the trace")
    group.add_argument("--threshold", type=float, help="a step is wrong up to this share of right answers (default: 0)")
    for name in ("stops-early", "measures-progress"):
        group.add_argument(f"--{name}", action="store_const", const=True)
    for name in ("separator", "stop"):
        group.add_argument(f"--{name}", type=_read_escapes, help=r"text; \n is a line break")


def _read_escapes(text: str) -> str:
    return text.replace("\\n", "\n")


def _read_rollout_options(options: dict[str, Any]) -> RolloutOptions:
    given = {each.name: options[each.name] for each in fields(RolloutOptions)}
    return RolloutOptions(**{name: value for name, value in given.items() if value is not None})


def _add_prm_rater(project: Project, options: dict[str, Any]) -> Judge:
    prm = PRM.objects.filter(project=project, version=options["prm"]).first()
    if prm is None:
        raise CommandError(f"The project {project.slug} has no PRM with version {options['prm']}. Use --prm.")
    threshold = options["threshold"]
    return judges.add_prm_rater(prm=prm, name=options["name"], threshold=threshold, by=None, now=timezone.now())


def _read_file(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"Cannot read {path}: {error}") from None


def _find_judge(project: Project, options: dict[str, Any]) -> Judge:
    judge = judges.find_judge(project, options["name"], options["version_number"])
    if judge is None:
        raise CommandError(f"The project {project.slug} has no such judge {options['name']!r}.")
    return judge


def _find_unfinished(judge: Judge) -> JudgeRun:
    run = JudgeRun.objects.unfinished().filter(judge=judge).first()
    if run is None:
        raise CommandError(f"No run of {judge.label} is unfinished.")
    return run


def _describe_vote(vote: JudgeVote) -> str:
    if vote.is_right is None:
        return f"first error: {vote.first_error}"
    return f"after {vote.prefix} steps: {'right' if vote.is_right else 'wrong'} answer"


def _describe_run(run: JudgeRun) -> dict[str, Any]:
    names = ("state", "pause", "pause_line", "is_trial", "scope", "n_traces", "n_judged", "n_labeled", "n_votes")
    counts = ("n_unread", "n_failed", "n_repeated", "prompt_tokens", "completion_tokens")
    return {name: getattr(run, name) for name in (*names, *counts)} | {"money": f"{run.money:.4f}"}


def _describe_judge(judge: Judge) -> dict[str, Any]:
    names = ("name", "version", "kind", "family", "address", "model", "contract", "prompt_version", "prompt_digest")
    described = {name: getattr(judge, name) for name in (*names, "n_votes", "rollouts", "threshold")}
    return described | {"runs": [_describe_run(run) for run in judge.runs.all()]}
