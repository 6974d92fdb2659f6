"""An object store that speaks the real protocol."""

import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from moto.server import ThreadedMotoServer
    from obstore.store import from_url

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    address = f"http://127.0.0.1:{port}"
    told = {"ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "ENDPOINT_URL": address, "REGION": "us-east-1"}
    for name, value in {**told, "ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    urllib.request.urlopen(urllib.request.Request(f"{address}/sets", method="PUT"), timeout=10).close()
    yield from_url("s3://sets")
    server.stop()
