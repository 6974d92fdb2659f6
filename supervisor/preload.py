"""Load the application once, prepare the platform, and fork the web server and the worker from it.

The two share the memory that they do not change, and a restart takes no import time.
Usage: `python -m supervisor.preload PORT [--demo]`.
"""

import contextlib
import gc
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from wsgiref.util import setup_testing_defaults

import django
from celery import bootsteps
from celery.platforms import SecurityWarning
from celery.signals import task_postrun
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from config.celery import app
from host import processes
from jobs.scheduler import QuietScheduler
from supervisor import children, prepare
from supervisor.children import SupervisedChild
from supervisor.fork import fork_process
from supervisor.web_server import WebServer

# What gunicorn and Celery would import after the fork, into pages that they do not share.
_LATER_IMPORTS = (
    "config.web_worker",
    *("celery.app.control", "celery.app.log", "celery.apps.worker", "celery.concurrency.thread", "celery.events"),
    *("celery.worker.autoscale", "celery.worker.components", "celery.worker.consumer", "celery.worker.loops"),
    *("celery.worker.pidbox", "celery.worker.request", "billiard.pool", "kombu.asynchronous.hub"),
    *("kombu.transport.redis", "numpy.ma"),
)
_STARTED_AT = time.time()
_MAX_COMPILED = 50  # modules; to compile fewer leaves hardly any holes


def main(arguments: list[str]) -> int:
    children.install_stop_handlers()
    processes.set_process_name("stepmark-parent")
    port, with_demo = int(arguments[0]), "--demo" in arguments
    started: list[SupervisedChild] = []
    try:
        load_application()
        _start_again_after_compiling()
        if problem := _run_preparation(with_demo=with_demo):
            print(problem, file=sys.stderr)
            return children.EXIT_CANNOT_START
        _warm_up()
        _freeze_heap()
        started += WebServer(port).list_children(_log_path("web"))
        started.append(SupervisedChild("worker", partial(fork_process, "worker", run_worker), _log_path("worker")))
        for child in started:
            child.start()
        children.watch_forever(started, once_settled=processes.page_out_files)
    except ImproperlyConfigured as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return children.EXIT_CANNOT_START
    except children.StopRequested:
        pass
    finally:
        children.stop_children(started)
    return 0


def load_application() -> None:
    """Import everything that web server and worker need. Open no connection and start no thread before the fork.

    The WSGI application is left out: it reads its static files, which are collected first.
    """
    django.setup()
    for name in _LATER_IMPORTS:
        import_module(name)
    app.loader.import_default_modules()
    app.finalize()


def _start_again_after_compiling() -> None:
    """Replace this process if it has just compiled many of its imports, of packages or of Stepmark after an update,
    which leaves ten megabytes of holes in its memory."""
    files = [getattr(module, "__cached__", None) for module in tuple(sys.modules.values())]
    n_compiled = sum(_was_just_written(Path(file)) for file in files if file)
    if n_compiled > _MAX_COMPILED:
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 (our own command line)


def _was_just_written(file: Path) -> bool:
    with contextlib.suppress(OSError):
        return _STARTED_AT < file.stat().st_mtime <= time.time()  # a time in the future says nothing
    return False


def _freeze_heap() -> None:
    """Exclude all current objects from garbage collection, which would copy their shared pages. Return the free memory
    between them to the system."""
    gc.collect()
    gc.freeze()
    processes.return_free_memory()


def _run_preparation(*, with_demo: bool) -> str:
    """Prepare the platform in a process of its own. Return the error, or an empty string."""
    log = _log_path("prepare")
    with log.open("wb") as output:
        code = fork_process(
            "prepare", partial(prepare.prepare_platform, with_demo=with_demo), output=output.fileno()
        ).wait()
    return children.last_log_line(log) if code else ""


def _warm_up() -> None:
    """Render two pages, so that the forked processes share the objects that a first request creates.

    This saves the web server a third of its own memory. Connections are closed before the fork.
    """
    origin = urlsplit(settings.ORIGIN)
    for page in ("/health/ready", "/accounts/login/"):
        environ = {
            "PATH_INFO": page,
            "HTTP_HOST": origin.netloc,
            "wsgi.url_scheme": origin.scheme,
            "REMOTE_ADDR": "127.0.0.1",
        }
        setup_testing_defaults(environ)
        import_module("config.wsgi").application(environ, lambda *_: None).close()
    connections.close_all()


def run_worker() -> int:
    """Run the Celery worker with threads in one process. An interrupted job resumes at its last chunk."""
    from jobs import runner  # needs the app registry
    from rawsql import statement_limits

    statement_limits.limit_idle_connections()
    os.environ["CELERY_SKIP_CHECKS"] = "1"  # the preparation ran Django's checks
    warnings.simplefilter("ignore", SecurityWarning)  # a container runs as its own root
    app.conf.worker_enable_remote_control = False  # no one sends commands to this worker
    app.steps["consumer"].add(WithoutBindingTimer)
    task_postrun.connect(_MemoryReturn().look, weak=False)
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


class _MemoryReturn:
    """Returns memory to the system after tasks that needed much time, and probably much memory."""

    AFTER_SECONDS = 0.5  # of processor time

    def __init__(self) -> None:
        self._returned_at = 0.0

    def look(self, **_: Any) -> None:
        if time.process_time() - self._returned_at >= self.AFTER_SECONDS:
            processes.return_free_memory()
            self._returned_at = time.process_time()


class WithoutBindingTimer(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
    """Stop a timer of the broker's connection that wakes the worker every second, for queues of remote control."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def register_with_event_loop(self, consumer: Any, _hub: Any) -> None:
        timer = getattr(consumer.connection.transport.cycle, "_binding_expiry_tref", None)
        if timer is not None:
            timer.cancel()


@contextlib.contextmanager
def _running_beat() -> Iterator[None]:
    """Run the beat beside the worker. If the beat ends, the worker ends: without it, nothing would be swept."""
    stop_requested = threading.Event()
    scheduler = QuietScheduler(app, schedule_filename=str(settings.DATA_DIR / "beat-schedule"))

    def beat() -> None:
        try:
            # Celery's own loop wakes every second to find out whether it should stop.
            while not stop_requested.wait(scheduler.tick()):
                if scheduler.should_sync():
                    scheduler._do_sync()
        finally:
            scheduler.close()  # saves when each task was last sent
            if not stop_requested.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=beat, name="beat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop_requested.set()
        thread.join()


def _log_path(name: str) -> Path:
    return Path(os.environ["STEPMARK_DATA"]) / "logs" / f"{name}.log"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
