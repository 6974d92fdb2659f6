"""Where the files of an import are: uploads, files in the incoming folder, and objects in stores.

The pages only pass references. A reference can only lead to uploads, to the incoming folder, and to the addresses that
the operator allowed; never to other files of the server or to other hosts.

Uploads and downloaded objects stay in the data folder until their import has read them; an incomplete one leaves no
file. Credentials, region and endpoint of a store come from the worker's environment, under the names that the tools of
the store use: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_SERVICE_ACCOUNT, AZURE_STORAGE_ACCOUNT_NAME and so on.
"""

import datetime as dt
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.signing import BadSignature, Signer

from formats import input_files
from jobs.runner import JobProgress
from labeling.models import Project

MAX_LISTED = 200
MAX_UPLOAD_BYTES = 50 * 1024**3
MAX_NAME_BYTES = 120  # file systems limit names to 255 bytes
RETENTION = dt.timedelta(days=7)
FOLDER_PATTERN = re.compile(r"[0-9a-f]{16}")
_UPLOAD_REFERENCE = re.compile(r"[0-9a-f]{16}/[^/\\]+")

STORE_SCHEMES = ("s3://", "gs://", "az://")
# Without a package name in it that a stranger could register on PyPI.
MISSING_PACKAGES = (
    "Object stores and the Hugging Face hub need further packages."
    " Install them with: python -m supervisor.install requirements-stores.txt"
)
PIECE_BYTES = 8 * 1024 * 1024
# An unreachable store fails within the lease of a job; a large object may take hours.
STORE_RETRIES: dict[str, Any] = {"max_retries": 2, "retry_timeout": dt.timedelta(seconds=10)}
# The operator chooses the endpoint, and whether it uses TLS.
STORE_OPTIONS: dict[str, Any] = {
    "allow_http": True,
    "connect_timeout": dt.timedelta(seconds=3),
    "timeout": dt.timedelta(hours=12),
}


class LocationNotFound(Exception):
    """The reference leads to no file, or to a place that must not be read."""


class FileLocation(NamedTuple):
    """A file that can be opened, or the address of an object that must be fetched first."""

    reference: str
    name: str
    path: Path | None = None
    address: str = ""


def make_upload_reference(path: Path, *, project: Project) -> str:
    """Return the reference of a path that `save_upload` returned. It is signed, because it is valid in one project."""
    return _sign_for(project).sign(f"sent:{path.parent.name}/{path.name}")


def _sign_for(project: Project) -> Signer:
    return Signer(salt=f"upload:{project.pk}")


def resolve_location(reference: str, *, project: Project) -> FileLocation:
    """Return the file or address that a reference means in a project. Raises LocationNotFound."""
    kind, _, rest = reference.partition(":")
    if kind == "sent":
        return _locate_upload(reference, project)
    if kind == "beside" and settings.INCOMING_DIR is not None and not _is_of_another_project(rest, project):
        return _locate_in_folder(reference, settings.INCOMING_DIR, rest)
    if reference.startswith(STORE_SCHEMES):
        _check_address_allowed(reference)
        return FileLocation(reference, reference.rstrip("/").rpartition("/")[2], address=reference)
    raise LocationNotFound("this is not a valid file reference: choose the file again")


def _locate_upload(reference: str, project: Project) -> FileLocation:
    try:
        name = _sign_for(project).unsign(reference).removeprefix("sent:")
    except BadSignature:
        name = ""
    if not _UPLOAD_REFERENCE.fullmatch(name):
        raise LocationNotFound("this is not a valid file reference: choose the file again")
    return _locate_in_folder(reference, uploads_folder(), name)


def _is_of_another_project(name: str, project: Project) -> bool:
    """Whether a file of the incoming folder is in a subfolder that has the name of another project."""
    folder, _, rest = name.partition("/")
    return bool(rest) and folder != project.slug and Project.objects.filter(slug=folder).exists()


def list_incoming_files(project: Project) -> list[str]:
    """Return the references of the files in the incoming folder that the project may import, by name."""
    folder: Path | None = settings.INCOMING_DIR
    if folder is None or not folder.is_dir():
        return []
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    names = (path.relative_to(folder).as_posix() for path in paths)
    others = set(Project.objects.exclude(pk=project.pk).values_list("slug", flat=True))
    mine = (name for name in names if "/" not in name or name.partition("/")[0] not in others)
    return sorted(f"beside:{name}" for name in mine)[:MAX_LISTED]


def _locate_in_folder(reference: str, folder: Path, name: str) -> FileLocation:
    """Locate a file inside the folder. Symbolic links are followed first, so none can lead outside."""
    try:
        path = (folder / name).resolve()
        is_inside = path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError):
        is_inside = False
    if not is_inside:
        raise LocationNotFound("the file no longer exists: upload it again")
    return FileLocation(reference, path.name, path)


def list_allowed_addresses() -> list[str]:
    """Return the prefixes of the addresses that leads may import from."""
    return list(settings.INCOMING_ADDRESSES)


