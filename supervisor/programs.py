"""Define the programs that run on one machine, and their environment."""

import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from supervisor import broker, child, database, install, paths
from supervisor.child import SupervisedChild


def build_environment(folder: Path, *, url: str, given: Mapping[str, str]) -> dict[str, str]:
    """Build the environment: the user's variables win, except for the data folder and internal ones."""
    return {
        "STEPMARK_ORIGIN": url.rstrip("/"),
        "MALLOC_ARENA_MAX": "2",  # a third less memory with threads
        **given,
        "STEPMARK_DATA": str(folder),
        "STEPMARK_SUPERVISOR": str(os.getpid()),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONPATH": str(paths.BASE),
        "PYTHONUNBUFFERED": "1",
    }


def broker_child(folder: Path, env: Mapping[str, str]) -> SupervisedChild | None:
    """Return the embedded broker, unless REDIS_URL names another one."""
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
    """Return the process that loads the application and forks the web server and the worker."""
    command = [str(install.PYTHON), "-m", "supervisor.preload", str(port), *(["--demo"] if with_demo else [])]
    return SupervisedChild(
        "preload", partial(child.start_guarded, command, env=env, speaks=True), folder / "logs" / "preload.log"
    )


def read_greeting(folder: Path) -> str:
    """Return what the preparation printed for the user."""
    return (folder / "logs" / "prepare.log").read_text(errors="replace").strip()
