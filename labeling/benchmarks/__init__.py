"""Lists of benchmark problems: those that ship with the code, and those that leads import.

The lists apply to all projects: no project trains on a problem that evaluates models anywhere. Problems are identified
by the digest of their normalized text (`formats.normalization`); the lists that ship have its first 32 digits.
"""

import datetime as dt
import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Substr

import rawsql
from formats.normalization import LISTED_DIGITS
from labeling.models import BenchmarkProblem, Problem, Source

_SHIPPED_LISTS = Path(__file__).with_name("problem_hashes.json")
_CHUNK = 500


@cache
def load_shipped_lists() -> dict[str, frozenset[str]]:
    """Return the lists that ship, by name: the first digits of the digest of each problem."""
    lists = json.loads(_SHIPPED_LISTS.read_text())["lists"]
    return {name: frozenset(digests) for name, digests in lists.items()}


def register_problems(*, source: Source, normal_digests: Iterable[str], now: dt.datetime) -> int:
    """Add problems to the list of a source. Returns how many are new."""
    digests = set(normal_digests)
    listed = BenchmarkProblem.objects.filter(source=source, normal_digest__in=digests)
    new = sorted(digests - set(listed.values_list("normal_digest", flat=True)))
    rows = [BenchmarkProblem(source=source, normal_digest=digest, listed_at=now) for digest in new]
    BenchmarkProblem.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def forget_source(*, source: Source, now: dt.datetime) -> int:
    """Delete the list of a source. Returns how many problems it had."""
    n_deleted, _ = BenchmarkProblem.objects.filter(source=source, listed_at__lte=now).delete()
    return n_deleted


def find_lists(normal_digests: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Map each listed problem to the sorted names of its lists."""
    lists: defaultdict[str, set[str]] = defaultdict(set)
    for name, listed in load_shipped_lists().items():
        for digest in normal_digests:
            if digest[:LISTED_DIGITS] in listed:
                lists[digest].add(name)
    wanted = sorted(set(normal_digests))
    for start in range(0, len(wanted), _CHUNK):
        rows = BenchmarkProblem.objects.filter(normal_digest__in=wanted[start : start + _CHUNK])
        for digest, name in rows.values_list("normal_digest", "source__name"):
            lists[digest].add(name)
    return {digest: tuple(sorted(names)) for digest, names in lists.items()}


def count_listed_problems() -> dict[str, int]:
    """Count the problems on each list."""
    own = BenchmarkProblem.objects.values_list("source__name").annotate(n=Count("normal_digest", distinct=True))
    counts = {name: len(listed) for name, listed in load_shipped_lists().items()} | dict(own.order_by("source__name"))
    for name in counts.keys() & load_shipped_lists().keys():
        imported = BenchmarkProblem.objects.filter(source__name=name).values_list("normal_digest", flat=True)
        counts[name] = len(load_shipped_lists()[name] | {digest[:LISTED_DIGITS] for digest in imported})
    return counts


def query_listed_problems() -> QuerySet[Problem]:
    """Return the problems of all projects that are on a list."""
    public = sorted(set().union(*load_shipped_lists().values()))
    own = BenchmarkProblem.objects.values("normal_digest")
    problems = Problem.objects.annotate(listed=Substr("normal_digest", 1, LISTED_DIGITS))
    return problems.filter(Q(normal_digest__in=own) | Q(listed__in=rawsql.values_subquery(public)))
