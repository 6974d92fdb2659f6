"""Fill the database of `bench.scoring_job`: `python -m bench.scoring_fill TRACES RATERS`. All traces have steps; the
current PRM is builtin and has scored none of them. Prints the sessions of the raters and of a lead."""

import datetime as dt
import json
import os
import sys
from typing import Any


def main() -> None:
    traces, raters = int(sys.argv[1]), int(sys.argv[2])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from bench import submission_fill

    call_command("migrate", verbosity=0)
    project = submission_fill.make_project()
    submission_fill.make_traces(project, traces, reached=traces)
    _make_current_prm(project)
    sessions = [submission_fill.create_session(project, number) for number in range(raters)]
    lead = submission_fill.create_session(project, raters, role="lead")
    submission_fill.analyze_tables()
    print(json.dumps({"sessions": sessions, "lead": [lead]}))


def _make_current_prm(project: Any) -> None:
    import numpy as np

    from bench import scoring
    from prm import registry
    from prm.backends import builtin
    from prm.registry import PRMIdentity

    some = list(scoring.make_traces(200))
    wrong = np.random.default_rng(0).random(sum(len(trace.steps) for trace in some)) < 0.2
    weights = builtin.train_scorer(builtin.extract_features(some), wrong).to_bytes()
    now, identity = dt.datetime.now(dt.UTC), PRMIdentity("builtin", builtin.NAME, weights=weights)
    prm = registry.register_prm(project=project, identity=identity, by=None, now=now)
    registry.make_current(prm=prm, by=None, now=now)


if __name__ == "__main__":
    main()
