"""The programs of the platform on one machine, and the environment that they share."""

import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from supervisor import broker, child, database, install, paths
from supervisor.child import SupervisedChild


def build_environment(folder: Path, *, url: str, given: Mapping[str, str]) -> dict[str, str]:
    """What the person set stays; the data folder and where the platform stands are ours to say."""
    return {
        "STEPMARK_ORIGIN": url.rstrip("/"),
        "MALLOC_ARENA_MAX": "2",  # threads share their memory: a third less of it
        **given,
        "STEPMARK_DATA": str(folder),
        "STEPMARK_SUPERVISOR": str(os.getpid()),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONPATH": str(paths.BASE),
        "PYTHONUNBUFFERED": "1",
    }


def broker_child(folder: Path, env: Mapping[str, str]) -> SupervisedChild | None:
    """A broker of our own, unless REDIS_URL names one."""
    if env.get("REDIS_URL") or env.get("REDIS_URL_FILE"):
        return None
    return SupervisedChild(
        "valkey", partial(child.start_guarded, broker.broker_command(folder), env=env), folder / "logs" / "valkey.log"
    )


def embedded_database(folder: Path, env: Mapping[str, str]) -> SupervisedChild | None:
    """Return the embedded PostgreSQL, unless DATABASE_URL names another one. SIGINT makes it shut down fast."""
    if env.get("DATABASE_URL") or env.get("DATABASE_URL_FILE"):
        return None
    begin = partial(database.start, folder, env=env)
    return SupervisedChild("postgresql", begin, folder / "logs" / "postgresql.log", stops_by=signal.SIGINT)


def platform_child(folder: Path, port: int, env: Mapping[str, str], *, with_demo: bool) -> SupervisedChild:
    """Everything of ours, in the processes that `trunk` branches into. It says itself what becomes of them."""
    command = [str(install.PYTHON), "-m", "supervisor.preload", str(port), *(["--demo"] if with_demo else [])]
    return SupervisedChild(
        "trunk", partial(child.start_guarded, command, env=env, speaks=True), folder / "logs" / "trunk.log"
    )


def read_greeting(folder: Path) -> str:
    """What the preparation had to say to the person."""
    return (folder / "logs" / "prepare.log").read_text(errors="replace").strip()
