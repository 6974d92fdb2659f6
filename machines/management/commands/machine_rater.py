"""Issue passports of machine raters, license them, show their labels to people, and write the results that include
them."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from labeling.models import Project, Rater
from labeling.models.rater import RaterKind
from labeling.models.suggestion import SuggestionEnd
from labeling.projects import suggestions
from labeling.projects.suggestions import SuggestionsRefused
from labeling.quality import suggestion_effects
from machines import licenses, passports, routes
from machines.license_strata import PROMISES, Stratum
from machines.licenses import LicenseRefused
from machines.models import MachineLicense
from machines.passport_models import LicenseEnd
from machines.routes import RouteRefused
from stats.alternative_annotator import EPSILONS


class Command(BaseCommand):
    help = "Issue passports of machine raters, license them by stratum, and write machine-assisted results."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("list", help="list machine raters with their passports and licenses as JSON")
        passport = actions.add_parser("passport", help="issue a passport, and print its figures as JSON")
        passport.add_argument("--people", choices=EPSILONS, default="skilled", help="who labels: sets ε")
        license = actions.add_parser("license", help="license a machine in one stratum, and print its id")
        license.add_argument("--stratum", type=int, required=True, help="number in the passport's list, from 0")
        license.add_argument("--may-settle", action="store_true", help="settle traces alone")
        license.add_argument("--promised", type=float, choices=PROMISES, default=0.9)
        license.add_argument("--retest-share", type=float, default=0.1)
        history = actions.add_parser("history", help="list all passports of a machine with their ends as JSON")
        for action in (passport, license, history):
            action.add_argument("--machine", required=True, help="its name, or the beginning of it")
        revoke = actions.add_parser("revoke", help="end a license")
        revoke.add_argument("--license", type=int, required=True)
        revoke.add_argument("--return-traces", action="store_true", help="return traces that it settled to people")
        route = actions.add_parser("route", help="let two machines settle what they agree on, and print the route")
        route.add_argument("--machine", action="append", required=True, dest="machines", help="twice: their names")
        route.add_argument("--promised", type=float, choices=PROMISES, default=0.9)
        route.add_argument("--retest-share", type=float, default=0.1)
        route.add_argument("--keep-acquisition", action="store_true", help="do not put disagreement first")
        close = actions.add_parser("close-route", help="close the open route")
        close.add_argument("--return-traces", action="store_true", help="return traces that it settled to people")
        actions.add_parser("check", help="check passports and apply licenses now")
        suggest = actions.add_parser("suggest", help="show a machine's labels to some annotators, or stop it")
        suggest.add_argument("--machine", default="", help="its name, or the beginning of it")
        suggest.add_argument("--reveal-share", type=float, default=0.25, help="shown after the first answer")
        suggest.add_argument("--suggest-share", type=float, default=0.25, help="shown before the answer")
        suggest.add_argument("--off", action="store_true", help="show them to no one from now on")
        effects = actions.add_parser("effects", help="print the effects of suggestions as JSON")
        effects.add_argument("--plan", type=int, help="the id of an earlier setting; by default the latest one")
        actions.add_parser("results", help="write machine-assisted results as JSON lines").add_argument("--out")
        for action in actions.choices.values():
            action.add_argument("--project", required=True, help="the project's slug, as in its links")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        try:
            getattr(self, f"_{action.replace('-', '_')}")(project, options)
        except (LicenseRefused, RouteRefused, SuggestionsRefused) as error:
            raise CommandError(str(error)) from error

    def _list(self, project: Project, options: dict[str, Any]) -> None:
        rows = Rater.objects.filter(project=project, kind=RaterKind.MACHINE).order_by("machine")
        self.stdout.write(json.dumps([_describe_machine(row) for row in rows], indent=1, default=str))

    def _passport(self, project: Project, options: dict[str, Any]) -> None:
        machine = _find_machine(project, options["machine"])
        content = passports.build_passport(machine, epsilon=EPSILONS[options["people"]])
        passports.issue_passport(rater=machine, content=content, by=None, now=timezone.now())
        self.stdout.write(json.dumps(content, indent=1))

    def _history(self, project: Project, options: dict[str, Any]) -> None:
        names = ("pk", "issued_at", "accuracy", "passes_test", "n_retests", "expired_at", "expired_because", "identity")
        rows = passports.list_history(_find_machine(project, options["machine"]))
        found = [{name: getattr(row, name) for name in names} for row in rows]
        self.stdout.write(json.dumps(found, indent=1, default=str))

    def _license(self, project: Project, options: dict[str, Any]) -> None:
        passport = passports.find_valid_passport(_find_machine(project, options["machine"]))
        if passport is None:
            raise CommandError("This machine has no valid passport. Issue one first.")
        strata = passport.content["strata"]
        if not 0 <= options["stratum"] < len(strata):
            raise CommandError(f"The passport has {len(strata)} strata, numbered from 0.")
        row = licenses.grant_license(
            passport=passport,
            stratum=Stratum(**strata[options["stratum"]]["stratum"]),
            may_settle=options["may_settle"],
            promised=options["promised"],
            retest_share=options["retest_share"],
            by=None,
            now=timezone.now(),
        )
        self.stdout.write(str(row.pk))

    def _revoke(self, project: Project, options: dict[str, Any]) -> None:
        row = MachineLicense.objects.select_related("rater").filter(project=project, pk=options["license"]).first()
        if row is None:
            raise CommandError("There is no such license in this project.")
        withdrawn = licenses.end_license(
            license=row,
            because=LicenseEnd.REVOKED,
            by=None,
            now=timezone.now(),
            returns_traces=options["return_traces"],
        )
        self.stdout.write(str(withdrawn))

    def _route(self, project: Project, options: dict[str, Any]) -> None:
        if len(options["machines"]) != 2:
            raise CommandError("Name two machines with --machine.")
        first, second = (_find_machine(project, name) for name in options["machines"])
        route = routes.open_route(
            first=first,
            second=second,
            strata=routes.build_pair_strata(first, second),
            promised=options["promised"],
            retest_share=options["retest_share"],
            puts_disagreement_first=not options["keep_acquisition"],
            by=None,
            now=timezone.now(),
        )
        self.stdout.write(json.dumps(routes.describe_route(route), indent=1))

    def _close_route(self, project: Project, options: dict[str, Any]) -> None:
        route = routes.find_open_route(project.pk)
        if route is None:
            raise CommandError("No route is open in this project.")
        returns = options["return_traces"]
        self.stdout.write(str(routes.close_route(route=route, by=None, now=timezone.now(), returns_traces=returns)))

    def _check(self, project: Project, options: dict[str, Any]) -> None:
        now = timezone.now()
        for passport in passports.list_valid(project):
            passports.check_passport(passport=passport, now=now)
        self.stdout.write(str(licenses.apply_licenses(now=now, project_id=project.pk)))

    def _suggest(self, project: Project, options: dict[str, Any]) -> None:
        now = timezone.now()
        if not options["off"]:
            suggestions.start_suggestions(
                project=project,
                machine=_find_machine(project, options["machine"]),
                reveal_share=options["reveal_share"],
                suggest_share=options["suggest_share"],
                by=None,
                now=now,
            )
        elif plan := suggestions.find_plan(project.pk):
            suggestions.stop_suggestions(plan=plan, because=SuggestionEnd.LEAD, by=None, now=now)

    def _effects(self, project: Project, options: dict[str, Any]) -> None:
        plan = suggestions.find_plan(project.pk, options["plan"])
        if plan is None:
            raise CommandError("This project has no such suggestions.")
        self.stdout.write(json.dumps(suggestion_effects.describe_effects(plan), indent=1))

    def _results(self, project: Project, options: dict[str, Any]) -> None:
        lines = (json.dumps(row) + "\n" for row in _describe_results(project))
        if options["out"] is None:
            sys.stdout.writelines(lines)
            return
        with Path(options["out"]).open("w", encoding="utf-8") as file:
            file.writelines(lines)


def _find_machine(project: Project, name: str) -> Rater:
    rows = list(Rater.objects.filter(project=project, kind=RaterKind.MACHINE, machine__startswith=name)[:2])
    if len(rows) != 1:
        raise CommandError(f"{'No' if not rows else 'More than one'} machine rater has a name that begins so.")
    return rows[0]


def _describe_machine(rater: Rater) -> dict[str, Any]:
    passport = rater.passports.order_by("-issued_at", "-pk").first()
    return {
        "machine": rater.machine,
        "passport": passport and {"issued_at": passport.issued_at, "expired_because": passport.expired_because},
        "licenses": list(rater.licenses.order_by("pk").values("id", "may_settle", "promised", "ended_because")),
    }


def _describe_results(project: Project) -> Iterator[dict[str, Any]]:
    agreeing = licenses.name_agreeing_machines(project.pk)
    for row in licenses.list_results(project.pk).iterator():
        yield {
            "trace": row.trace_id,
            "digest": row.trace.digest,
            "ref": row.trace.ref,
            "first_error": row.settled_first_error,
            "machine": row.rater.machine,
            "agreeing_machine": agreeing.get(row.license, ""),
            "license": row.license,
            "role": row.role,
            "n_people": row.n_people,
            "retest_probability": row.retest_probability,
        }
