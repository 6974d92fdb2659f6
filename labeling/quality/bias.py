"""Whether raters miss errors that come late, and blame long traces that are sound: told by hidden gold. Reads only."""

from collections import defaultdict
from typing import Any

from django.db.models import Count

from labeling.agreement import shares
from labeling.models import Gold, GoldAnswer
from labeling.models.quality import GoldUse, Verdict
from labeling.quality import estimates

LENGTHS = ((1, 4), (5, 8), (9, 16), (17, None))  # steps of a trace, both ends in it
LAST = 30  # steps told

_Sums = dict[int, dict[int, tuple[int, int]]]  # by bucket and problem: wrong, answers


def of_project(project_id: int) -> dict[str, list[dict[str, Any]]]:
    """`missed`: by the earliest step at which an error is accepted, the share that went past it. `blamed`: by the
    length of sound traces, the share that saw an error. Each an estimate by problem; who gave up is left out."""
    answers = GoldAnswer.objects.filter(project_id=project_id, use=GoldUse.HIDDEN).exclude(verdict=Verdict.GAVE_UP)
    counted = list(answers.values_list("gold", "verdict").annotate(Count("pk")).order_by())
    known = Gold.objects.select_related("trace").in_bulk({gold for gold, _, _ in counted})
    missed: _Sums = defaultdict(dict)
    blamed: _Sums = defaultdict(dict)
    for key, verdict, n in counted:
        gold = known[key]
        places = [at for at in gold.accepted_first_errors if at is not None]
        if None not in gold.accepted_first_errors and min(places) < LAST:
            _add(missed[min(places)], gold, n, verdict == Verdict.MISSED)
        elif not places:
            _add(blamed[_bucket(gold.trace.n_steps)], gold, n, verdict == Verdict.BLAMED)
    return {
        "missed": [{"step": step, **_share(missed[step])} for step in sorted(missed)],
        "blamed": [{"from": LENGTHS[at][0], "to": LENGTHS[at][1], **_share(blamed[at])} for at in sorted(blamed)],
    }


def _add(counts: dict[int, tuple[int, int]], gold: Gold, n: int, is_wrong: bool) -> None:
    wrong, every = counts.get(gold.trace.problem_id, (0, 0))
    counts[gold.trace.problem_id] = (wrong + n * is_wrong, every + n)


def _bucket(n_steps: int) -> int:
    return next(at for at, (_, most) in enumerate(LENGTHS) if most is None or n_steps <= most)


def _share(counts: dict[int, tuple[int, int]]) -> dict[str, Any]:
    return estimates.row(shares.of_problems(counts))
