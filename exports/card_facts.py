"""What is true of the rows of a manifest, counted for its card. Reads only."""

from typing import Any

from django.db.models import Count, Max, Min

from labeling.models import AgreementTally, Gold, Manifest, ManifestRow, ScreeningResult
from labeling.models.gold import GoldUse
from labeling.quality import estimate_rows, tally_arrays
from labeling.quality.tally_arrays import ReadingPairs

# How far the raters of a snapshot's own rows agree. Reads only.


MAX_DOMAINS = 12


def measure_agreement(frozen: Manifest) -> dict[str, Any] | None:
    """None where no trace has both its readings among the rows."""
    within = _traces_read_twice(frozen)
    drawn = tally_arrays.find_audit_slice(frozen.project_id)
    if drawn is not None:
        within = sorted(set(within) & set(drawn))
    if not within:
        return None
    tallied = tally_arrays.load_tally_arrays(project_id=frozen.project_id).only(within)
    meetings = tallied.pairs
    return {
        "steps": estimate_rows.step_agreement_rows(tallied.all_steps(), with_bootstrap=True),
        "first_error": estimate_rows.first_error_rows(meetings.reports(meetings.all_rows())),
        "domains": _agreement_by_domain(meetings),
        "n_traces": len(meetings),
        "is_audit_slice": drawn is not None,
    }


def _traces_read_twice(frozen: Manifest) -> list[int]:
    own = ManifestRow.objects.filter(manifest=frozen, submission__isnull=False)
    assignments = own.values("submission__assignment")
    tallied = AgreementTally.objects.filter(project=frozen.project_id, trace__in=own.values("trace"))
    both = tallied.filter(first__in=assignments, second__in=assignments)
    return sorted(set(both.values_list("trace", flat=True)))


def _agreement_by_domain(meetings: ReadingPairs) -> list[dict[str, Any]]:
    """Those with most traces first."""
    found = sorted(meetings.by("domain").items(), key=lambda each: (-len(each[1]), each[0]))
    return [
        {"key": key, "n_traces": len(rows), **estimate_rows.first_error_rows(meetings.reports(rows))}
        for key, rows in found[:MAX_DOMAINS]
    ]


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


def gather_card_facts(frozen: Manifest) -> dict[str, Any]:
    """Everything as plain JSON: kept with the snapshot, so that its card can be written again."""
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
    return {**counted, "arms": _count_arms(arms), "sources": _count_sources(sources)}


def _count_arms(found: dict[tuple[Any, ...], list[tuple[int, float | None, float | None]]]) -> list[dict[str, Any]]:
    """How traces came to be read, and with which probabilities where they were drawn."""
    arms = []
    for (draw, lane), parts in found.items():
        low = min((each for _, each, _ in parts if each is not None), default=None)
        high = max((each for _, _, each in parts if each is not None), default=None)
        arms.append({"arm": draw or lane or "", "n": sum(n for n, _, _ in parts), "low": low, "high": high})
    return sorted(arms, key=lambda each: (-each["n"], each["arm"]))


def _count_sources(found: dict[tuple[Any, ...], int]) -> list[dict[str, Any]]:
    rows = sorted(((*key, n) for key, n in found.items()), key=str)
    return [{"name": name or "", "licence": licence or "", "n": n} for name, licence, n in rows]


def _describe_process(frozen: Manifest, rows: Any) -> dict[str, Any]:
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
