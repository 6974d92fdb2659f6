"""Prepare the database, the static files and, on the first start, the demo. `./run` shows what this prints."""

import hashlib
import sys
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


def prepare_platform(*, with_demo: bool) -> None:
    from django.core.management import call_command

    _check_broker()
    call_command("migrate", interactive=False, verbosity=0)
    collect_static_files()
    _print_first_links(with_demo=with_demo)


def collect_static_files() -> bool:
    """Collect static files if any changed since the last time. Return whether they did."""
    from django.core.management import call_command

    stamp = Path(settings.STATIC_ROOT).with_suffix(".stamp")
    digest = _digest_of_static_files()
    if stamp.exists() and stamp.read_text() == digest:
        return False
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(digest)
    return True


def _digest_of_static_files() -> str:
    from django.contrib.staticfiles.finders import get_finders

    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in finder.list([]):
            state = Path(storage.path(path)).stat()
            digest.update(f"{path} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _check_broker() -> None:
    import redis

    try:
        redis.from_url(settings.REDIS_URL).ping()
    except redis.RedisError as error:
        raise ImproperlyConfigured(f"The broker at {settings.REDIS_URL} does not answer: {error}") from error


def _print_first_links(*, with_demo: bool) -> None:
    """Print login links for the demo accounts on the first start, or the command that makes a link."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    manage = f"{Path(sys.executable)} {settings.BASE_DIR / 'manage.py'} --data {settings.DATA_DIR}"
    is_empty = not get_user_model()._default_manager.exists()
    if with_demo and (is_empty or _demo_marker().exists()):
        _demo_marker().touch()
        call_command("make_demo")
        _demo_marker().unlink()
    elif is_empty:
        print(f"Create the first account: {manage} make_owner USER")
    else:
        print(f"Create a login link: {manage} login_link USER")


def _demo_marker() -> Path:
    """Return the marker file that exists while the demo is made, so that an interrupted start is repeated."""
    return Path(settings.DATA_DIR) / "demo_unfinished"


def main(*, with_demo: bool) -> int:
    from django.db import DatabaseError

    try:
        prepare_platform(with_demo=with_demo)
    except (ImproperlyConfigured, DatabaseError, OSError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0
