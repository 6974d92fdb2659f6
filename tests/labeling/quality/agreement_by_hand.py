"""Agreement computed from only an exported long table: numpy for the sums, `krippendorff` for alpha.

Nothing here is imported from the platform, so that the pages are compared with an independent computation.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import krippendorff
import numpy as np

SCALE = (-1, 0, 1)
Row = Mapping[str, Any]
Rating = Mapping[str, Any]


def is_planned(rating: Rating) -> bool:
    """Return whether the label was made on the platform and counts for the headline if it is among the first two of its
    trace."""
    expected = {"rater_kind": "member", "origin": "here", "purpose": "work", "population": "scheduled"}
    return not rating["is_assisted"] and all(rating[key] == value for key, value in expected.items())


def is_imported(rating: Rating) -> bool:
    is_work = rating["origin"] == "imported" and rating["purpose"] == "work"
    return bool(is_work and rating["rater_kind"] != "machine")


def select_submissions(rows: Sequence[Row], is_chosen: Callable[[Rating], bool], *, first: int | None) -> set[int]:
    """Return the first submission of each rater of a trace, limited to the `first` ones."""
    by_trace: dict[int, dict[str, int]] = defaultdict(dict)
    submissions = {
        (row["trace"], rating["submission"], rating["rater"])
        for row in rows
        for rating in row["ratings"]
        if is_chosen(rating)
    }
    for trace, submission, rater in sorted(submissions, key=lambda item: item[:2]):
        by_trace[trace].setdefault(rater, submission)
    return {each for raters in by_trace.values() for each in sorted(raters.values())[:first]}


def compute(rows: Sequence[Row], is_chosen: Callable[[Rating], bool], *, first: int | None = None) -> dict[str, Any]:
    """Return the statistics of the agreement page by their keys, alternatives under "alternatives"."""
    chosen = select_submissions(rows, is_chosen, first=first)
    counts: dict[bool, list[list[int]]] = {False: [], True: []}
    reports: dict[int, dict[int, list[tuple[int, int | None, str | None]]]] = defaultdict(lambda: defaultdict(list))
    n_steps: dict[int, int] = defaultdict(int)
    for row in rows:
        if not row["is_rateable"]:
            continue
        place = n_steps[row["trace"]]
        if row["option"] == 0:
            n_steps[row["trace"]] += 1
        own = [each for each in row["ratings"] if each["submission"] in chosen and each["rating"] is not None]
        if own:
            counts[row["option"] > 0].append([sum(each["rating"] == value for each in own) for value in SCALE])
        if row["option"] == 0:
            for each in own:
                reports[row["trace"]][each["submission"]].append((place, each["rating"], each["finish_reason"]))
    ends = [[find_end(own, n_steps[trace]) for own in by.values()] for trace, by in reports.items()]
    exact, within, has_error = compare_ends(ends, [n_steps[trace] for trace in reports])
    return {
        **step_statistics(counts[False]),
        "exact": exact,
        "within_one": within,
        "has_error_kappa": fleiss(has_error),
        "alternatives": step_statistics(counts[True]),
        "pooled": step_statistics(counts[False] + counts[True]),
    }


def find_end(own: Iterable[tuple[int, int | None, str | None]], n_steps: int) -> int | None:
    """Return the position of a submission's first error, `n_steps` if it found none, or None if it was cut off
    before."""
    rated = sorted(own)
    error = next((place for place, rating, _ in rated if rating == -1), None)
    if error is not None:
        return error
    was_cut_off = rated[0][2] in ("give_up", "bad_problem") or len(rated) < n_steps
    return None if was_cut_off else n_steps


def compare_ends(ends: Sequence[Sequence[int | None]], lengths: Sequence[int]) -> tuple[float, float, list[list[int]]]:
    same = near = n = 0
    has_error = []
    for own, length in zip(ends, lengths, strict=True):
        known = [end for end in own if end is not None]
        has_error.append([sum(end == length for end in known), sum(end < length for end in known)])
        for one, other in itertools.combinations(known, 2):
            n += 1
            same += one == other
            near += one == other or (abs(one - other) == 1 and length not in (one, other))
    return same / n, near / n, has_error


def step_statistics(counts: Sequence[Sequence[int]]) -> dict[str, Any]:
    table = np.array(counts, dtype=float).reshape(-1, 3)
    m = table.sum(axis=1)
    paired, raters = table[m >= 2], m[m >= 2, None]
    if not len(paired):
        return {"n": 0}
    agreeing = (paired * (paired - 1)).sum(axis=1)
    observed = float((agreeing[:, None] / (raters * (raters - 1))).mean())
    share = (table / m[:, None]).mean(axis=0)
    by_chance = float((share * (1 - share)).sum() / 2)
    is_varied = (paired.sum(axis=0) > 0).sum() > 1
    return {
        "n": len(paired),
        "pairwise_agreement": float(agreeing.sum() / (raters * (raters - 1)).sum()),
        "gwet_ac1": (observed - by_chance) / (1 - by_chance),
        "fleiss_kappa": fleiss(counts) if is_varied else None,
        **{
            f"alpha_{level}": krippendorff.alpha(
                value_counts=paired.astype(int), value_domain=list(SCALE), level_of_measurement=level
            )
            if is_varied
            else None
            for level in ("nominal", "ordinal", "interval")
        },
    }


def fleiss(counts: Sequence[Sequence[int]]) -> float:
    table = np.array(counts, dtype=float)
    table = table[table.sum(axis=1) >= 2]
    m = table.sum(axis=1)
    observed = ((table * (table - 1)).sum(axis=1) / (m * (m - 1))).mean()
    by_chance = ((table / m[:, None]).mean(axis=0) ** 2).sum()
    return float((observed - by_chance) / (1 - by_chance))
