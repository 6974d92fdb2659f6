"""The web server is killed while a model writes the next options: ratings, drafts and choices that were confirmed are
stored, and the options arrive after the restart, with the same seed."""

import random
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from live.models import LiveOption, LiveTurn, OptionRequest
from tests import factories, servers
from tests.faults import platforms
from tests.faults.http_raters import HttpBrowser
from tests.live import live_project
from tests.live.step_servers import StepServer, running_steps

SLUG = "live-sums"


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.django_db(transaction=True)
def test_killed_web_server_loses_nothing_of_a_session(tmp_path: Path) -> None:
    server, chance = StepServer(), random.Random(7)
    with running_steps(server) as address, platforms.running_platform(tmp_path, platforms.ManyMachines) as platform:
        with transaction.atomic():
            project = live_project.make_live_project(slug=SLUG, reserve_problem_share=0)
            user = factories.make_user()
            rater = factories.make_rater(project, user)
            live_project.make_policy(project, address, n_prefetched=0)
            session = live_project.begin(rater)
        browser = HttpBrowser(platform.url, user, lambda: True)

        def send(verb: str, **message: Any) -> dict[str, Any]:
            answer = browser.send(f"/live/sessions/{session.pk}/{verb}", message)
            assert answer is not None
            assert answer[0] == 200, answer
            return answer[1]

        send("record", position=0)  # makes the server ask
        servers.wait_until(lambda: LiveOption.objects.count() == 3, what="the first options")
        LiveTurn.objects.update(shown=[0, 1, 2])  # as if the page had fetched them
        server.seconds_per_batch = 3.0
        ratings = [{"index": index, "rating": 1} for index in range(3)]
        assert send("choose", position=0, index=1, ratings=ratings)["state"] == "waiting"
        servers.wait_until(lambda: len(server.requests) == 2, what="the second request")
        platform.kill("web", chance)
        send("record", position=1, draft="Typed before the options came.")
        server.seconds_per_batch = 0.0
        servers.wait_until(lambda: bool(send("record", position=1)) and LiveOption.objects.count() == 6, what="options")
        first, second = LiveTurn.objects.order_by("position")
        assert (first.chosen is not None and first.chosen.index, second.draft) == (1, "Typed before the options came.")
        assert OptionRequest.objects.latest("position").n_tries == 2
        assert len({(body["prompt"], body["seed"]) for body in server.requests}) == 2
