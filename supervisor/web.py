"""Runs the web server of one machine: gunicorn, as its command line would."""

import sys
from importlib import import_module
from urllib.parse import urlsplit
from wsgiref.util import setup_testing_defaults

_WARM_UP_PAGES = ("/health/ready", "/accounts/login/")


def load_web_server() -> None:
    """What gunicorn would import by itself, later and for each process anew. The application is not among it: it looks
    at its static files when it is made, and those are collected first."""
    for name in ("gunicorn.app.wsgiapp", "gunicorn.arbiter", "gunicorn.workers.gthread"):
        import_module(name)


def warm_up() -> None:
    """Answer two pages to nobody. What comes into being with a first request is then shared too: the web server holds a
    third less for itself, and nobody waits for it. No connection outlives a fork."""
    from django.db import connections

    for page in _WARM_UP_PAGES:
        _request_page(page)
    connections.close_all()


def _request_page(page: str) -> None:
    from django.conf import settings

    origin = urlsplit(settings.ORIGIN)
    asked = {
        "PATH_INFO": page,
        "HTTP_HOST": origin.netloc,
        "wsgi.url_scheme": origin.scheme,
        "REMOTE_ADDR": "127.0.0.1",
    }
    setup_testing_defaults(asked)
    answer = import_module("config.wsgi").application(asked, lambda *_: None)
    answer.close()


def run_web_server(port: int) -> int:
    sys.argv = ["gunicorn", "--config", "config/gunicorn.py", "--bind", f"127.0.0.1:{port}", "config.wsgi"]
    import_module("gunicorn.app.wsgiapp").run()
    return 0
