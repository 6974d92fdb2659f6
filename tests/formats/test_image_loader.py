"""Images of records: stored content, and refused images."""

import io
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from formats import image_loader, images
from formats.image_loader import ImageFolder, ImageLoader, ImageRefused, NoImageFiles, ZippedImages
from formats.records import ImageRecord, OptionRecord, PartRecord, ProblemRecord, StepRecord, TraceRecord
from tests.image_files import make_data_uri, make_image, make_zip


def make_record(*sources: str) -> TraceRecord:
    asked = tuple(ImageRecord(source=source) for source in sources[:1])
    parts = tuple(PartRecord("image", "[image]", source=source) for source in sources[1:])
    return TraceRecord(ProblemRecord("See", images=asked), [StepRecord([OptionRecord("a", parts=parts)])])


def make_bomb(width: int, height: int) -> bytes:
    """Return a PNG whose header announces this size, without the pixels."""
    header = struct.pack("!IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (b"IHDR" + header, b"IDAT" + zlib.compress(b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack("!I", len(chunk) - 4) + chunk + struct.pack("!I", zlib.crc32(chunk)) for chunk in chunks
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (make_bomb(60_000, 60_000), "pixels"),
        (make_bomb(5000, 5000), f"{image_loader.MAX_PIXELS:,}"),
        (make_image(size=(64, 64))[:-40], "truncated"),
        (b"no image", "PNG, JPEG"),
        (make_image(kind="BMP"), "PNG, JPEG"),
        (b'<?xml version="1.0"?><svg onload="x()"/>', "SVG"),
        (bytes(image_loader.MAX_FILE_BYTES + 1), f"{image_loader.MAX_FILE_BYTES:,}"),
    ],
    ids=["huge", "large", "truncated", "text", "bmp", "svg", "bytes"],
)
def test_refused_images_name_the_limit(content: bytes, reason: str) -> None:
    with pytest.raises(ImageRefused, match=reason):
        image_loader.encode_image(content)


def test_images_of_the_problem_and_a_step_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_loader, "MAX_IMAGES", 2)
    red, blue = (make_data_uri(make_image(color)) for color in ("red", "blue"))
    assert len(ImageLoader(NoImageFiles()).load_images(make_record(red, red, blue)).images) == 2
    with pytest.raises(ImageRefused):
        ImageLoader(NoImageFiles()).load_images(make_record(red, blue, blue))


def test_stored_bytes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_loader, "MAX_STORED_BYTES", 50)
    with pytest.raises(ImageRefused, match="50"):
        image_loader.encode_image(make_image())


def test_metadata_is_left_out_and_turns_the_image_first() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "where I live"  # turned by 90 degrees; a description
    stored = image_loader.encode_image(make_image(size=(20, 10), kind="JPEG", exif=exif, comment=b"secret"))
    assert (stored.width, stored.height) == (10, 20)
    assert b"where I live" not in stored.data
    assert b"secret" not in stored.data
    assert not Image.open(io.BytesIO(stored.data)).getexif()


def test_only_the_first_frame_is_kept() -> None:
    frames = [Image.new("L", (4, 4), shade) for shade in (10, 200)]
    animated = io.BytesIO()
    frames[0].save(animated, "GIF", save_all=True, append_images=frames[1:])
    stored = Image.open(io.BytesIO(image_loader.encode_image(animated.getvalue()).data))
    assert (getattr(stored, "n_frames", 1), stored.getpixel((0, 0))) in [(1, 10), (1, (10, 10, 10))]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([("RGB", "PNG"), ("RGBA", "PNG"), ("P", "PNG"), ("1", "PNG"), ("LA", "PNG"), ("L", "JPEG")]),
    st.integers(1, 9),
    st.data(),
)
def test_stored_image_stays_the_same_when_it_is_stored_again(
    kind: tuple[str, str], size: int, data: st.DataObject
) -> None:
    image = Image.frombytes("RGB", (size, 2), data.draw(st.binary(min_size=6 * size, max_size=6 * size)))
    content = io.BytesIO()
    image.convert(kind[0]).save(content, kind[1])
    first = image_loader.encode_image(content.getvalue())
    again = image_loader.encode_image(first.data)
    assert (again.digest, again.data) == (first.digest, first.data)


def test_images_of_a_record_are_stored_once_and_named_by_digests() -> None:
    uri = make_data_uri(make_image())
    record = ImageLoader(NoImageFiles()).load_images(make_record(uri, uri, make_data_uri(make_image(kind="WEBP"))))
    digests = {part.digest for part in record.steps[0].options[0].parts} | {record.problem.images[0].digest}
    assert digests >= {image.digest for image in record.images}
    assert not any(part.source for part in record.steps[0].options[0].parts)


@pytest.mark.parametrize(
    ("sources", "reason"),
    [
        (["https://other.test/a.png"], "other servers"),
        (["//other.test/a.png"], "other servers"),
        (["data:image/svg+xml;base64,PHN2Zz4="], "SVG"),
        (["data:image/png;base64,@@"], "base64"),
        (["a.png"], "ZIP"),
        (["file:///etc/passwd"], "beside the records"),
        (["../a.png"], "beside the records"),
        ([make_data_uri(make_image(number, mode="L")) for number in range(65)], "65"),
    ],
)
def test_references_that_are_refused(sources: list[str], reason: str) -> None:
    with pytest.raises(ImageRefused, match=reason):
        ImageLoader(NoImageFiles()).load_images(make_record(*sources))


def test_bytes_of_a_trace_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_loader, "MAX_TRACE_BYTES", 100)
    uris = [make_data_uri(make_image(color)) for color in ("red", "blue")]
    with pytest.raises(ImageRefused, match="100"):
        ImageLoader(NoImageFiles()).load_images(make_record(*uris))


def test_previews_decode_only_some_images() -> None:
    uris = [make_data_uri(make_image(color)) for color in ("red", "blue")]
    record = ImageLoader(NoImageFiles(), n_decoded=1).load_images(make_record(*uris))
    assert [bool(image.data) for image in record.images] == [True, False]


def test_files_beside_the_records(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.png").write_bytes(b"png")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "data/link.png").symlink_to(tmp_path / "secret.png")
    folder = ImageFolder(tmp_path / "data")
    assert folder.read("a.png", 9) == b"png"
    for name in ("link.png", "missing.png"):
        with pytest.raises(ImageRefused):
            folder.read(name, 9)
    path = make_zip(tmp_path / "x.zip", {"d/r.jsonl": b"{}", "d/a.png": b"near", "a.png": b"far", "b.png": b"top"})
    zipped = ZippedImages(path)
    assert [zipped.read(name, 9) for name in ("a.png", "b.png")] == [b"near", b"top"]
    with pytest.raises(ImageRefused):
        zipped.read("c.png", 9)


@given(st.lists(st.sampled_from(["", "a", "a]", "[image]"]), max_size=4), st.text("a[]image: \n", max_size=30))
def test_every_image_gets_one_place_in_the_text(descriptions: list[str], text: str) -> None:
    given_images = [ImageRecord(source=str(number), description=name) for number, name in enumerate(descriptions)]
    placed, shown = images.place_images(text, given_images)
    assert {image.source for image in shown} == {image.source for image in given_images}
    assert images.place_images(placed, shown) == (placed, shown)  # as when it is exported and imported again
    assert [each for each in images.split_text(placed, shown) if not isinstance(each, str)] == list(shown)
