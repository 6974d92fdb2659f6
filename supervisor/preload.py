"""Loads the application once, prepares what it stands on, and lets the web server and the worker branch off: what they
do not change they share, and one that died is back at once. `python -m supervisor.preload PORT [--demo]`.
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
    process_names.set_process_name("stepmark-trunk")
    port, with_demo = int(arguments[0]), "--demo" in arguments
    started: list[SupervisedChild] = []
    try:
        load_application()
        if trouble := _run_preparation(with_demo=with_demo):
            print(trouble, file=sys.stderr)
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
    """All that either of them would import. Nothing is connected to and no thread begins: neither outlives a fork."""
    django.setup()
    web.load_web_server()
    worker.load_worker()


def _freeze_heap() -> None:
    """What is here now stays: no collection looks at it again, which would make pages of it each process's own."""
    gc.collect()
    gc.freeze()


def _run_preparation(*, with_demo: bool) -> str:
    """In a process of its own, whose connections and leftovers go with it. Says what went wrong."""
    log = _log_path("prepare")
    with log.open("wb") as output:
        code = fork_process("prepare", partial(prepare.main, with_demo=with_demo), output=output.fileno()).wait()
    return child.last_log_line(log) if code else ""


def _log_path(name: str) -> Path:
    return Path(os.environ["STEPMARK_DATA"]) / "logs" / f"{name}.log"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
