"""Agreement between the people whose labels came from files. It is computed separately from the headline.

These labelers worked elsewhere, under rules that are unknown here. So they never enter the headline; any number of them
may have labeled the same trace, so that each estimate uses all of their ratings. Machines, gold and screening are left
out. The agreement covers traces with fixed steps; `ImportedLabels.mix` counts the ratings of live traces too.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import rawsql
from labeling.models import Problem
from labeling.quality import tallies
from stats import rating_patterns
from stats.arrays import Bools, Ints
from stats.first_error_reports import ReportArrays
from stats.rating_patterns import RatingPatterns

_PART = rawsql.sections(rawsql.load_sql(__file__, "imported_ratings.sql"))
_VERSION, _RATINGS, _REPORTS = (_PART["work"] + _PART[name] for name in ("version", "ratings", "reports"))
MAX_PAIRS = 100


@dataclass(frozen=True)
class ImportedLabels:
    steps: RatingPatterns
    alternatives: RatingPatterns
    mix: Counter[str]  # ratings by value
    reports: ReportArrays
    raters: Ints  # the id of each rater of the reports
    traces: Ints  # the id of each trace of the reports
    domains: dict[str, RatingPatterns]  # the steps of each domain, in the order of `reports.domains`


def load_imported_labels(
    project_id: int, *, manifest_id: int | None = None, only: Collection[int] = (), without: Collection[int] = ()
) -> ImportedLabels:
    """Load the labels of a project, or those of the submissions in a manifest; of all raters, or of some."""
    wanted = {"project": project_id, "manifest": manifest_id, "only": sorted(only) or None, "without": sorted(without)}
    ratings = rawsql.fetch_rows(_RATINGS, wanted)
    domain_of = dict(Problem.objects.filter(project=project_id).values_list("pk", "domain"))
    domains = sorted(set(domain_of.values()))
    mix: Counter[str] = Counter()
    for _problem, _is_live, _is_alternative, *counts, n_options in ratings:
        mix.update({rating: n * n_options for rating, n in zip(("-1", "0", "1"), counts, strict=True)})
    reports = np.array(rawsql.fetch_rows(_REPORTS, wanted), dtype=np.int64).reshape(-1, 6)
    trace_ids, first, traces = np.unique(reports[:, 0], return_index=True, return_inverse=True)
    rater_ids, raters = np.unique(reports[:, 1], return_inverse=True)
    return ImportedLabels(
        steps=_select_patterns(ratings),
        alternatives=_select_patterns(ratings, is_alternative=True),
        domains={name: _select_patterns([row for row in ratings if domain_of[row[0]] == name]) for name in domains},
        mix=mix,
        reports=ReportArrays(
            traces=traces.astype(np.int64),
            raters=raters.astype(np.int64),
            ends=reports[:, 4],
            is_censored=reports[:, 5] > 0,
            lengths=reports[first, 3],
            problems=np.unique(reports[first, 2], return_inverse=True)[1].astype(np.int64),
            domains=np.array([domains.index(domain_of[pk]) for pk in reports[first, 2].tolist()], dtype=np.int64),
        ),
        raters=rater_ids,
        traces=trace_ids,
    )


def update_imported_stats(project_id: int, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"version", "mix", "agreement"}. It is `stored` if the labels are the same: reading them takes seconds for
    a million ratings, and they change only by imports, withdrawals and the like."""
    wanted: dict[str, Any] = {"project": project_id, "manifest": None, "only": None, "without": []}
    version = [list(row) for row in rawsql.fetch_rows(_VERSION, wanted)]
    if stored.get("version") == version:
        return dict(stored)
    labels = load_imported_labels(project_id)
    return {"version": version, "mix": dict(labels.mix), "agreement": build_imported_stats(labels)}


def _select_patterns(rows: list[tuple[Any, ...]], *, is_alternative: bool = False) -> RatingPatterns:
    return rating_patterns.patterns_from_rows(
        (problem, counts, n)
        for problem, is_live, alternative, *counts, n in rows
        if not is_live and alternative == is_alternative
    )


def build_imported_stats(labels: ImportedLabels) -> dict[str, Any] | None:
    """Return the agreement of imported labels in the form of the headline, or None if there are none."""
    if not labels.steps.n_units:
        return None
    return {
        "steps": tallies.step_agreement_rows(labels.steps, with_bootstrap=True),
        "alternatives": tallies.step_agreement_rows(labels.alternatives),
        "first_error": tallies.first_error_rows(labels.reports, with_bootstrap=True),
        "labels": tallies.label_shares_row(labels.steps),
        "n_traces": len(labels.traces),
        "n_traces_read_twice": count_traces_read_twice(labels),
        "n_raters": len(labels.raters),
        "pair": _build_rater_pairs(labels),
        "domain": [_build_domain(labels, n, name) for n, name in enumerate(labels.domains)],
    }


def count_traces_read_twice(labels: ImportedLabels) -> int:
    """Return how many traces have labels of two people."""
    return int((np.bincount(labels.reports.traces, minlength=labels.reports.n_traces) >= 2).sum())


def _build_domain(labels: ImportedLabels, n: int, name: str) -> dict[str, Any]:
    reports = labels.reports
    return {
        "key": name,
        "steps": tallies.step_agreement_rows(labels.domains[name]),
        "first_error": tallies.first_error_rows(_select_reports(reports, reports.domains[reports.traces] == n)),
    }


def _build_rater_pairs(labels: ImportedLabels) -> list[dict[str, Any]]:
    """Compare each two raters on the traces that both labeled, pairs with the most traces first."""
    reports = labels.reports
    n_raters = len(labels.raters)
    if reports.n_traces * n_raters > _MAX_CELLS:
        return []
    rows_of = np.full((reports.n_traces, n_raters), -1)
    rows_of[reports.traces, reports.raters] = np.arange(len(reports.traces))
    has_labeled = (rows_of >= 0).astype(np.float32)
    shared = np.triu(has_labeled.T @ has_labeled, k=1)
    largest = np.argsort(-shared, axis=None, kind="stable")[:MAX_PAIRS]
    pairs = [divmod(int(place), n_raters) for place in largest if shared.flat[place] > 0]
    return [
        {
            "raters": [int(labels.raters[one]), int(labels.raters[other])],
            "first_error": tallies.first_error_rows(_select_raters(reports, rows_of[:, [one, other]])),
        }
        for one, other in pairs
    ]


_MAX_CELLS = 50_000_000  # of the table of traces and raters; larger projects show no pairs


def _select_raters(reports: ReportArrays, rows: Ints) -> ReportArrays:
    """Return the reports of the traces that all of these raters labeled. `rows` has one report per trace and rater."""
    is_chosen = np.zeros(len(reports.traces), dtype=np.bool_)
    is_chosen[rows[(rows >= 0).all(axis=1)].ravel()] = True
    return _select_reports(reports, is_chosen)


def _select_reports(reports: ReportArrays, is_chosen: Bools) -> ReportArrays:
    traces, index = np.unique(reports.traces[is_chosen], return_inverse=True)
    return ReportArrays(
        traces=index.astype(np.int64),
        raters=reports.raters[is_chosen],
        ends=reports.ends[is_chosen],
        is_censored=reports.is_censored[is_chosen],
        lengths=reports.lengths[traces],
        problems=np.unique(reports.problems[traces], return_inverse=True)[1].astype(np.int64),
        domains=reports.domains[traces],
    )
