"""Which problems of a file say nearly what others of the project say. Reads alone."""

from collections import Counter
from collections.abc import Generator

from jobs import paging
from jobs.runner import Progress
from labeling.importing.report import NearDuplicates
from labeling.models import Problem, Source
from labeling.texts.near_duplicates import Collection

AT_MOST = 200_000  # problems of a project: beyond that it would cost more memory than an import may
EXAMPLES = 5


def look(source: Source, progress: Progress) -> Generator[Progress, None, NearDuplicates | None]:
    """Signs of life, then what was found; None where the project has too many problems to look through."""
    problems = Problem.objects.filter(project=source.project_id)
    if problems.count() > AT_MOST:
        return None
    collection: Collection[int] = Collection()
    ours: set[int] = set()
    for number, (pk, text, source_id) in enumerate(paging.by_key(problems, "text", "source_id")):
        collection.add(pk, text)
        if source_id == source.pk:
            ours.add(pk)
        if number % paging.PAGE == 0:
            yield progress
    return _told(collection.groups(), ours)


def _told(groups: dict[int, int], ours: set[int]) -> NearDuplicates:
    sizes = Counter(groups.values())
    like = [pk for pk in sorted(ours) if sizes[groups[pk]] > 1]
    firsts = list(dict.fromkeys(groups[pk] for pk in like))
    found = NearDuplicates(len(like), len(firsts))
    for first in firsts[:EXAMPLES]:
        pair = [pk for pk, group in groups.items() if group == first][:2]
        texts = dict(Problem.objects.filter(pk__in=pair).values_list("pk", "text"))
        found.examples.append([texts[pk][:200] for pk in pair])
    return found
