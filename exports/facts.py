"""What is true of the rows of a manifest, counted for its card. Reads only."""

from typing import Any

from django.db.models import Count, Max, Min

from exports import agreeing
from labeling.models import Gold, Manifest, ManifestRow, ScreeningResult
from labeling.models.quality import GoldUse

_ASSIGNMENT = "submission__assignment__"
# What is counted, by the path from a row of the manifest.
_COUNTED = {
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


def gather(frozen: Manifest) -> dict[str, Any]:
    """Everything as plain JSON: kept with the snapshot, so that its card can be written again."""
    rows = ManifestRow.objects.filter(manifest=frozen)
    totals = rows.aggregate(
        traces=Count("trace", distinct=True),
        problems=Count("trace__problem__normal_digest", distinct=True),
        raters=Count(f"{_ASSIGNMENT}rater", distinct=True),
        submissions=Count("submission"),
    )
    return {**totals, **_counts(rows), "process": _process(frozen, rows), "agreement": agreeing.of_rows(frozen)}


def _counts(rows: Any) -> dict[str, Any]:
    """Submissions (or traces) by what stands there; nothing is a name too. The database looks at all rows once, for
    what few of them differ in, and that is sorted out here."""
    counted: dict[str, dict[str, int]] = {name: {} for name in _COUNTED}
    arms: dict[tuple[Any, ...], list[tuple[int, float | None, float | None]]] = {}
    sources: dict[tuple[Any, ...], int] = {}
    found = rows.order_by().values_list(*_COUNTED.values(), *_SOURCE, *_ARM)
    drawn = f"{_ASSIGNMENT}draw__q"
    for *keys, name, licence, draw, lane, n, low, high in found.annotate(
        n=Count("pk"), low=Min(drawn), high=Max(drawn)
    ):
        for counts, key in zip(counted.values(), keys, strict=True):
            word = "" if key is None else str(key)
            counts[word] = counts.get(word, 0) + n
        sources[name, licence] = sources.get((name, licence), 0) + n
        arms.setdefault((draw, lane), []).append((n, low, high))
    return {**counted, "arms": _arms(arms), "sources": _sources(sources)}


def _arms(found: dict[tuple[Any, ...], list[tuple[int, float | None, float | None]]]) -> list[dict[str, Any]]:
    """How traces came to be read, and with which probabilities where they were drawn."""
    arms = []
    for (draw, lane), parts in found.items():
        low = min((each for _, each, _ in parts if each is not None), default=None)
        high = max((each for _, _, each in parts if each is not None), default=None)
        arms.append({"arm": draw or lane or "", "n": sum(n for n, _, _ in parts), "low": low, "high": high})
    return sorted(arms, key=lambda each: (-each["n"], each["arm"]))


def _sources(found: dict[tuple[Any, ...], int]) -> list[dict[str, Any]]:
    rows = sorted(((*key, n) for key, n in found.items()), key=str)
    return [{"name": name or "", "licence": licence or "", "n": n} for name, licence, n in rows]


def _process(frozen: Manifest, rows: Any) -> dict[str, Any]:
    """How raters came to rate, as the project stands now."""
    project = frozen.project
    known = dict(Gold.objects.filter(trace__project=project).values_list("use").annotate(n=Count("pk")))
    passed = ScreeningResult.objects.filter(has_passed=True, rater__in=rows.values(f"{_ASSIGNMENT}rater"))
    return {
        "overlap": project.overlap,
        "overlap_limit": project.overlap_limit,
        "training_traces": known.get(GoldUse.TRAINING, 0),
        "screening_traces": known.get(GoldUse.SCREENING, 0),
        "hidden_gold": known.get(GoldUse.HIDDEN, 0),
        "pass_share": project.screening_pass_share,
        "screened": passed.values("rater").distinct().count(),
        "pay": f"{project.pay_per_hour} {project.currency}" if project.pay_per_hour is not None else "",
    }
