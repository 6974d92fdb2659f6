"""Configure the web server: `gunicorn --config config/gunicorn.py config.wsgi`."""

import os
import resource
from typing import Any

from config import env
from config.logs import WithoutAddress
from host import processes

worker_class = "config.web_worker.BufferedWorker"
workers = env.read_int("STEPMARK_WEB_WORKERS", default=1, least=1)
# The master loads the application: its workers share memory, and a restart takes no import time.
preload_app = True
threads = env.read_int("STEPMARK_WEB_THREADS", default=8, least=1)
# An idle connection is cheap; a new one costs a rater a round trip.
keepalive = 30
# Each takes a file descriptor. When they run short, the connection that has been idle longest is closed.
worker_connections = min(2000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)
limit_request_line = 8190
limit_request_fields = 60
graceful_timeout = 8
timeout = 60
control_socket_disable = True
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108 (a heartbeat must not wait for a disk)
loglevel = "info"
umask = 0o077  # uploads and logs are for this user only
MASTER_LOOK_SECONDS = 10.0  # at workers that hang; the death of one is noticed at once
_LEAST_KEY_LENGTH, _LEAST_KEY_CHARACTERS = 32, 10


def on_starting(server: Any) -> None:
    """Refuse to serve an https origin with a secret key that can be guessed, and keep addresses out of the log."""
    key = env.read_text("SECRET_KEY", "")
    is_weak = len(key) < _LEAST_KEY_LENGTH or len(set(key)) < _LEAST_KEY_CHARACTERS
    if key and is_weak and env.read_text("STEPMARK_ORIGIN", "").startswith("https://"):
        raise SystemExit(
            "SECRET_KEY can be guessed. Use 50 random characters, such as those that `make secrets` prints."
        )
    server.log.error_log.addFilter(WithoutAddress())
    wait = server.wait_for_signals
    server.wait_for_signals = lambda timeout: wait(timeout=MASTER_LOOK_SECONDS)


def post_fork(server: Any, worker: Any) -> None:
    """End a worker with its master, or it would hold the port. Limit its statements."""
    from rawsql import statement_limits  # needs Django's settings, which the application has loaded

    processes.die_with_parent(server.pid)
    statement_limits.limit_web_statements()
