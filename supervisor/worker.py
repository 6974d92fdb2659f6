"""Run the Celery worker of one machine, with the beat in a thread of it."""

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
    """Run the worker with threads in one process. An interrupted job resumes at its last chunk."""
    from jobs import runner  # needs the app registry

    os.environ["CELERY_SKIP_CHECKS"] = "1"  # the preparation ran Django's checks
    warnings.simplefilter("ignore", SecurityWarning)  # a container runs as its own root
    worker = app.Worker(
        pool="threads",
        concurrency=runner.MAX_PARALLEL_JOBS + 1,  # leaves a thread for short messages
        loglevel="INFO",
        quiet=True,
        without_gossip=True,  # there is only one worker
        without_mingle=True,
        without_heartbeat=True,
    )
    with _running_beat():
        worker.start()
    return int(worker.exitcode or 0)


@contextlib.contextmanager
def _running_beat() -> Iterator[None]:
    """Run the beat beside the worker. If the beat ends, the worker ends: without it, nothing would be swept."""
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
        service.stop(wait=True)  # saves when each task was last sent
