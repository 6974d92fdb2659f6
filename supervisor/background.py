"""Runs the worker or the beat of one machine: `python -m supervisor.background worker|beat`.

The same as Celery's command line, without its interactive shell: a fifth less memory in each of the two.
"""

import sys
import warnings

import django
from celery.platforms import SecurityWarning
from django.conf import settings

from config.celery import app


def work() -> int:
    """Threads cost one process; a job that is cut off resumes at its last chunk, whatever cut it off."""
    django.setup()
    from jobs import runner  # its models want the rooms to be there

    worker = app.Worker(
        pool="threads",
        concurrency=runner.AT_ONCE + 1,  # short news must get through beside long jobs, which mostly wait
        loglevel="INFO",
        quiet=True,
        without_gossip=True,  # there is one worker: nobody to gossip with
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


def beat() -> int:
    app.Beat(schedule=str(settings.DATA_DIR / "beat-schedule"), loglevel="INFO", quiet=True).run()
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore", SecurityWarning)  # a container's root is who runs it there
    sys.exit({"worker": work, "beat": beat}[sys.argv[1]]())
