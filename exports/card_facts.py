"""Count the facts that a dataset card reports about the rows of a manifest. Reads only."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from django.db.models import Count, Max, Min
from msgspec import Struct, field

import rawsql
from formats.rows import CompactRow, ExportRow, split_turns
from labeling.models import AgreementTally, Gold, Manifest, ManifestRow, ScreeningResult
from labeling.models.assignment import FinishReason
from labeling.models.gold import GoldUse
from labeling.quality import estimate_rows, tally_arrays

MAX_DOMAINS = 12
_ASSIGNMENT = "submission__assignment__"
# Each fact counts the rows by one column: its path from a row of the manifest.
_COUNTED_COLUMNS = {
    "guidelines": f"{_ASSIGNMENT}guideline__version",
    "rater_kinds": f"{_ASSIGNMENT}rater__kind",
    "machines": f"{_ASSIGNMENT}rater__machine",
    "purposes": f"{_ASSIGNMENT}purpose",
    "populations": f"{_ASSIGNMENT}population",
    "origins": f"{_ASSIGNMENT}origin",
    "assisted": f"{_ASSIGNMENT}is_assisted",
    "saw_reference_answer": f"{_ASSIGNMENT}saw_reference_answer",
    "saw_final_verdict": f"{_ASSIGNMENT}saw_final_verdict",
    "finish_reasons": "submission__finish_reason",
    "domains": "trace__problem__domain",
    "base_models": "trace__provenance__base_model",
    "policies": "trace__provenance__policy",
    "scaffolds": "trace__provenance__scaffold",
    "segmenters": "trace__provenance__segmenter",
    "contested": "is_contested",
    "choosing_prms": f"{_ASSIGNMENT}draw__prm",
    "outcomes": "trace__is_right",
}
_SOURCE = ("trace__source__name", "trace__source__licence")
_ARM = (f"{_ASSIGNMENT}draw__arm", f"{_ASSIGNMENT}lane__arm")


def gather_card_facts(frozen: Manifest) -> dict[str, Any]:
    """Return all facts as plain JSON. They are stored with the snapshot, so that its card can be written again."""
    rows = ManifestRow.objects.filter(manifest=frozen)
    totals = rows.aggregate(
        traces=Count("trace", distinct=True),
        problems=Count("trace__problem__normal_digest", distinct=True),
        raters=Count(f"{_ASSIGNMENT}rater", distinct=True),
        submissions=Count("submission"),
    )
    return {
        **totals,
        **_count_rows(rows),
        "process": _describe_process(frozen, rows),
        "agreement": measure_agreement(frozen),
    }


def _count_rows(rows: Any) -> dict[str, Any]:
    """Count the rows by each column. One query groups by all columns together, which gives few groups."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in _COUNTED_COLUMNS}
    sources: Counter[tuple[str, str]] = Counter()
    arms: defaultdict[tuple[str, bool], list[tuple[int, float | None, float | None]]] = defaultdict(list)
    q = f"{_ASSIGNMENT}draw__q"
    groups = rows.order_by().values_list(*_COUNTED_COLUMNS.values(), *_SOURCE, *_ARM)
    for *values, source, licence, draw_arm, lane_arm, n, low, high in groups.annotate(
        n=Count("pk"), low=Min(q), high=Max(q)
    ):
        for counter, value in zip(counts.values(), values, strict=True):
            counter["" if value is None else str(value)] += n
        sources[source or "", licence or ""] += n
        arms[draw_arm or lane_arm or "", low is not None].append((n, low, high))
    return {
        **{name: dict(counter) for name, counter in counts.items()},
        "arms": sorted(
            (_sum_arm(arm, parts) for (arm, _), parts in arms.items()), key=lambda each: (-each["n"], each["arm"])
        ),
        "sources": [{"name": name, "licence": licence, "n": n} for (name, licence), n in sorted(sources.items())],
    }


def _sum_arm(arm: str, parts: list[tuple[int, float | None, float | None]]) -> dict[str, Any]:
    """Return the rows of a sampling source, and the range of the probabilities of its draws."""
    low = min((low for _, low, _ in parts if low is not None), default=None)
    high = max((high for _, _, high in parts if high is not None), default=None)
    return {"arm": arm, "n": sum(n for n, _, _ in parts), "low": low, "high": high}


def _describe_process(frozen: Manifest, rows: Any) -> dict[str, Any]:
    """Return the project's current settings for how traces are labeled."""
    project = frozen.project
    gold = dict(Gold.objects.filter(trace__project=project).values_list("use").annotate(n=Count("pk")))
    passed = ScreeningResult.objects.filter(has_passed=True, rater__in=rows.values(f"{_ASSIGNMENT}rater"))
    return {
        "overlap": project.overlap,
        "overlap_limit": project.overlap_limit,
        "training_traces": gold.get(GoldUse.TRAINING, 0),
        "screening_traces": gold.get(GoldUse.SCREENING, 0),
        "hidden_gold": gold.get(GoldUse.HIDDEN, 0),
        "pass_share": project.screening_pass_share,
        "screened": passed.values("rater").distinct().count(),
        "pay": f"{project.pay_per_hour} {project.currency}" if project.pay_per_hour is not None else "",
    }


# --- agreement -------------------------------------------------------------------------------------------------------


