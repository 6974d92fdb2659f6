"""Find problems of a file that are similar to other problems of the project."""

from collections import Counter
from collections.abc import Generator

from formats.near_duplicates import TextCollection
from jobs import paging
from jobs.runner import JobProgress
from labeling.models import Problem, Source
from labeling.traces.import_report import NearDuplicateSummary

MAX_PROBLEMS = 200_000  # of a project; more would need too much memory
EXAMPLES = 5


def find_similar_problems(
    source: Source, progress: JobProgress
) -> Generator[JobProgress, None, NearDuplicateSummary | None]:
    """Yield progress, then return a summary, or None if the project has too many problems."""
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
    similar = [pk for pk in sorted(ours) if sizes[groups[pk]] > 1]
    firsts = list(dict.fromkeys(groups[pk] for pk in similar))
    summary = NearDuplicateSummary(len(similar), len(firsts))
    for first in firsts[:EXAMPLES]:
        pair = [pk for pk, group in groups.items() if group == first][:2]
        texts = dict(Problem.objects.filter(pk__in=pair).values_list("pk", "text"))
        summary.examples.append([texts[pk][:200] for pk in pair])
    return summary
