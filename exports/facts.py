"""What is true of the rows of a manifest, counted for its card. Reads only."""

from typing import Any

from django.db.models import Count, Max, Min

from exports import agreeing, ratings
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


def gather(frozen: Manifest) -> dict[str, Any]:
    """Everything as plain JSON: kept with the snapshot, so that its card can be written again."""
    rows = ManifestRow.objects.filter(manifest=frozen)
    totals = rows.aggregate(
        traces=Count("trace", distinct=True),
        problems=Count("trace__problem__normal_digest", distinct=True),
        raters=Count(f"{_ASSIGNMENT}rater", distinct=True),
        submissions=Count("submission"),
    )
    counted = {name: _counts(rows, path) for name, path in _COUNTED.items()}
    return {
        **totals,
        **counted,
        **ratings.count(frozen),
        "arms": _arms(rows),
        "sources": _sources(rows),
        "process": _process(frozen, rows),
        "agreement": agreeing.of_rows(frozen),
    }


def _counts(rows: Any, path: str) -> dict[str, int]:
    """Submissions (or traces) by what stands there; nothing is a name too."""
    found = rows.order_by().values_list(path).annotate(n=Count("pk"))
    return {("" if key is None else str(key)): n for key, n in found}


def _arms(rows: Any) -> list[dict[str, Any]]:
    """How traces came to be read, and with which probabilities where they were drawn."""
    drawn = rows.order_by().values_list(f"{_ASSIGNMENT}draw__arm", f"{_ASSIGNMENT}lane__arm")
    found = drawn.annotate(n=Count("pk"), low=Min(f"{_ASSIGNMENT}draw__q"), high=Max(f"{_ASSIGNMENT}draw__q"))
    return [
        {"arm": draw or lane or "", "n": n, "low": low, "high": high}
        for draw, lane, n, low, high in sorted(found, key=lambda row: -row[2])
    ]


def _sources(rows: Any) -> list[dict[str, Any]]:
    found = rows.order_by().values_list("trace__source__name", "trace__source__licence").annotate(n=Count("pk"))
    return [{"name": name or "", "licence": licence or "", "n": n} for name, licence, n in sorted(found, key=str)]


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
