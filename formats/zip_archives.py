"""ZIP archives with one file of records, and the images beside it. Members are read one at a time and never unpacked to
the disk."""

import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

SUFFIX = ".zip"
MAX_MEMBERS = 200_000
_RECORDS = (".jsonl", ".json", ".ndjson", ".csv")
_OTHERS = {"manifest.json", "dataset_infos.json"}
# NotImplementedError: strange flags; ValueError: a name in a wrong encoding.
MEMBER_ERRORS = (zipfile.BadZipFile, OSError, ValueError, NotImplementedError)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class DamagedMember(Exception):
    """A member of an archive cannot be unpacked."""


class UnusableArchive(Exception):
    """The file is no ZIP archive, or does not have exactly one file of records."""


def open_archive(path: Path, stream: BinaryIO | None = None) -> zipfile.ZipFile:
    """Open an archive. Raises `UnusableArchive`."""
    try:
        archive = zipfile.ZipFile(stream or path)
    except MEMBER_ERRORS as error:
        raise UnusableArchive(f"{path}: not a readable ZIP archive: {error}") from error
    if len(archive.infolist()) > MAX_MEMBERS:
        raise UnusableArchive(f"{path}: the archive has more than {MAX_MEMBERS:,} files: split it")
    return archive


def find_records(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    """Return the only file of records. Raises `UnusableArchive`."""
    found = [info for info in archive.infolist() if _has_records(info)]
    lines = [info for info in found if info.filename.lower().endswith(".jsonl")]
    if len(lines) != 1 and len(found) != 1:
        names = ", ".join(info.filename for info in found[:5]) or "none"
        raise UnusableArchive(
            f"{path}: the archive must have exactly one file of records ({', '.join(_RECORDS)}); it has {names}"
        )
    (chosen,) = lines if len(lines) == 1 else found
    _check_member(chosen, path)
    return chosen


def read_member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes | None:
    """Return the content of a member, at most one byte more than the limit, or None if there is no such member. Raises
    `DamagedMember`."""
    try:
        info = archive.getinfo(name)
    except KeyError:
        return None
    try:
        _check_member(info, Path(name))
        with archive.open(info) as stream:
            return stream.read(limit + 1)
    except (UnusableArchive, zlib.error, EOFError, *MEMBER_ERRORS) as error:
        raise DamagedMember(str(error)) from error


def _has_records(info: zipfile.ZipInfo) -> bool:
    folders, _, name = info.filename.rpartition("/")
    is_hidden = name.startswith(".") or folders.startswith("__MACOSX")
    return name.lower().endswith(_RECORDS) and not is_hidden and name not in _OTHERS


def _check_member(info: zipfile.ZipInfo, path: Path) -> None:
    if info.flag_bits & 1:
        raise UnusableArchive(f"{path}: {info.filename} is encrypted: pack it without a password")
    if info.compress_type not in _METHODS:
        raise UnusableArchive(f"{path}: {info.filename} is packed by a rare method: pack it with deflate")