def _check_address_allowed(address: str) -> None:
    allowed = list_allowed_addresses()
    if ".." in address.split("/") or not any(address.startswith(f"{prefix.rstrip('/')}/") for prefix in allowed):
        names = ", ".join(allowed) or "no address"
        raise LocationNotFound(f"this address is not allowed: imports can read from {names}")


class UploadCutOff(Exception):
    """The upload ended before the announced size."""


class UploadTooLarge(Exception):
    """The upload exceeds the limit. Files in the incoming folder have no limit."""


def save_upload(*, name: str, parts: Iterable[bytes], size: int | None = None) -> Path:
    """Save an upload under its own name in a new folder. `size` is the size that the client announced."""
    if size is not None and size > MAX_UPLOAD_BYTES:
        raise UploadTooLarge
    path = make_upload_path(secrets.token_hex(8), name)
    try:
        _write_parts(path, parts, size)
    except BaseException:
        delete_upload(path)
        raise
    return path


def make_upload_path(number: str, name: str) -> Path:
    """Make the folder of an upload and return the path of the file in it."""
    folder = uploads_folder() / number
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    return folder / safe_name(name)


def is_upload(path: Path) -> bool:
    """Tell whether the file was uploaded or downloaded, so that its import may delete it."""
    return path.parent.parent == uploads_folder() and bool(FOLDER_PATTERN.fullmatch(path.parent.name))


def delete_upload(path: Path) -> None:
    shutil.rmtree(path.parent, ignore_errors=True)


def delete_old_uploads(*, now: dt.datetime) -> int:
    """Delete uploads that no import has read for a week. Returns their number."""
    too_old = (now - RETENTION).timestamp()
    folders = [path for path in uploads_folder().glob("*/") if FOLDER_PATTERN.fullmatch(path.name)]
    old = [path for path in folders if path.stat().st_mtime < too_old]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return len(old)


def uploads_folder() -> Path:
    return Path(settings.DATA_DIR) / "imports"


def safe_name(name: str) -> str:
    """Return the last part of a file name without special characters and leading dots."""
    last = re.split(r"[\\/]", name)[-1]
    plain = re.sub(r"[^\w.+-]", "_", last).lstrip(".").encode()
    return plain[-MAX_NAME_BYTES:].decode(errors="ignore") or "traces.jsonl"


def _write_parts(path: Path, parts: Iterable[bytes], size: int | None) -> None:
    written = 0
    with path.open("wb") as file:
        for part in parts:
            written += len(part)
            if written > MAX_UPLOAD_BYTES:
                raise UploadTooLarge
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    if size is not None and written != size:
        raise UploadCutOff


def fetch_object(address: str) -> Generator[JobProgress, None, Path]:
    """Yield progress, then return the path. An unchanged object that is already downloaded is not fetched again."""
    store, name = _open_store(address)
    with _readable_errors(address):
        stored = store.get(name)
    version = f"{address}\n{stored.meta.get('e_tag')}\n{stored.meta['size']}"
    number = hashlib.sha256(version.encode()).hexdigest()[:16]
    path = make_upload_path(number, address.rstrip("/").rpartition("/")[2])
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
        if fetched > MAX_UPLOAD_BYTES:
            raise input_files.UnreadableFile(
                f"{address} is larger than {MAX_UPLOAD_BYTES:,} bytes: split it into smaller files"
            )
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def read_beginning(address: str, *, size: int) -> tuple[bytes, bool]:
    """Return the first bytes of an object for a preview, and whether they are the whole object."""
    store, name = _open_store(address)
    with _readable_errors(address):
        total = int(store.head(name)["size"])
        return bytes(store.get_range(name, start=0, end=min(size, total))) if total else b"", total <= size


def _open_store(address: str) -> tuple[Any, str]:
    """Return the store of the bucket, and the name of the object in it."""
    try:
        from obstore import store as stores
    except ImportError as error:
        raise input_files.UnreadableFile(MISSING_PACKAGES) from error
    scheme, _, rest = address.partition("://")
    bucket, _, name = rest.partition("/")
    from_url: Any = stores.from_url
    with _readable_errors(address, Exception):  # for an invalid address it raises its own errors and builtin ones
        return from_url(f"{scheme}://{bucket}", retry_config=STORE_RETRIES, client_options=STORE_OPTIONS), name


def _stream_pieces(stored: Any, address: str) -> Iterator[bytes]:
    with _readable_errors(address):
        for piece in stored.stream(min_chunk_size=PIECE_BYTES):
            yield bytes(piece)


@contextmanager
def _readable_errors(address: str, *others: type[Exception]) -> Iterator[None]:
    """Convert errors of a store to their first line: the full message is long and may contain a signature."""
    from obstore.exceptions import BaseError

    kinds: tuple[type[Exception], ...] = (BaseError, OSError, *others)
    try:
        yield
    except kinds as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise input_files.UnreadableFile(f"{address}: {first[:300]}") from error
