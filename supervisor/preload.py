"""Load the application once, prepare the platform, and fork the web server and the worker from it.

The two share the memory that they do not change, and a restart takes no import time.
Usage: `python -m supervisor.preload PORT [--demo]`.
"""

import gc
import os
import sys
from functools import partial
from pathlib import Path

import django
from django.core.exceptions import ImproperlyConfigured

from host import process_names
from supervisor import child, prepare, watchdog, web, worker
from supervisor.child import SupervisedChild
from supervisor.fork import fork_process


def main(arguments: list[str]) -> int:
    watchdog.install_stop_handlers()
    process_names.set_process_name("stepmark-parent")
    port, with_demo = int(arguments[0]), "--demo" in arguments
    started: list[SupervisedChild] = []
    try:
        load_application()
        if problem := _run_preparation(with_demo=with_demo):
            print(problem, file=sys.stderr)
            return child.EXIT_CANNOT_START
        web.warm_up()
        _freeze_heap()
        for name, act in (("web", partial(web.run_web_server, port)), ("worker", worker.run_worker)):
            started.append(SupervisedChild(name, partial(fork_process, name, act), _log_path(name)))
            started[-1].start()
        watchdog.watch_forever(started)
    except ImproperlyConfigured as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return child.EXIT_CANNOT_START
    except watchdog.StopRequested:
        pass
    finally:
        watchdog.stop_children(started)
    return 0


def load_application() -> None:
    """Import everything that web server and worker need. Open no connection and start no thread before the fork."""
    django.setup()
    web.load_web_server()
    worker.load_worker()


def _freeze_heap() -> None:
    """Exclude all current objects from garbage collection, which would copy their shared pages."""
    gc.collect()
    gc.freeze()


def _run_preparation(*, with_demo: bool) -> str:
    """Prepare the platform in a process of its own. Return the error, or an empty string."""
    log = _log_path("prepare")
    with log.open("wb") as output:
        code = fork_process("prepare", partial(prepare.main, with_demo=with_demo), output=output.fileno()).wait()
    return child.last_log_line(log) if code else ""


def _log_path(name: str) -> Path:
    return Path(os.environ["STEPMARK_DATA"]) / "logs" / f"{name}.log"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
