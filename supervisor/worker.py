"""Runs the worker of one machine, and the beat in a thread of it: a schedule needs no process of its own.

The same as Celery's command line, without its interactive shell.
"""

import contextlib
import os
import signal
import threading
import warnings
from collections.abc import Iterator

from celery.beat import Service
from celery.platforms import SecurityWarning
from django.conf import settings

from config.celery import app


def load_worker() -> None:
    app.loader.import_default_modules()
    app.finalize()


def run_worker() -> int:
    """Threads cost one process; a job that is cut off resumes at its last chunk, whatever cut it off."""
    from jobs import runner  # its models want the rooms to be there

    os.environ["CELERY_SKIP_CHECKS"] = "1"  # Django's: the preparation has run them
    warnings.simplefilter("ignore", SecurityWarning)  # a container's root is who runs it there
    worker = app.Worker(
        pool="threads",
        concurrency=runner.MAX_PARALLEL_JOBS + 1,  # short news must get through beside long jobs, which mostly wait
        loglevel="INFO",
        quiet=True,
        without_gossip=True,  # there is one worker: nobody to gossip with
        without_mingle=True,
        without_heartbeat=True,
    )
    with _running_beat():
        worker.start()
    return int(worker.exitcode or 0)


@contextlib.contextmanager
def _running_beat() -> Iterator[None]:
    """Without a beat nothing would be swept, and nobody would see it: whatever ends it ends the worker."""
    service, is_over = Service(app, max_interval=1, schedule_filename=str(settings.DATA_DIR / "beat-schedule")), False

    def beat() -> None:
        try:
            service.start()
        finally:
            if not is_over:
                os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=beat, name="beat", daemon=True).start()
    try:
        yield
    finally:
        is_over = True
        service.stop(wait=True)  # it writes down what it sent last
