"""Fill the database of `bench.lit_step` and print a rater's session: `python -m bench.lit_step_fill DATA`."""

import datetime as dt
import io
import json
import os
import random
import sys
from itertools import islice
from pathlib import Path
from typing import Any

KINDS = ("agent", "math", "tall")
MATH_TRACES, TALL_TRACES = 60, 15


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from tests import factories

    call_command("migrate", verbosity=0)
    user = factories.make_user("rater")
    for kind in KINDS:
        for reveals in (False, True):
            _make_project(kind, reveals, user, Path(sys.argv[1]))
    client = Client()
    client.force_login(user)
    print(json.dumps({"session": client.cookies["sessionid"].value}))


def _make_project(kind: str, reveals: bool, user: Any, data: Path) -> None:
    from people.models import Membership
    from tests import factories

    slug = f"{kind}-reveal" if reveals else kind
    project = factories.make_project(slug, protocol="every_step", overlap=1, reveals_one_step_at_a_time=reveals)
    lane = factories.make_lane(project)
    for trace in {"agent": _agent, "math": _math, "tall": _tall}[kind](project, data):
        factories.make_entry(lane, trace)
    factories.make_rater(project, user)
    Membership.objects.create(project=project, user=user, role="annotator", joined_at=dt.datetime.now(dt.UTC))


def _agent(project: Any, data: Path) -> Any:
    """Import real runs of agents, shuffled, so that every screen size gets runs of both kinds."""
    from django.core.management import call_command

    from labeling.models import QueueEntry, Trace

    for name in ("tau_bench_airline.json", *(f"swe_agent_0{n}.traj" for n in (0, 2, 5))):
        call_command("import_traces", data / "agent" / name, project=project.slug, verbosity=0, stderr=io.StringIO())
    QueueEntry.objects.filter(trace__project=project).delete()
    traces = list(Trace.objects.filter(project=project).order_by("pk"))
    random.Random(1).shuffle(traces)
    return traces


def _math(project: Any, data: Path) -> Any:
    from tests import factories

    for record in islice(json.loads((data / "processbench" / "math.json").read_text()), MATH_TRACES):
        problem = factories.make_problem(project, record["problem"])
        yield factories.make_trace(project, record["steps"], problem=problem)


def _tall(project: Any, data: Path) -> Any:
    """Make steps and observations of very different heights, below a long problem and a long policy."""
    from labeling.models import Step
    from tests import factories

    chance = random.Random(2)
    for number in range(TALL_TRACES):
        texts = [
            "\n".join(f"Line {n}, where $x_{{{n}}} = {n}$." for n in range(chance.choice([1, 2, 3, 25, 35, 60, 90])))
            for _ in range(24)
        ]
        texts[0] = "\n".join(f"Rule {n}." for n in range(300))
        problem = factories.make_problem(project, f"Problem {number}. " + "Let $a_1 = 1$ and so on. " * 40)
        trace = factories.make_trace(project, texts, problem=problem)
        steps = Step.objects.filter(trace=trace)
        steps.filter(position=0).update(kind="system", is_rateable=False)
        steps.filter(position__in=range(2, 24, 3)).update(kind="observation", is_rateable=False)
        steps.filter(position__in=range(1, 24, 3)).update(kind="action")
        yield trace


if __name__ == "__main__":
    main()