def measure_agreement(frozen: Manifest) -> dict[str, Any] | None:
    """Measure agreement on traces whose first two scheduled submissions are both among the rows. None without any."""
    traces = _find_paired_traces(frozen)
    audit_slice = tally_arrays.find_audit_slice(frozen.project_id)
    if audit_slice is not None:
        traces &= set(audit_slice)
    if not traces:
        return None
    arrays = tally_arrays.load_tally_arrays(project_id=frozen.project_id).only(sorted(traces))
    pairs = arrays.pairs
    by_domain = sorted(pairs.by("domain").items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        "steps": estimate_rows.step_agreement_rows(arrays.all_steps(), with_bootstrap=True),
        "first_error": estimate_rows.first_error_rows(pairs.reports(pairs.all_rows())),
        "domains": [
            {"key": domain, "n_traces": len(rows), **estimate_rows.first_error_rows(pairs.reports(rows))}
            for domain, rows in by_domain[:MAX_DOMAINS]
        ],
        "n_traces": len(pairs),
        "is_audit_slice": audit_slice is not None,
    }


def _find_paired_traces(frozen: Manifest) -> set[int]:
    rows = ManifestRow.objects.filter(manifest=frozen, submission__isnull=False)
    assignments = rows.values("submission__assignment")
    tallies = AgreementTally.objects.filter(project=frozen.project_id, trace__in=rows.values("trace"))
    return set(tallies.filter(first__in=assignments, second__in=assignments).values_list("trace", flat=True))


# How ratings are distributed, and where first errors are. Counted while a shard is written, from the compact rows; the


CUT_OFF = (FinishReason.GIVE_UP.value, FinishReason.BAD_PROBLEM.value)
# The inner query has a row per submission: the number of each rating, the position of the first error among the trace's
# own steps (the first options), and whether the submission ended early.
_COUNT_SUBMISSIONS = """SELECT place, was_cut_off, COUNT(*), SUM(negative), SUM(neutral), SUM(positive) FROM (
  SELECT COUNT(*) FILTER (WHERE j.rating = -1) AS negative,
    COUNT(*) FILTER (WHERE j.rating = 0) AS neutral,
    COUNT(*) FILTER (WHERE j.rating = 1) AS positive,
    MIN(s.position) FILTER (WHERE j.rating = -1 AND o.position = 0) AS place,
    BOOL_OR(u.finish_reason IN ('give_up', 'bad_problem')) AS was_cut_off
  FROM labeling_manifestrow m
  JOIN labeling_submission u ON u.id = m.submission_id
  JOIN labeling_stepreview t ON t.assignment_id = u.assignment_id AND t.revision = u.revision
  JOIN labeling_step s ON s.id = t.step_id
  LEFT JOIN labeling_judgment j ON j.turn_id = t.id
  LEFT JOIN labeling_option o ON o.id = j.option_id
  WHERE m.manifest_id = %(manifest)s AND m.position = ANY (%(positions)s) GROUP BY m.position) AS submission
GROUP BY place, was_cut_off"""


class RatingCounts(NamedTuple):
    first_error: int | None
    negative: int
    neutral: int
    positive: int


class RatingSpread(Struct):
    """`labels` by rating; `first_errors` by position from 0, plus `none` (no error) and `cut_off` (ended early)."""

    labels: dict[str, int] = field(default_factory=lambda: {"-1": 0, "0": 0, "1": 0})
    first_errors: dict[str, int] = field(default_factory=dict)

    def count(self, frozen: Manifest, rows: Iterable[ExportRow]) -> None:
        other_positions = []
        counts: Counter[tuple[RatingCounts, bool]] = Counter()
        for row in rows:
            if row.plain is not None:
                counts[_count_ratings(row.plain), row.facts.finish_reason in CUT_OFF] += 1
            elif row.facts.submission is not None:
                other_positions.append(row.facts.position)
        for (ratings, was_cut_off), n in counts.items():
            self._add(ratings.first_error, was_cut_off, n, [n * each for each in ratings[1:]])
        for first_error, was_cut_off, n, *sums in _query_counts(frozen, other_positions):
            self._add(first_error, was_cut_off, n, sums)

    def _add(self, first_error: int | None, was_cut_off: bool, n: int, ratings: Sequence[int]) -> None:
        key = str(first_error) if first_error is not None else "cut_off" if was_cut_off else "none"
        self.first_errors[key] = self.first_errors.get(key, 0) + n
        for rating, n_ratings in zip(("-1", "0", "1"), ratings, strict=True):
            self.labels[rating] += int(n_ratings)


def merge_spreads(spreads: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """Add up the spreads of all shards."""
    total = {"labels": Counter({"-1": 0, "0": 0, "1": 0}), "first_errors": Counter[str]()}
    for spread in spreads:
        for part, counts in total.items():
            counts.update(spread[part])
    return {part: dict(counts) for part, counts in total.items()}


def _query_counts(frozen: Manifest, positions: Sequence[int]) -> list[tuple[Any, ...]]:
    if not positions:
        return []
    return rawsql.fetch_rows(_COUNT_SUBMISSIONS, {"manifest": frozen.pk, "positions": sorted(set(positions))})


def _count_ratings(plain: CompactRow) -> RatingCounts:
    if not plain.more:
        return _count_cells(plain.cells)
    turns = split_turns(plain)
    ratings = Counter(rating for turn in turns for _option, rating, _flagged in turn.shown)
    errors = (turn.position for turn in turns for option, rating, _ in turn.shown if option == 0 and rating == -1)
    return RatingCounts(next(errors, None), ratings[-1], ratings[0], ratings[1])


@lru_cache(maxsize=2000)
def _count_cells(cells: str) -> RatingCounts:
    """Count a trace in which each step has one option, so that each cell is one rating. Many rows have equal cells."""
    ratings = [cell.split(",", 3)[2] for cell in cells.split(";")]
    first_error = ratings.index("-1") if "-1" in ratings else None
    return RatingCounts(first_error, ratings.count("-1"), ratings.count("0"), ratings.count("1"))
