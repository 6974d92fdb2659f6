"""Fetches an object from a store into the folder of uploads, in pieces, so that its import reads a file like any other.

How the store is reached (keys, region, another end point) stands in the environment of the worker, under the names that
its own tools read: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_SERVICE_ACCOUNT, AZURE_STORAGE_ACCOUNT_NAME …
"""

import datetime as dt
import hashlib
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

from formats import input_files
from jobs.runner import JobProgress
from labeling.traces import uploads

PIECE_BYTES = 8 * 1024 * 1024
# A store that is away is told within a lease; a large object may take hours.
RETRY_CONFIG: dict[str, Any] = {"max_retries": 2, "retry_timeout": dt.timedelta(seconds=10)}
# The end point is the operator's: whether it speaks TLS is too.
CLIENT_OPTIONS: dict[str, Any] = {
    "allow_http": True,
    "connect_timeout": dt.timedelta(seconds=3),
    "timeout": dt.timedelta(hours=12),
}


def fetch_object(address: str) -> Generator[JobProgress, None, Path]:
    """Signs of life, then the file. What was fetched before, as it lies there now, is not fetched again."""
    found = _get_object(address)
    mark = f"{address}\n{found.meta.get('e_tag')}\n{found.meta['size']}"
    path = uploads.make_upload_path(
        hashlib.sha256(mark.encode()).hexdigest()[:16], address.rstrip("/").rpartition("/")[2]
    )
    if path.exists():
        return path
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    fetched = 0
    try:
        with unfinished.open("wb") as file:
            for piece in _stream_pieces(found, address):
                fetched += file.write(piece)
                yield JobProgress(0, result={"fetched": fetched, "size": found.meta["size"]})
            file.flush()
            os.fsync(file.fileno())
        if fetched > uploads.MAX_UPLOAD_BYTES:
            raise input_files.UnreadableFile(f"{address}: larger than what is taken over the network")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def read_beginning(address: str, *, size: int) -> tuple[bytes, bool]:
    """The first bytes of an object, and whether they are all of it: for a look before it is fetched."""
    store, name = _open_store(address)
    from obstore.exceptions import BaseError

    try:
        whole = int(store.head(name)["size"])
        return bytes(store.get_range(name, start=0, end=min(size, whole))) if whole else b"", whole <= size
    except (BaseError, OSError) as error:
        raise _to_unreadable_file(address, error) from error


def _get_object(address: str) -> Any:
    store, name = _open_store(address)
    from obstore.exceptions import BaseError

    try:
        return store.get(name)
    except (BaseError, OSError) as error:
        raise _to_unreadable_file(address, error) from error


def _open_store(address: str) -> tuple[Any, str]:
    """The bucket as a store, and the name in it."""
    try:
        from obstore import store as stores
    except ImportError as error:
        raise input_files.UnreadableFile("object stores need the extra packages: pip install 'stepmark[s3]'") from error
    scheme, _, rest = address.partition("://")
    bucket, _, name = rest.partition("/")
    try:
        made: Any = stores.from_url
        return made(f"{scheme}://{bucket}", retry_config=RETRY_CONFIG, client_options=CLIENT_OPTIONS), name
    except Exception as error:  # the library raises errors of its own, and plain ones, for what it cannot make sense of
        raise _to_unreadable_file(address, error) from error


def _stream_pieces(found: Any, address: str) -> Generator[bytes, None, None]:
    from obstore.exceptions import BaseError

    try:
        for piece in found.stream(min_chunk_size=PIECE_BYTES):
            yield bytes(piece)
    except (BaseError, OSError) as error:
        raise _to_unreadable_file(address, error) from error


def _to_unreadable_file(address: str, error: Exception) -> input_files.UnreadableFile:
    """The library's own words are pages long, and may hold what was signed."""
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return input_files.UnreadableFile(f"{address}: {first[:300]}")
