"""The programs of the platform on one machine, and the environment that they share."""

import os
from collections.abc import Mapping
from pathlib import Path

from supervisor import broker, install, place
from supervisor.child import Child


def environment(folder: Path, *, url: str, given: Mapping[str, str]) -> dict[str, str]:
    """What the person set stays; the data folder and where the platform stands are ours to say."""
    return {
        "STEPMARK_ORIGIN": url.rstrip("/"),
        "MALLOC_ARENA_MAX": "2",  # threads share their memory: a third less of it
        **given,
        "STEPMARK_DATA": str(folder),
        "STEPMARK_SUPERVISOR": str(os.getpid()),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONPATH": str(place.BASE),
        "PYTHONUNBUFFERED": "1",
    }


def embedded_broker(folder: Path, env: Mapping[str, str]) -> Child | None:
    """A broker of our own, unless REDIS_URL names one."""
    if env.get("REDIS_URL") or env.get("REDIS_URL_FILE"):
        return None
    return Child("valkey", broker.command(folder), env, folder / "logs" / "valkey.log")


def platform(folder: Path, port: int, env: Mapping[str, str]) -> list[Child]:
    modules = {
        "web": ["gunicorn", "--config", "config/gunicorn.py", "--bind", f"127.0.0.1:{port}", "config.wsgi"],
        "worker": ["supervisor.background", "worker"],
        "beat": ["supervisor.background", "beat"],
    }
    return [
        Child(name, [str(install.PYTHON), "-m", *module], env, folder / "logs" / f"{name}.log")
        for name, module in modules.items()
    ]
