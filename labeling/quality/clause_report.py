"""How raters cite the clauses of the guideline: agreement, clauses that nobody cites, contested ones, and what changed
between versions.

The text of a clause is its identity: a clause that only got another number is still the same. The report covers the
latest submissions of traces with enough labels, and the trace's own option of each step.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from django.db.models import F

from labeling.models import Guideline, Judgment, Project
from labeling.projects import taxonomies
from labeling.projects.clauses import Clause
from labeling.quality import explanations
from labeling.quality.consensus import NEGATIVE

POSITIVE = 1


class CitingRating(NamedTuple):
    """A rating with the texts (digests) of the clauses that it cites."""

    problem: int
    step: int
    rating: int
    version: int | None  # of the guideline
    digests: frozenset[str]


class ClauseFigures(NamedTuple):
    """How often ratings cite the present text of a clause. A step counts as shared if at least two ratings of it cite
    clauses and one of them cites this one, as contested if not all of them do, and as opposed if one rating that cites
    it is positive and another one negative."""

    clause: Clause
    n_negative: int = 0
    n_other: int = 0
    n_shared: int = 0
    n_contested: int = 0
    n_opposed: int = 0

    @property
    def n_cited(self) -> int:
        return self.n_negative + self.n_other

    @property
    def contested_share(self) -> float | None:
        return self.n_contested / self.n_shared if self.n_shared else None


class VersionDrift(NamedTuple):
    """The changes of a version since the version before it. `distance` is half of the sum of the differences between
    the shares of citations of each clause (total variation), from 0 for the same use to 1."""

    version: int
    n_ratings: int  # that cite clauses of this version
    n_clauses: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()  # the same number or title with another text
    renumbered: tuple[str, ...] = ()
    distance: float | None = None  # None for the first version, and without citations of both


class ClauseReport(NamedTuple):
    agreement: dict[str, Any]  # alpha of the cited sets, as `tallies.estimate_row` has it
    clauses: tuple[ClauseFigures, ...]  # of the current version, in its order
    n_ratings: int  # that cite clauses
    n_outdated: int  # of these, those that cite a text that the current version no longer has
    versions: tuple[VersionDrift, ...]  # those with clauses, from the first

    @property
    def never_cited(self) -> list[Clause]:
        return [each.clause for each in self.clauses if not each.n_cited]

    @property
    def most_contested(self) -> list[ClauseFigures]:
        """Return the contested clauses, the most contested first."""
        contested = [each for each in self.clauses if each.n_contested or each.n_opposed]
        return sorted(contested, key=lambda each: (-each.n_contested, -each.n_opposed))


def build_clause_report(project: Project) -> ClauseReport:
    """Compute the report from the latest submissions."""
    ratings = _load_ratings(project.pk)
    versions = {
        guideline.version: taxonomies.parse_taxonomy(guideline.taxonomy).clauses
        for guideline in Guideline.objects.filter(project=project, taxonomy__has_key="clauses").order_by("version")
    }
    current = taxonomies.load_taxonomy(project).clauses
    texts = {clause.digest for clause in current}
    answers = [(each.problem, each.step, " ".join(sorted(each.digests))) for each in ratings]
    return ClauseReport(
        explanations.estimate_set_agreement(answers),
        tuple(_count_citations(current, ratings)),
        n_ratings=len(ratings),
        n_outdated=sum(not each.digests <= texts for each in ratings),
        versions=tuple(_describe_versions(versions, ratings)),
    )


def _load_ratings(project_id: int) -> list[CitingRating]:
    rows = Judgment.objects.filter(
        turn__assignment__in=explanations.list_newest_submissions(project_id),
        turn__revision=F("turn__assignment__submitted_revision"),
        option__position=0,
        rating__isnull=False,
        citations__isnull=False,
    )
    columns = (
        *("turn__assignment__trace__problem_id", "turn__step_id", "rating"),
        *("turn__assignment__guideline__version", "citations"),
    )
    return [
        CitingRating(problem, step, rating, version, frozenset(cited["digest"] for cited in citations))
        for problem, step, rating, version, citations in rows.values_list(*columns)
    ]


def _count_citations(clauses: Sequence[Clause], ratings: Sequence[CitingRating]) -> Iterator[ClauseFigures]:
    by_step: dict[int, list[CitingRating]] = defaultdict(list)
    for rating in ratings:
        by_step[rating.step].append(rating)
    for clause in clauses:
        citing = [each for each in ratings if clause.digest in each.digests]
        shared = [each for each in map(by_step.__getitem__, {each.step for each in citing}) if len(each) > 1]
        agreeing = [[each for each in step if clause.digest in each.digests] for step in shared]
        signs = [{each.rating for each in step} for step in agreeing]
        n_negative = sum(each.rating == NEGATIVE for each in citing)
        yield ClauseFigures(
            clause,
            n_negative=n_negative,
            n_other=len(citing) - n_negative,
            n_shared=len(shared),
            n_contested=sum(len(own) < len(step) for own, step in zip(agreeing, shared, strict=True)),
            n_opposed=sum({NEGATIVE, POSITIVE} <= each for each in signs),
        )


def _describe_versions(
    versions: Mapping[int, Sequence[Clause]], ratings: Sequence[CitingRating]
) -> Iterator[VersionDrift]:
    by_version: dict[int | None, list[CitingRating]] = defaultdict(list)
    for rating in ratings:
        by_version[rating.version].append(rating)
    for version in list(versions)[:1]:
        yield VersionDrift(version, len(by_version[version]), len(versions[version]))
    for before, after in pairwise(versions):
        yield _compare_versions(
            *(after, versions[before], versions[after]),
            *(by_version[before], by_version[after]),
        )


def _compare_versions(
    version: int,
    old: Sequence[Clause],
    new: Sequence[Clause],
    old_ratings: Sequence[CitingRating],
    new_ratings: Sequence[CitingRating],
) -> VersionDrift:
    successors = match_clauses(old, new)
    found = {after.code for after in successors.values()}
    pairs = [(before, successors[before.code]) for before in old if before.code in successors]
    # Count each clause under its new number; a removed one under its digest.
    names = {before.digest: successors[before.code].code for before in old if before.code in successors}
    shares = [
        _share_citations(old_ratings, names),
        _share_citations(new_ratings, {each.digest: each.code for each in new}),
    ]
    distance = None
    if all(shares):
        keys = shares[0].keys() | shares[1].keys()
        distance = sum(abs(shares[0].get(key, 0) - shares[1].get(key, 0)) for key in keys) / 2
    return VersionDrift(
        version,
        len(new_ratings),
        len(new),
        added=tuple(each.code for each in new if each.code not in found),
        removed=tuple(each.code for each in old if each.code not in successors),
        changed=tuple(after.code for before, after in pairs if before.digest != after.digest),
        renumbered=tuple(after.code for before, after in pairs if before.code != after.code),
        distance=distance,
    )


def match_clauses(old: Sequence[Clause], new: Sequence[Clause]) -> dict[str, Clause]:
    """Map the numbers of clauses to what they became: the clause with the same text, else with the same title, else
    with the same number. What has none of these was removed."""
    matched: dict[str, Clause] = {}
    taken: set[str] = set()
    for key in ("digest", "title", "code"):
        for before in old:
            after = next(
                (each for each in new if getattr(each, key) == getattr(before, key) and each.code not in taken), None
            )
            if before.code not in matched and after is not None:
                matched[before.code] = after
                taken.add(after.code)
    return matched


def _share_citations(ratings: Sequence[CitingRating], names: Mapping[str, str]) -> dict[str, float]:
    """Return the share of each clause among all citations. A text without a name keeps its digest."""
    counts = Counter(names.get(digest, f"text {digest}") for each in ratings for digest in each.digests)
    return {name: n / counts.total() for name, n in counts.items()}
