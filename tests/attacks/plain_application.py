"""A WSGI application for tests of the web server: it shows which thread answers and refuses what it does not read."""

import threading
from collections.abc import Iterable
from typing import Any


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    path, status = environ["PATH_INFO"], "200 OK"
    if path == "/read":
        content = str(len(environ["wsgi.input"].read())).encode()
    elif path == "/refuse":
        status, content = "413 Content Too Large", b"refused"
    elif path.startswith("/size/"):
        content = b"x" * int(path.removeprefix("/size/"))
    else:
        content = b"ok"
    thread = threading.current_thread().name.partition("_")[0]
    start_response(status, [("Content-Length", str(len(content))), ("Thread-Pool", thread)])
    return [content]
