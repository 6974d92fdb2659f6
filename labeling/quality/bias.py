"""Whether raters miss errors that come late, and blame long traces that are sound: told by hidden gold. Reads only."""

from collections import defaultdict
from typing import Any

from django.db.models import Count

from labeling.agreement import proportions
from labeling.models import Gold, GoldAnswer
from labeling.models.quality import GoldUse, Verdict

LENGTHS = ((1, 4), (5, 8), (9, 16), (17, None))  # steps of a trace, both ends in it
LAST = 30  # steps told


def of_project(project_id: int) -> dict[str, list[dict[str, Any]]]:
    """`missed`: by the earliest step at which an error is accepted, the share that went past it. `blamed`: by the
    length of sound traces, the share that saw an error. Each with its n and interval; who gave up is left out."""
    answers = GoldAnswer.objects.filter(project_id=project_id, use=GoldUse.HIDDEN).exclude(verdict=Verdict.GAVE_UP)
    counted = list(answers.values_list("gold", "verdict").annotate(Count("pk")).order_by())
    known = Gold.objects.select_related("trace").in_bulk({gold for gold, _, _ in counted})
    missed: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    blamed: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for key, verdict, n in counted:
        gold = known[key]
        places = [at for at in gold.accepted_first_errors if at is not None]
        if None not in gold.accepted_first_errors and min(places) < LAST:
            _add(missed[min(places)], n, verdict == Verdict.MISSED)
        elif not places:
            _add(blamed[_bucket(gold.trace.n_steps)], n, verdict == Verdict.BLAMED)
    return {
        "missed": [{"step": step, **_share(*missed[step])} for step in sorted(missed)],
        "blamed": [{"from": LENGTHS[at][0], "to": LENGTHS[at][1], **_share(*blamed[at])} for at in sorted(blamed)],
    }


def _add(counts: list[int], n: int, is_wrong: bool) -> None:
    counts[0] += n * is_wrong
    counts[1] += n


def _bucket(n_steps: int) -> int:
    return next(at for at, (_, most) in enumerate(LENGTHS) if most is None or n_steps <= most)


def _share(wrong: int, n: int) -> dict[str, Any]:
    around = proportions.wilson(right=wrong, n=n)
    return {"n": n, "share": wrong / n, "low": around.low, "high": around.high}
