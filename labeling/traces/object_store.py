"""Download an object from a store to the uploads folder, so that its import reads a local file.

Credentials, region and endpoint come from the worker's environment, under the names that the tools of the store use:
AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_SERVICE_ACCOUNT, AZURE_STORAGE_ACCOUNT_NAME and so on.
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
# An unreachable store fails within the lease of a job; a large object may take hours.
RETRY_CONFIG: dict[str, Any] = {"max_retries": 2, "retry_timeout": dt.timedelta(seconds=10)}
# The operator chooses the endpoint, and whether it uses TLS.
CLIENT_OPTIONS: dict[str, Any] = {
    "allow_http": True,
    "connect_timeout": dt.timedelta(seconds=3),
    "timeout": dt.timedelta(hours=12),
}


def fetch_object(address: str) -> Generator[JobProgress, None, Path]:
    """Yield progress, then return the path. An unchanged object that is already downloaded is not fetched again."""
    stored = _get_object(address)
    version = f"{address}\n{stored.meta.get('e_tag')}\n{stored.meta['size']}"
    path = uploads.make_upload_path(
        hashlib.sha256(version.encode()).hexdigest()[:16], address.rstrip("/").rpartition("/")[2]
    )
    if path.exists():
        return path
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    fetched = 0
    try:
        with unfinished.open("wb") as file:
            for piece in _stream_pieces(stored, address):
                fetched += file.write(piece)
                yield JobProgress(0, result={"fetched": fetched, "size": stored.meta["size"]})
            file.flush()
            os.fsync(file.fileno())
        if fetched > uploads.MAX_UPLOAD_BYTES:
            raise input_files.UnreadableFile(f"{address}: larger than the limit of {uploads.MAX_UPLOAD_BYTES:,} bytes")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def read_beginning(address: str, *, size: int) -> tuple[bytes, bool]:
    """Return the first bytes of an object for a preview, and whether they are the whole object."""
    store, name = _open_store(address)
    from obstore.exceptions import BaseError

    try:
        total = int(store.head(name)["size"])
        return bytes(store.get_range(name, start=0, end=min(size, total))) if total else b"", total <= size
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
    """Return the store of the bucket, and the name of the object in it."""
    try:
        from obstore import store as stores
    except ImportError as error:
        raise input_files.UnreadableFile(
            "object stores need additional packages: pip install 'stepmark[s3]'"
        ) from error
    scheme, _, rest = address.partition("://")
    bucket, _, name = rest.partition("/")
    try:
        from_url: Any = stores.from_url
        return from_url(f"{scheme}://{bucket}", retry_config=RETRY_CONFIG, client_options=CLIENT_OPTIONS), name
    except Exception as error:  # for an invalid address the library raises its own errors and builtin ones
        raise _to_unreadable_file(address, error) from error


def _stream_pieces(stored: Any, address: str) -> Generator[bytes, None, None]:
    from obstore.exceptions import BaseError

    try:
        for piece in stored.stream(min_chunk_size=PIECE_BYTES):
            yield bytes(piece)
    except (BaseError, OSError) as error:
        raise _to_unreadable_file(address, error) from error


def _to_unreadable_file(address: str, error: Exception) -> input_files.UnreadableFile:
    """Convert an error to its first line: the full message is long and may contain a signature."""
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return input_files.UnreadableFile(f"{address}: {first[:300]}")
