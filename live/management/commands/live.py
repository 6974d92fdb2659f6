"""Add live policies and problems, try and open a policy, and print or replay recorded requests."""

import json
from argparse import ArgumentParser
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_slug
from django.utils import timezone

from accounts.models import User
from labeling.models import Problem, Project
from labeling.models.project import Protocol
from labeling.traces import problems
from labeling.traces.problems import InvalidProblems
from live import policies, replay, request_log, trials
from live.models import LiveMode, LivePolicy
from live.policies import InvalidPolicy, PolicyNotReady, PolicySettings
from machines.models import EndpointKind
from people import members

_TYPES: dict[str, Any] = {
    **dict.fromkeys(("n_options", "n_prefetched", "top_k", "max_tokens", "most_steps", "sessions_per_problem"), int),
    **dict.fromkeys(("most_session_tokens", "most_tokens"), int),
    **dict.fromkeys(("temperature", "top_p", "min_p", "timeout"), float),
    **dict.fromkeys(("most_money", "prompt_price", "completion_price"), Decimal),
}
_OWN_ARGUMENTS = ("address", "model", "family", "mode", "key", "template", "step_end")


class Command(BaseCommand):
    help = "Set up live labeling in a project, and replay the recorded requests."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser("add", help="add a policy, and print its version")
        add.add_argument("--address", default="", help="root of the server's API, such as http://gpu:8000/v1")
        add.add_argument("--model", default="")
        add.add_argument("--family", choices=EndpointKind.values, default=EndpointKind.VLLM)
        add.add_argument("--mode", choices=LiveMode.values, default=LiveMode.COMPLETIONS)
        add.add_argument("--key-file", help="a file with the API key")
        add.add_argument("--template-file", help="a file with the prompt")
        add.add_argument(
            "--step-end", default=PolicySettings.step_end, help="text between two steps; \\n is a line end"
        )
        for name in PolicySettings.__dataclass_fields__:
            if name not in _OWN_ARGUMENTS:
                add.add_argument(f"--{name.replace('_', '-')}", type=_TYPES.get(name, str))
        tried = actions.add_parser("try", help="try a policy on a problem, and print the options")
        tried.add_argument("--problem", type=int, help="the id of a problem; default: the first one")
        actions.add_parser("open", help="let raters begin sessions with a policy")
        actions.add_parser("close", help="let no new session begin")
        for name in ("try", "open", "close"):
            actions.choices[name].add_argument("--version-number", type=int, help="default: the latest version")
        more = actions.add_parser("problems", help="add problems: one text or JSON object per line")
        more.add_argument("file")
        more.add_argument("--by", metavar="USER", help="username of the owner, if the project is new")
        actions.add_parser("log", help="print all recorded requests with their options as JSON lines")
        again = actions.add_parser("replay", help="send recorded requests again, and print what was reproduced")
        again.add_argument("--session", type=int)
        again.add_argument("--most", type=int, help="replay only the first requests")
        again.add_argument("--least-share", type=float, help="exit with 1 if a smaller share was reproduced")
        for action in actions.choices.values():
            action.add_argument("--project", required=True, help="the project's slug, as in its links")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None and options.get("by"):
            project = _create_project(options["project"], options["by"])
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        try:
            getattr(self, f"_{action}")(project, options)
        except InvalidPolicy as error:
            raise CommandError(f"{error.field}: {error}") from error
        except (PolicyNotReady, InvalidProblems) as error:
            raise CommandError(str(error)) from error

    def _add(self, project: Project, options: dict[str, Any]) -> None:
        names = [name for name in PolicySettings.__dataclass_fields__ if options.get(name) is not None]
        values = {name: options[name] for name in names}
        values["step_end"] = options["step_end"].replace("\\n", "\n")
        if options["key_file"]:
            values["key"] = _read_file(options["key_file"]).strip()
        if options["template_file"]:
            values["template"] = _read_file(options["template_file"]).removesuffix("\n")
        policy = policies.add_policy(project=project, settings=PolicySettings(**values), by=None, now=timezone.now())
        self.stderr.write("Added as version:")
        self.stdout.write(str(policy.version))  # nothing else is printed, so that scripts can capture it

    def _try(self, project: Project, options: dict[str, Any]) -> None:
        rows = Problem.objects.filter(project=project).order_by("pk")
        problem = (rows if options["problem"] is None else rows.filter(pk=options["problem"])).first()
        if problem is None:
            raise CommandError("There is no such problem. Add problems first.")
        session = trials.try_policy(policy=_find_policy(project, options), problem=problem, clock=timezone.now)
        for step in trials.load_trial(session):
            self.stdout.write(
                f"--- step {step.request.position + 1}: {step.request.state} {step.request.problem}".rstrip()
            )
            for option in step.options:
                self.stdout.write(f"{option.index} [{option.ending}] {option.text}")

    def _open(self, project: Project, options: dict[str, Any]) -> None:
        policies.open_policy(policy=_find_policy(project, options), by=None, now=timezone.now())

    def _close(self, project: Project, options: dict[str, Any]) -> None:
        policies.close_policy(policy=_find_policy(project, options), by=None, now=timezone.now())

    def _problems(self, project: Project, options: dict[str, Any]) -> None:
        records = problems.parse_problems(_read_file(options["file"]))
        name = Path(options["file"]).name
        n = problems.add_problems(project=project, records=records, name=name, by=None, now=timezone.now())
        self.stdout.write(f"{n} problems added.")

    def _log(self, project: Project, options: dict[str, Any]) -> None:
        for record in request_log.describe_requests(project):
            self.stdout.write(json.dumps(record))

    def _replay(self, project: Project, options: dict[str, Any]) -> None:
        requests = replay.list_recorded(project, session_id=options["session"])
        if options["most"] is not None:
            requests = requests.filter(pk__in=list(requests.values_list("pk", flat=True)[: options["most"]]))
        found = list(replay.describe_counts(replay.replay_requests(requests)))
        self.stdout.write(json.dumps(found, indent=2))
        least = options["least_share"]
        if least is not None and any((row["share"] or 0.0) < least for row in found):
            raise CommandError(f"Less than {least:.1%} was reproduced.")


def _create_project(slug: str, username: str) -> Project:
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user {username!r}.")
    try:
        validate_slug(slug)
    except ValidationError as error:
        raise CommandError(f"{slug!r} cannot be a slug: {error.messages[0]}") from error
    return members.create_owned_project(name=slug, slug=slug, by=user, now=timezone.now(), protocol=Protocol.LIVE)


def _read_file(name: str) -> str:
    try:
        return Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}") from error


def _find_policy(project: Project, options: dict[str, Any]) -> LivePolicy:
    rows = LivePolicy.objects.filter(project=project).select_related("project").order_by("-version")
    number = options["version_number"]
    policy = (rows if number is None else rows.filter(version=number)).first()
    if policy is None:
        raise CommandError("There is no such policy. Add one first.")
    return policy
