"""Which problems of a file say nearly what others of the project say. Reads alone."""

from collections import Counter
from collections.abc import Generator

from formats.near_duplicates import TextCollection
from jobs import paging
from jobs.runner import JobProgress
from labeling.models import Problem, Source
from labeling.traces.import_report import NearDuplicateSummary

MAX_PROBLEMS = 200_000  # problems of a project: beyond that it would cost more memory than an import may
EXAMPLES = 5


def find_similar_problems(
    source: Source, progress: JobProgress
) -> Generator[JobProgress, None, NearDuplicateSummary | None]:
    """Signs of life, then what was found; None where the project has too many problems to look through."""
    problems = Problem.objects.filter(project=source.project_id)
    if problems.count() > MAX_PROBLEMS:
        return None
    collection: TextCollection[int] = TextCollection()
    ours: set[int] = set()
    for number, (pk, text, source_id) in enumerate(paging.iterate_by_key(problems, "text", "source_id")):
        collection.add(pk, text)
        if source_id == source.pk:
            ours.add(pk)
        if number % paging.PAGE_SIZE == 0:
            yield progress
    return _summarize_groups(collection.groups(), ours)


def _summarize_groups(groups: dict[int, int], ours: set[int]) -> NearDuplicateSummary:
    sizes = Counter(groups.values())
    like = [pk for pk in sorted(ours) if sizes[groups[pk]] > 1]
    firsts = list(dict.fromkeys(groups[pk] for pk in like))
    found = NearDuplicateSummary(len(like), len(firsts))
    for first in firsts[:EXAMPLES]:
        pair = [pk for pk, group in groups.items() if group == first][:2]
        texts = dict(Problem.objects.filter(pk__in=pair).values_list("pk", "text"))
        found.examples.append([texts[pk][:200] for pk in pair])
    return found
