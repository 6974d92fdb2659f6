"""Count the facts that a dataset card reports about the rows of a manifest. Reads only."""

from collections import Counter, defaultdict
from typing import Any

from django.db.models import Count, Max, Min

from labeling.models import AgreementTally, Gold, Manifest, ManifestRow, ScreeningResult
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
