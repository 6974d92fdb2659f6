"""Load the images of records: decode them, and encode them again as PNG without metadata.

An image is stored under a digest of its pixels, so that the same picture in another file format, or written by another
version of the encoder, is the same image. PNG loses nothing, so an image that is exported and imported again stays the
same. Pillow is imported only when there is an image.
"""

import base64
import binascii
import hashlib
import io
import warnings
from collections import OrderedDict
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol

from msgspec import structs

from formats import zip_archives
from formats.images import find_problem
from formats.records import ImageRecord, LoadedImage, OptionRecord, PartRecord, TraceRecord

if TYPE_CHECKING:
    from PIL import Image

MAX_FILE_BYTES = 16 * 1024**2  # of an image as it is in the file
MAX_PIXELS = 20_000_000
MAX_STORED_BYTES = 8 * 1024**2  # of an image as it is stored
MAX_IMAGES = 64  # of a trace
MAX_TRACE_BYTES = 64 * 1024**2  # of all images of a trace as they are stored
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
_KNOWN = 16  # images in memory: several records in a row often have the same ones


class ImageRefused(Exception):
    """The image cannot be stored. The message says why and what to do."""


class ImageFiles(Protocol):
    """Files beside the records."""

    def read(self, name: str, limit: int) -> bytes:
        """Return the content of a file. Raises `ImageRefused`."""


class NoImageFiles:
    """There are no files beside the records, as with an upload of one file."""

    def read(self, name: str, limit: int) -> bytes:
        raise ImageRefused(
            "only the records were given: import a ZIP archive that has the records and the images, or write the image"
            " as a data URI"
        )


