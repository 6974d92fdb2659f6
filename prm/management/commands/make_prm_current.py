"""Make a PRM current by a person's decision, with or against the gate."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.models import User
from prm import promotion
from prm.models import PRM


class Command(BaseCommand):
    help = (
        "Promote a version of a project's PRM, so that it becomes the current one. If the gate rejected the"
        " version or never evaluated it, a reason is required and recorded."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, help="the project's slug, as in its links")
        parser.add_argument("--prm", type=int, required=True, metavar="VERSION")
        parser.add_argument("--confirm", action="store_true", help="promote the version even if the gate was undecided")
        parser.add_argument(
            "--reason", default="", help="why to promote a version that is unevaluated, unreachable or rejected"
        )
        parser.add_argument("--by", help="username of the person making the decision")

    def handle(self, *args: Any, **options: Any) -> None:
        prm = PRM.objects.filter(project__slug=options["project"], version=options["prm"]).first()
        if prm is None:
            raise CommandError(f"There is no PRM version {options['prm']} in a project {options['project']!r}.")
        by = User.objects.filter(username=options["by"]).first()
        if options["by"] and by is None:
            raise CommandError(f"There is no user {options['by']!r}.")
        is_confirmed = options["confirm"] or bool(options["reason"])
        try:
            promotion.promote_prm(
                prm=prm, by=by, now=timezone.now(), is_confirmed=is_confirmed, reason=options["reason"]
            )
        except promotion.PromotionRefused as error:
            needed = "--reason" if promotion.needs_reason(error.concerns) else "--confirm"
            raise CommandError(f"PRM {prm.version} is {', '.join(error.concerns)}. Add {needed}.") from error
        self.stdout.write(f"PRM {prm.version} is now current.")
