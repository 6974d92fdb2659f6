"""`manage.py erase_person USER [--yes]`: erase the personal data of a user."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from people.members import LastOwner
from privacy import erasure


class Command(BaseCommand):
    help = "Erase the name, addresses and texts of a user. Their labels stay under a pseudonym. This cannot be undone."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="username, email address, or number of the account")
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")

    def handle(self, *args: Any, user: str, yes: bool, **options: Any) -> None:
        person = _find_person(user)
        if not yes and input(_("Type the username to erase this person: ")) != person.username:
            raise CommandError(_("The username does not match. Nothing was erased."))
        try:
            erased = erasure.erase_person(user=person, by=None, now=timezone.now())
        except LastOwner as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            _("Person erased. The account is now known only by its number, %(number)d.") % {"number": person.pk}
        )
        for snapshot in erased.rebuilt_snapshots:
            self.stdout.write(
                _("Snapshot %(name)s is being rewritten to remove this person’s text.") % {"name": snapshot}
            )
        for mention in erased.mentions:
            message = _(
                "%(rows)d rows of %(table)s.%(column)s still contain a name like this person’s. Check these rows."
            )
            self.stdout.write(message % {"rows": mention.n_rows, "table": mention.table, "column": mention.column})


def _find_person(name: str) -> User:
    is_named = Q(username=name) | ~Q(email="") & Q(email__iexact=name)
    if name.isdecimal():
        is_named |= Q(pk=int(name))
    user = User.objects.filter(is_named, erased_at=None).first()
    if user is None:
        raise CommandError(
            _("There is no user %(name)s. Enter a username, an email address, or an account number.") % {"name": name}
        )
    return user
