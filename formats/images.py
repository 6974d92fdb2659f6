"""Images in texts: each image has a placeholder in its text, "[image: a triangle]", at the place where it is shown.

Programs and formats that cannot show images get the text with the placeholders. `formats.image_loader` loads what the
references point to.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from formats import strict_json
from formats.records import ImageRecord, PartRecord

MAX_DESCRIPTION = 1000  # characters
PATH = "images/{}.png"  # of an image beside the records, by its digest
# Of an image in a row of a table.
COLUMNS = {"source": "string", "description": "string"}

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DATA_URI = re.compile(r"data:image/(?:png|jpe?g|webp|gif);base64,", re.I)
_PLACEHOLDER = re.compile(r"\[image(?:: (.*))?\]", re.DOTALL)


class ImageReference(Struct, gc=False, forbid_unknown_fields=True):
    """An image in a file: a data URI, or the path of a file beside the records."""

    source: str
    description: Annotated[str, Meta(max_length=MAX_DESCRIPTION)] | None = ""


def parse_reference(source: str, path: tuple[str | int, ...], description: str | None = "") -> ImageRecord:
    """Check a reference without loading it. Raises `RecordMisfit`."""
    if problem := find_problem(source):
        raise strict_json.RecordMisfit(path, problem)
    return ImageRecord(source=source, description=" ".join((description or "").split())[:MAX_DESCRIPTION])


def parse_references(
    references: Iterable[str | ImageReference] | None, path: tuple[str | int, ...]
) -> list[ImageRecord]:
    return [
        parse_reference(each, (*path, number))
        if isinstance(each, str)
        else parse_reference(each.source, (*path, number, "source"), each.description)
        for number, each in enumerate(references or ())
    ]


def find_problem(source: str) -> str:
    """Return why a reference cannot be loaded, "" if it may be tried."""
    start = source[:40].lower()
    if start.startswith("data:"):
        if _DATA_URI.match(source):
            return ""
        if start.startswith("data:image/svg"):
            return "SVG images are not accepted, because they can contain programs: save it as PNG"
        return "not an image in base64: a data URI must begin with data:image/png;base64, (or jpeg, webp, gif)"
    if start.startswith(("http:", "https:", "//")):
        return (
            "images are never loaded from other servers: put the file beside the records in a ZIP archive and name its"
            " path, or write it as a data URI"
        )
    if _SCHEME.match(source) or source.startswith(("/", "\\")) or ".." in re.split(r"[\\/]", source):
        return "an image is a data URI or the path of a file beside the records"
    return "" if source.strip() else "an image needs a data URI or the path of a file beside the records"


def write_placeholder(description: str) -> str:
    return f"[image: {description}]" if description else "[image]"


def read_description(placeholder: str) -> str:
    """Return the description in the text of an image part."""
    found = _PLACEHOLDER.fullmatch(placeholder)
    return (found[1] or "") if found else ""


def place_images(text: str, images: Sequence[ImageRecord]) -> tuple[str, tuple[ImageRecord, ...]]:
    """Return the text with a placeholder for every image, and the images in the order of the text. Images whose
    placeholder the text does not have follow it."""
    placed = find_images(text, images)
    others = [image for image in images if not any(image is each for each in placed)]
    return "\n".join(filter(None, [text, *map(_placeholder, others)])), (*placed, *others)


def find_images(text: str, images: Sequence[ImageRecord]) -> list[ImageRecord]:
    """Return the images whose placeholders the text has, in their order."""
    placed, at = [], 0
    for image in images:
        place = text.find(_placeholder(image), at)
        if place >= 0:
            placed.append(image)
            at = place + len(_placeholder(image))
    return placed


def remove_last_placeholders(text: str, images: Sequence[ImageRecord]) -> str:
    """Return the text without the placeholders at its end."""
    for image in reversed(images):
        rest = text.removesuffix(_placeholder(image))
        if rest == text:
            break
        text = rest.removesuffix("\n")
    return text


def split_text(text: str, images: Sequence[ImageRecord]) -> Iterator[str | ImageRecord]:
    """Yield the pieces of a text between its images, and the images."""
    for image in images:
        before, placeholder, after = text.partition(_placeholder(image))
        if not placeholder:
            yield image
            continue
        if before.strip("\n"):
            yield before.strip("\n")
        yield image
        text = after
    if text.strip("\n"):
        yield text.strip("\n")


def make_parts(text: str, images: Sequence[ImageRecord]) -> tuple[PartRecord, ...]:
    """Return the parts of a text that has a placeholder for each image. A text without images needs no parts."""
    if not images:
        return ()
    pieces = split_text(text, images)
    return tuple(PartRecord("text", each) if isinstance(each, str) else make_part(each) for each in pieces)


def make_part(image: ImageRecord) -> PartRecord:
    return PartRecord("image", _placeholder(image), source=image.source, digest=image.digest)


def list_images(parts: Iterable[PartRecord]) -> list[ImageRecord]:
    """Return the images among the parts of an option."""
    return [
        ImageRecord(source=part.source, description=read_description(part.text), digest=part.digest)
        for part in parts
        if part.kind == "image"
    ]


def write_references(images: Iterable[ImageRecord]) -> list[dict[str, str]]:
    """Return images as rows have them: files beside the records."""
    return [{"source": write_path(image), "description": image.description} for image in images]


def write_path(image: ImageRecord) -> str:
    return PATH.format(image.digest) if image.digest else image.source


def _placeholder(image: ImageRecord) -> str:
    return write_placeholder(image.description)
