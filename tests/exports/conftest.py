import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, settings: Any) -> Path:
    settings.DATA_DIR = tmp_path / "data"
    return tmp_path / "data"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A bucket of a local server with the S3 protocol."""
    from moto.server import ThreadedMotoServer
    from obstore.store import from_url

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    address = f"http://127.0.0.1:{port}"
    environment = {"ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "ENDPOINT_URL": address, "REGION": "us-east-1"}
    for name, value in {**environment, "ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    urllib.request.urlopen(urllib.request.Request(f"{address}/sets", method="PUT"), timeout=10).close()
    yield from_url("s3://sets")
    server.stop()
