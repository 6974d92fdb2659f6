"""Loads the application once, prepares what it stands on, and lets the web server and the worker branch off: what they
do not change they share, and one that died is back at once. `python -m supervisor.trunk PORT [--demo]`.
"""

import gc
import os
import sys
from functools import partial
from pathlib import Path

import django
from django.core.exceptions import ImproperlyConfigured

from machine import names
from supervisor import background, child, keeping, prepare, web
from supervisor.branch import branch
from supervisor.child import Child


def main(arguments: list[str]) -> int:
    keeping.listen_for_the_end()
    names.call_this_process("stepmark-trunk")
    port, with_demo = int(arguments[0]), "--demo" in arguments
    started: list[Child] = []
    try:
        load()
        if trouble := _prepare(with_demo=with_demo):
            print(trouble, file=sys.stderr)
            return child.CANNOT_BEGIN
        web.rehearse()
        _freeze()
        for name, act in (("web", partial(web.serve, port)), ("worker", background.work)):
            started.append(Child(name, partial(branch, name, act), _log(name)))
            started[-1].start()
        keeping.keep(started)
    except ImproperlyConfigured as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return child.CANNOT_BEGIN
    except keeping.Told:
        pass
    finally:
        keeping.stop(started)
    return 0


def load() -> None:
    """All that either of them would import. Nothing is connected to and no thread begins: neither outlives a fork."""
    django.setup()
    web.load()
    background.load()


def _freeze() -> None:
    """What is here now stays: no collection looks at it again, which would make pages of it each process's own."""
    gc.collect()
    gc.freeze()


def _prepare(*, with_demo: bool) -> str:
    """In a process of its own, whose connections and leftovers go with it. Says what went wrong."""
    log = _log("prepare")
    with log.open("wb") as output:
        code = branch("prepare", partial(prepare.main, with_demo=with_demo), output=output.fileno()).wait()
    return child.last_line(log) if code else ""


def _log(name: str) -> Path:
    return Path(os.environ["STEPMARK_DATA"]) / "logs" / f"{name}.log"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