class ImageFolder:
    """The files of a folder and its subfolders."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def read(self, name: str, limit: int) -> bytes:
        try:
            path = (self._folder / name).resolve()
            if not path.is_relative_to(self._folder) or not path.is_file():
                raise ImageRefused(f"there is no such file in {self._folder}")
            with path.open("rb") as file:
                return file.read(limit + 1)
        except (OSError, ValueError) as error:
            raise ImageRefused(f"the file cannot be read: {error}") from error


class ZippedImages:
    """The files of a ZIP archive. If it has the records too, paths begin at their folder, or at the top."""

    def __init__(self, path: Path, *, has_records: bool = True) -> None:
        self._archive = zip_archives.open_archive(path)
        records = zip_archives.find_records(self._archive, path).filename if has_records else ""
        self._folder = PurePosixPath(records).parent

    def read(self, name: str, limit: int) -> bytes:
        for place in (str(self._folder / name), str(PurePosixPath(name))):
            try:
                content = zip_archives.read_member(self._archive, place, limit)
            except zip_archives.DamagedMember as error:
                raise ImageRefused(f"the file cannot be unpacked: {error}") from error
            if content is not None:
                return content
        raise ImageRefused("the archive has no such file")


class ImageLoader:
    """Loads the images of one record after the other. With `n_decoded`, only this many images are decoded, and of the
    others only the size is checked, as for a preview."""

    def __init__(self, files: ImageFiles, *, n_decoded: int | None = None) -> None:
        self._files = files
        self._n_left = n_decoded
        self._known: OrderedDict[str, LoadedImage] = OrderedDict()

    def load_images(self, record: TraceRecord) -> TraceRecord:
        """Replace the references of a record by digests, and add the images to it. Raises `ImageRefused`."""
        parts = [part for step in record.steps for option in step.options for part in option.parts]
        asked = [image.source for image in record.problem.images]
        shown = [part.source for part in parts if part.kind == "image"]
        if not (asked or shown):
            return record
        n_images = len(shown) + len({*asked} - {*shown})  # the first message of a chat is the problem, too
        if n_images > MAX_IMAGES:
            raise ImageRefused(f"the record has {n_images} images: the limit is {MAX_IMAGES} for each trace")
        loaded: dict[str, LoadedImage] = {}
        for number, source in enumerate(dict.fromkeys([*asked, *shown]), 1):
            loaded[source] = self._load(number, source)
            if sum(len(image.data) for image in loaded.values()) > MAX_TRACE_BYTES:
                raise ImageRefused(
                    f"the images of the record have more than {MAX_TRACE_BYTES:,} bytes together, the limit for each"
                    " trace. Scale them down"
                )
        record.images = list({image.digest: image for image in loaded.values()}.values())
        if record.problem.images:
            images = tuple(_name_image(image, loaded) for image in record.problem.images)
            record.problem = structs.replace(record.problem, images=images)
        for step in record.steps:
            step.options = [_name_images_of_option(option, loaded) for option in step.options]
        return record

    def _load(self, number: int, source: str) -> LoadedImage:
        key = hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()
        if key not in self._known:
            try:
                self._known[key] = self._decode(source)
            except ImageRefused as error:
                name = "" if source.startswith("data:") else f" ({source[:200]})"
                raise ImageRefused(f"image {number} of the record{name}: {error}") from error
            while len(self._known) > _KNOWN:
                self._known.popitem(last=False)
        return self._known[key]

    def _decode(self, source: str) -> LoadedImage:
        if problem := find_problem(source):
            raise ImageRefused(problem)
        if source[:5].lower() == "data:":
            content = _decode_data_uri(source)
        else:
            content = self._files.read(source, MAX_FILE_BYTES)
        if self._n_left is not None:
            self._n_left -= 1
            if self._n_left < 0:
                return measure_image(content)
        return encode_image(content)


def encode_image(content: bytes) -> LoadedImage:
    """Decode an image file, and encode its pixels as PNG. Raises `ImageRefused`."""
    opened = _open_image(content)
    try:
        image = _normalize_mode(_turn_upright(opened))
        pixels = hashlib.sha256(f"{image.mode} {image.width} {image.height}\n".encode())
        pixels.update(image.tobytes())
        stored = io.BytesIO()
        image.save(stored, "PNG")
    except MemoryError:
        raise
    except Exception as error:  # each decoder has its own exceptions
        raise ImageRefused(f"the image is damaged or truncated: {str(error)[:100]}") from error
    if (n_bytes := stored.tell()) > MAX_STORED_BYTES:
        raise ImageRefused(
            f"as a PNG without metadata it has {n_bytes:,} bytes: the limit is {MAX_STORED_BYTES:,}. Scale it down"
        )
    return LoadedImage(
        pixels.hexdigest(), image.width, image.height, stored.getvalue(), hashlib.sha256(content).hexdigest()
    )


def measure_image(content: bytes) -> LoadedImage:
    """Check the kind and the size of an image without decoding it. Its digest is that of the file."""
    image = _open_image(content)
    digest = hashlib.sha256(content).hexdigest()
    return LoadedImage(digest, image.width, image.height, b"", digest)


def _open_image(content: bytes) -> "Image.Image":
    if len(content) > MAX_FILE_BYTES:
        raise ImageRefused(f"the file is larger than {MAX_FILE_BYTES:,} bytes: scale the image down")
    if b"<svg" in content[:1000].lower():
        raise ImageRefused("SVG images are not accepted, because they can contain programs: save it as PNG")
    from PIL import Image  # a process that meets no image does not load it

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about large images, which are refused below
            image = Image.open(io.BytesIO(content), formats=FORMATS)
    except Image.DecompressionBombError:
        raise ImageRefused(_describe_size("far too many")) from None
    except MemoryError:
        raise
    except Exception as error:  # each decoder has its own exceptions
        raise ImageRefused(f"not a readable image: the formats are {', '.join(FORMATS)}") from error
    if image.width * image.height > MAX_PIXELS:
        raise ImageRefused(_describe_size(f"{image.width:,} × {image.height:,}"))
    return image


def _describe_size(pixels: str) -> str:
    return f"the image has {pixels} pixels: the limit is {MAX_PIXELS:,}. Scale it down"


def _turn_upright(image: "Image.Image") -> "Image.Image":
    """Decode the first frame, and turn it as the metadata of a camera say, because these are not stored."""
    from PIL import ImageOps

    image.load()
    return ImageOps.exif_transpose(image)


def _normalize_mode(image: "Image.Image") -> "Image.Image":
    """Return a gray or color image with 8 bits, without metadata, and with transparency only if a pixel has any."""
    if image.mode.startswith("I"):  # 16 bits, which conversion would cut off
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    has_alpha = image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info
    is_gray = image.mode in ("1", "L", "LA", "La")
    image = image.convert(("LA" if is_gray else "RGBA") if has_alpha else "L" if is_gray else "RGB")
    if has_alpha and image.getchannel("A").getextrema() == (255, 255):
        image = image.convert("L" if is_gray else "RGB")
    image = image.copy()
    image.info = {}
    return image


def _decode_data_uri(source: str) -> bytes:
    encoded = source[source.index(",") + 1 :]
    if len(encoded) > MAX_FILE_BYTES * 4 // 3 + 4:
        raise ImageRefused(f"the file is larger than {MAX_FILE_BYTES:,} bytes: scale the image down")
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImageRefused(f"the data URI is not valid base64: {error}") from error


def _name_image(image: ImageRecord, loaded: dict[str, LoadedImage]) -> ImageRecord:
    return ImageRecord(description=image.description, digest=loaded[image.source].digest)


def _name_images_of_option(option: OptionRecord, loaded: dict[str, LoadedImage]) -> OptionRecord:
    if not any(part.kind == "image" for part in option.parts):
        return option
    return structs.replace(option, parts=tuple(_name_part(part, loaded) for part in option.parts))


def _name_part(part: PartRecord, loaded: dict[str, LoadedImage]) -> PartRecord:
    if part.kind != "image":
        return part
    return structs.replace(part, source="", digest=loaded[part.source].digest)


def open_image_files(path: Path, place: Path | None = None) -> ImageFiles:
    """Return the files beside the records: those of their archive, or of a folder or archive that the caller may
    read."""
    if place:
        is_archive = place.suffix.lower() == zip_archives.SUFFIX
        return ZippedImages(place, has_records=False) if is_archive else ImageFolder(place)
    return ZippedImages(path) if path.suffix.lower() == zip_archives.SUFFIX else NoImageFiles()
