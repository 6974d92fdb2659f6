"""The stored images of a project. Only this module writes `StoredImage`."""

from collections.abc import Iterable, Iterator, Sequence

from django.db.models import Q

import rawsql
from formats.records import ImageRecord, LoadedImage
from labeling.models import OptionPart, Problem, ProblemImage, StoredImage, Trace
from rawsql import BulkTable

IMAGE = BulkTable(StoredImage, "id", "project_id", "digest", "original_sha256", "width", "height", "data")
_AT_ONCE = 20  # images in memory


def find_or_add_images(*, project_id: int, images: Iterable[LoadedImage]) -> dict[str, int]:
    """Store the images that the project does not have yet, and return the ids by digest."""
    by_digest = {image.digest: image for image in images}
    if not by_digest:
        return {}
    stored = StoredImage.objects.filter(project=project_id, digest__in=by_digest)
    known = dict(stored.values_list("digest", "pk"))
    new = [image for digest, image in by_digest.items() if digest not in known]
    ids = list(rawsql.take_ids(IMAGE.name, len(new)))
    IMAGE.insert(
        [
            (pk, project_id, image.digest, image.original_sha256, image.width, image.height, image.data)
            for pk, image in zip(ids, new, strict=True)
        ]
    )
    return known | {image.digest: pk for pk, image in zip(ids, new, strict=True)}


def has_images(project_id: int) -> bool:
    return StoredImage.objects.filter(project=project_id).exists()


def read_images(project_id: int, digests: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield digest and content of images, a few at a time."""
    for start in range(0, len(digests), _AT_ONCE):
        rows = StoredImage.objects.filter(project=project_id, digest__in=digests[start : start + _AT_ONCE])
        for digest, data in rows.order_by("digest").values_list("digest", "data"):
            yield digest, bytes(data)


def list_problem_images(problem: Problem) -> tuple[ImageRecord, ...]:
    """Return the images of a problem as the record of an import has them."""
    rows = ProblemImage.objects.filter(problem=problem).order_by("position").values_list("image__digest", "description")
    return tuple(ImageRecord(digest=digest, description=description) for digest, description in rows)


def list_trace_images(trace: Trace) -> list[LoadedImage]:
    """Return the images of a trace and of its problem without their content, which is stored."""
    shown = Q(pk__in=OptionPart.objects.filter(option__step__trace=trace).values("image"))
    asked = Q(pk__in=ProblemImage.objects.filter(problem=trace.problem_id).values("image"))
    rows = StoredImage.objects.filter(shown | asked, project=trace.project_id).defer("data")
    return [LoadedImage(row.digest, row.width, row.height, b"", row.original_sha256) for row in rows]


def delete_unused_images(*, project_id: int) -> int:
    """Delete the images that no problem and no step has, and return their number. Call it with the lock of imports."""
    return len(rawsql.fetch_rows(_DELETE_UNUSED, {"project": project_id}))


# Django would load the content of all these images, because other rows can refer to them.
_DELETE_UNUSED = """
DELETE FROM labeling_storedimage image
WHERE project_id = %(project)s
  AND NOT EXISTS (SELECT FROM labeling_optionpart part WHERE part.image_id = image.id)
  AND NOT EXISTS (SELECT FROM labeling_problemimage asked WHERE asked.image_id = image.id)
RETURNING id"""
