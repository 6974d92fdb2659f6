"""Load the images of the records of a file, from the records themselves, their archive, or a folder."""

from collections.abc import Iterator
from pathlib import Path

from formats import image_loader, input_files, zip_archives
from formats.image_loader import ImageLoader, ImageRefused
from formats.records import BadLine, TraceRecord


def load_images(
    records: Iterator[TraceRecord | BadLine], path: Path, *, place: Path | None, n_decoded: int | None
) -> Iterator[TraceRecord | BadLine]:
    """Yield the records with their images. A record with an image that cannot be stored becomes a bad line. Raises
    UnreadableFile if the archive is damaged."""
    loader: ImageLoader | None = None
    for record in records:
        if isinstance(record, BadLine) or not _has_images(record):
            yield record
            continue
        try:
            loader = loader or ImageLoader(image_loader.open_image_files(path, place), n_decoded=n_decoded)
            yield loader.load_images(record)
        except zip_archives.UnusableArchive as error:
            raise input_files.UnreadableFile(str(error)) from error
        except ImageRefused as error:
            yield BadLine(record.line or 1, 1, str(error))


def _has_images(record: TraceRecord) -> bool:
    if record.problem.images:
        return True
    options = [option for step in record.steps for option in step.options if option.parts]
    return any(part.kind == "image" for option in options for part in option.parts)
