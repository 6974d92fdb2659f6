"""Prepare the database, the static files and, on the first start, the demo. `./run` shows what this prints."""

import fcntl
import hashlib
import sys
from pathlib import Path

import redis
from celery import current_app
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.staticfiles.finders import get_finders
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, connection

from supervisor import first_migration


def prepare_platform(*, with_demo: bool) -> int:
    """Prepare the platform, and return an exit code."""
    try:
        _check_broker()
        _check_durability()
        _migrate()
        collect_static_files()
        _print_first_links(with_demo=with_demo)
    except (ImproperlyConfigured, DatabaseError, OSError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0


def _migrate() -> None:
    if not connection.introspection.table_names():
        first_migration.install()  # this process ends after the preparation
    call_command("migrate", interactive=False, verbosity=0)


def collect_static_files() -> bool:
    """Collect static files if any changed since the last time. Return whether they did.

    Two platforms of one checkout share the files, and may start at the same moment.
    """
    root = Path(settings.STATIC_ROOT)
    root.parent.mkdir(parents=True, exist_ok=True)
    with root.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, digest = root.with_suffix(".stamp"), _digest_of_static_files()
        if stamp.exists() and stamp.read_text() == digest:
            return False
        call_command("collectstatic", interactive=False, verbosity=0, clear=True)
        stamp.write_text(digest)
    return True


def _digest_of_static_files() -> str:
    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in finder.list([]):
            state = Path(storage.path(path)).stat()
            digest.update(f"{path} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _check_broker() -> None:
    try:
        redis.from_url(settings.REDIS_URL).ping()
    except redis.RedisError as error:
        raise ImproperlyConfigured(f"The broker at {settings.REDIS_URL} does not answer: {error}") from error


def _check_durability() -> None:
    from events import durability  # needs the app registry

    if danger := durability.describe_danger():
        raise ImproperlyConfigured(danger)


def _do_due_work() -> None:
    """Do what the worker would do first. It would keep the memory that this needs; this process ends."""
    from jobs import scheduler  # needs the app registry

    current_app.conf.task_always_eager = True  # also for the tasks that these tasks request
    for task in scheduler.list_tasks_with_work():
        current_app.tasks[task].apply()


def _print_first_links(*, with_demo: bool) -> None:
    """Print login links for the demo accounts on the first start, or the command that makes a link."""
    manage = f"{Path(sys.executable)} {settings.BASE_DIR / 'manage.py'} --data {settings.DATA_DIR}"
    is_empty = not get_user_model()._default_manager.exists()
    marker = Path(settings.DATA_DIR) / "demo_unfinished"  # so that an interrupted start is repeated
    if with_demo and (is_empty or marker.exists()):
        marker.touch()
        call_command("make_demo")
        marker.unlink()
        _do_due_work()
    elif is_empty:
        print(f"Create the first account: {manage} make_owner USER")
    else:
        print(f"Create a login link: {manage} login_link USER")
