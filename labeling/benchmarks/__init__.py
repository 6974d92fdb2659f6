"""Which problems stand on a list of a benchmark: those lists that ship with the code, and those that leads have brought
in. Alone changes BenchmarkProblem.

The list of one is the list of all: a problem that judges models anywhere is not trained on in any project. Problems are
told by their normal digest (`formats.normalization`), of which the public lists hold the first 32 digits.
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

_FACTS = Path(__file__).with_name("problem_hashes.json")
_CHUNK = 500


@cache
def load_shipped_lists() -> dict[str, frozenset[str]]:
    """The public lists, by name: the first digits of each problem's normal digest."""
    lists = json.loads(_FACTS.read_text())["lists"]
    return {name: frozenset(digests) for name, digests in lists.items()}


def register_problems(*, source: Source, normal_digests: Iterable[str], now: dt.datetime) -> int:
    """Put problems on the list that the source is; says how many were not there. Doing it again adds nothing."""
    wanted = set(normal_digests)
    there = set(
        BenchmarkProblem.objects.filter(source=source, normal_digest__in=wanted).values_list("normal_digest", flat=True)
    )
    rows = [BenchmarkProblem(source=source, normal_digest=digest, listed_at=now) for digest in sorted(wanted - there)]
    BenchmarkProblem.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def forget_source(*, source: Source, now: dt.datetime) -> int:
    """Take the list of a source away."""
    n_deleted, _ = BenchmarkProblem.objects.filter(source=source, listed_at__lte=now).delete()
    return n_deleted


def find_lists(normal_digests: Collection[str]) -> dict[str, tuple[str, ...]]:
    """For each of these problems that stands on a list, the names of its lists in order."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, listed in load_shipped_lists().items():
        for digest in normal_digests:
            if digest[:LISTED_DIGITS] in listed:
                found[digest].add(name)
    wanted = sorted(set(normal_digests))
    for start in range(0, len(wanted), _CHUNK):
        rows = BenchmarkProblem.objects.filter(normal_digest__in=wanted[start : start + _CHUNK])
        for digest, name in rows.values_list("normal_digest", "source__name"):
            found[digest].add(name)
    return {digest: tuple(sorted(names)) for digest, names in found.items()}


def count_listed_problems() -> dict[str, int]:
    """How many problems stand on each list."""
    own = BenchmarkProblem.objects.values_list("source__name").annotate(n=Count("normal_digest", distinct=True))
    found = {name: len(listed) for name, listed in load_shipped_lists().items()} | dict(own.order_by("source__name"))
    for name in found.keys() & load_shipped_lists().keys():
        brought = BenchmarkProblem.objects.filter(source__name=name).values_list("normal_digest", flat=True)
        found[name] = len(load_shipped_lists()[name] | {digest[:LISTED_DIGITS] for digest in brought})
    return found


def query_listed_problems() -> QuerySet[Problem]:
    """Problems of any project that stand on a list: of these the text is known, of the others the digest alone."""
    public = sorted(set().union(*load_shipped_lists().values()))
    own = BenchmarkProblem.objects.values("normal_digest")
    problems = Problem.objects.annotate(listed=Substr("normal_digest", 1, LISTED_DIGITS))
    return problems.filter(Q(normal_digest__in=own) | Q(listed__in=rawsql.values_subquery(public)))
