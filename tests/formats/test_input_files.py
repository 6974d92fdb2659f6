"""Compressed input files."""

import gzip
import os
import zipfile
from pathlib import Path

import pytest
import zstandard

from formats import input_files, zip_archives
from formats.input_files import UnreadableFile
from tests.image_files import make_zip

TEXT = b'{"a": 1}\n' * 1000


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("x.jsonl", TEXT),
        ("x.jsonl.gz", gzip.compress(TEXT)),
        ("x.jsonl.gz", gzip.compress(TEXT[:900]) + gzip.compress(TEXT[900:])),
        ("x.jsonl.zst", zstandard.compress(TEXT)),
        ("x.jsonl.zst", zstandard.compress(TEXT[:900]) + zstandard.compress(TEXT[900:])),
    ],
    # Named here: gzip output contains the time, and parallel processes must collect the same tests.
    ids=["plain", "gz", "gz in two", "zst", "zst in two"],
)
def test_open_file_unpacks_by_the_name(tmp_path: Path, name: str, packed: bytes) -> None:
    (tmp_path / name).write_bytes(packed)
    with input_files.open_file(tmp_path / name) as stream:
        assert stream.readline() == b'{"a": 1}\n'
        assert stream.read() == TEXT[9:]
    assert input_files.unpacked_name(tmp_path / name) == "x.jsonl"


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_open_file_limits_the_unpacked_size(tmp_path: Path, suffix: str) -> None:
    text = b"0" * 20_000_000
    path = tmp_path / f"bomb.{suffix}"
    path.write_bytes(gzip.compress(text) if suffix == "gz" else zstandard.compress(text))
    with (
        input_files.open_file(path, free=1_000_000) as stream,
        pytest.raises(UnreadableFile, match=str(input_files.RATIO_LIMIT)),
    ):
        list(iter(lambda: stream.read(1 << 16), b""))


def test_member_with_strange_flags_is_damaged(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {"a.png": b"x"})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 0x20  # patched data
    path.write_bytes(content)
    with zip_archives.open_archive(path) as archive, pytest.raises(zip_archives.DamagedMember):
        zip_archives.read_member(archive, "a.png", 10)


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_open_file_refuses_a_damaged_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(b"not packed at all")
    with pytest.raises(UnreadableFile), input_files.open_file(path) as stream:
        stream.read()


def test_open_file_refuses_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile):
        input_files.open_file(tmp_path / "nothing")


def test_open_file_reads_several_frames(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    pack = zstandard.ZstdCompressor().compress
    texts = [bytes([65 + number]) * 5000 for number in range(4)]
    path.write_bytes(b"".join(map(pack, texts)))
    with input_files.open_file(path) as stream:
        assert stream.read() == b"".join(texts)


def test_open_file_refuses_a_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    packed = zstandard.ZstdCompressor().compress(bytes(range(256)) * 40)
    for length in range(1, len(packed), 7):
        path.write_bytes(packed[:length])
        with pytest.raises(input_files.UnreadableFile), input_files.open_file(path) as stream:
            stream.read()


@pytest.mark.parametrize(
    ("name", "content", "packing"),
    [
        ("x.jsonl", gzip.compress(TEXT), r"\.gz"),
        ("x.jsonl.gz", gzip.compress(gzip.compress(TEXT)), r"\.gz"),
        ("x.jsonl.gz", gzip.compress(zstandard.compress(TEXT)), r"\.zst"),
        ("x.csv", b"PK\x03\x04 and more", "ZIP"),
        ("x.jsonl", b"PAR1 and more", r"\.parquet"),
    ],
    ids=["gz unnamed", "gz twice", "zst in gz", "zip", "parquet unnamed"],
)
def test_open_file_names_a_packing_that_the_name_does_not_say(
    tmp_path: Path, name: str, content: bytes, packing: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableFile, match=packing):
        input_files.open_file(tmp_path / name)


def test_open_file_refuses_pipes_folders_and_devices(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.jsonl")
    for path in (tmp_path / "x.jsonl", tmp_path, Path("/dev/zero")):
        with pytest.raises(UnreadableFile):
            input_files.open_file(path)
        with pytest.raises(UnreadableFile):
            input_files.hash_file(path)


@pytest.mark.parametrize(
    ("name", "expected"), [("x.csv", "csv"), ("x.csv.gz", "csv"), ("x.PARQUET", "parquet"), ("x.jsonl", None)]
)
def test_table_kind_depends_on_the_file_name(name: str, expected: str | None) -> None:
    assert input_files.detect_table_kind(Path(name)) == expected


def test_archive_is_read_as_its_file_of_records(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {"d/table.csv": b"x,y\n", "d/a.png": b"", "__MACOSX/d/table.csv": b""})
    with input_files.open_file(path) as stream:
        assert stream.read() == b"x,y\n"
    assert input_files.detect_table_kind(path) == "csv"


@pytest.mark.parametrize(
    "files", [{}, {"a.png": b""}, {"a.csv": b"", "b.csv": b""}, {"a.jsonl": b"", "b.jsonl": b""}, {"a.txt": b""}]
)
def test_archive_without_exactly_one_file_of_records_is_refused(files: dict[str, bytes], tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile):
        input_files.open_file(make_zip(tmp_path / "a.zip", files))


def test_archive_that_unpacks_to_too_much_or_is_damaged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jsonl", bytes(1_000_000))
    with input_files.open_file(path, free=1000) as stream, pytest.raises(UnreadableFile):
        stream.read()
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(UnreadableFile):
        input_files.open_file(path)
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(UnreadableFile):
        input_files.open_file(path)
