"""Fill the database of `bench.live_options`: `python -m bench.live_options_fill ADDRESS PROBLEMS` prints a session."""

import datetime as dt
import json
import os
import sys

SLUG = "bench"


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    client = Client()
    client.force_login(_rater(sys.argv[1], int(sys.argv[2])))
    print(json.dumps({"session": client.cookies["sessionid"].value}))


def _rater(address: str, problems: int):  # type: ignore[no-untyped-def]  # models can be imported only after setup
    """Make a rater with two policies: the first one prefetches and is open, the second one does not prefetch."""
    from live import policies
    from people.models import Membership
    from tests import factories
    from tests.live import live_project

    project = live_project.make_live_project(problems, slug=SLUG, reserve_problem_share=0)
    live_project.make_policy(project, address, n_options=4, timeout=30.0)
    settings = live_project.make_settings(address, n_options=4, timeout=30.0, n_prefetched=0)
    second = policies.add_policy(project=project, settings=settings, by=None, now=factories.NOW)
    policies.mark_tried(policy=second, now=factories.NOW)
    user = factories.make_user("rater")
    factories.make_rater(project, user)
    Membership.objects.create(project=project, user=user, role="annotator", joined_at=dt.datetime.now(dt.UTC))
    return user


if __name__ == "__main__":
    main()
