"""The dataset card of a snapshot, with its figures, and the disclosures of a lead that it prints.

A card is YAML front matter for the Hugging Face hub, then Markdown. Leads publish this text. It reports what is known,
prints "not stated" for the rest, and puts the limits of each figure next to it. The same snapshot always gives the same
card. Only this module writes `ProjectDisclosure`.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from accounts.models import User
from charts.standalone import ShareBar, ShareInterval, draw_share_bars, draw_share_intervals
from events import audit_log
from exports.files import WrittenFile
from exports.models import ProjectDisclosure, Snapshot
from exports.orders import ARCHIVE_EXCLUSIONS, EXCLUSION_LABELS, SnapshotOrder, load_order
from formats import label_sets
from formats.catalog import OUTPUT_FORMATS
from formats.examples import Columns, ColumnType
from labeling.models import Project
from labeling.projects import taxonomies
from machines import identities

NOT_STATED = "not stated"
# Every card prints these fields, stated or not.
DISCLOSURE_LABELS = {
    "process_supervised": "Supervised process",
    "base_model": "Base model",
    "policy": "Policy that generated the traces",
    "orm": "Outcome reward model (ORM)",
    "prm": "Process reward model (PRM)",
    "judge": "Judge",
    "human_source": "Human data source",
    "scaffold": "Tool scaffold",
    "deployment_monitor": "Deployment monitor",
    "where_tested": "Tested on",
    "known_failures": "Known failures",
}
DISCLOSURE_FIELDS = (*DISCLOSURE_LABELS, "raters", "pay", "domains_not_covered", "licence")
# The identifiers of the hub; any other license is written as text.
LICENCES = (
    *("apache-2.0", "mit", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc0-1.0", "odc-by", "gpl-3.0"),
    "bsd-3-clause",
)
PROTOCOL_NOTES = {
    "first_error": "Raters labeled each trace up to its first error and rated alternatives to that step.",
    "every_step": "Raters labeled every step by itself, as if the steps before it were right.",
    "carry_forward": "Raters labeled every step; a step that builds on an earlier error is negative.",
    "recovery": "Raters labeled every step by itself, and marked where traces recover from errors and which later steps"
    " do not depend on them.",
    "live": "Raters labeled alternatives that were generated during annotation.",
}
RATER_KINDS = {"member": "project member", "imported": "imported labeler"}
MACHINE_KINDS = {"judge": "Judge", "monte_carlo": "Monte Carlo", "prm": "PRM as a rater"}
ORIGINS = {"here": "made on the platform"}
FINISH_REASONS = {
    "solution": "all steps rated",
    "found_error": "found an error",
    "give_up": "gave up",
    "bad_problem": "bad problem",
}
AGREEMENT_LABELS = {
    "exact": "First error, exact",
    "within_one": "First error, within one step",
    "has_error_kappa": "Any error, kappa",
    "alpha_nominal": "Alpha, nominal",
    "alpha_ordinal": "Alpha, ordinal",
    "gwet_ac1": "Gwet’s AC1",
    "pairwise_agreement": "Pairwise agreement",
}
LABEL_SET_NOTES: dict[str, str] = {
    "as_rated": "labels are the ratings that were given. Rows with right and wrong steps end at the first error.",
    "stop": "no step after the first error has a label.",
    "carried_forward": "a step is correct or incorrect, and incorrect while it depends on an earlier error."
    " A row ends where the ratings do not determine this.",
    "propagated_ternary": "a step is negative while it depends on an earlier error, and otherwise as rated."
    " A row ends where the ratings do not determine this.",
    "decisive_error": "only the first error from which the trace never recovers is negative. Errors from which it"
    " recovers, steps that depend on them, and steps after the decisive error have no label.",
}
_MAX_ERROR_STEPS = 15
_RATING_LABELS = {"-1": "negative (-1)", "0": "neutral (0)", "1": "positive (+1)"}
CONVERSION_TABLE = """| rating | conversion |
|---|---|
| neutral | {neutral} |
| steps after the first error | {later_steps} |
| contested traces, and submissions that ended early | {contested}; kept in the long table (`steps`) |
| alternatives that were not chosen | {alternatives} |
| steps written by the rater | {human_steps} |
| observations of an agent | part of the prompt, never a completion |"""


class CardFigure(NamedTuple):
    file_name: str
    caption: str
    svg: str


def load_disclosure(project: Project) -> dict[str, str]:
    """Return the current text of every field, empty if not stated."""
    row = ProjectDisclosure.objects.filter(project=project).first()
    return {name: getattr(row, name) if row else "" for name in DISCLOSURE_FIELDS}


def save_disclosure(*, project: Project, texts: dict[str, str], by: User | None, now: dt.datetime) -> None:
    """Save the given fields. Later snapshots print them; existing snapshots keep the texts they were made with."""
    fields = {name: texts[name].strip() for name in DISCLOSURE_FIELDS if name in texts}
    ProjectDisclosure.objects.update_or_create(project=project, defaults={**fields, "stated_at": now, "stated_by": by})
    audit_log.log_event(what="statement.made", by=by, now=now, project=project.pk, subject=f"project:{project.pk}")


def write_card(snapshot: Snapshot, files: Sequence[WrittenFile], figures: Sequence[CardFigure]) -> str:
    assert snapshot.manifest is not None
    rows = sum(file.rows for file in files if file.format in OUTPUT_FORMATS)
    head = write_front_matter(snapshot.name, snapshot.statement.get("licence", ""), rows, files)
    sections = {
        "Disclosure": _disclosure_lines(snapshot),
        "Annotation process": _process_lines(snapshot),
        "Data quality": _quality_lines(snapshot, figures),
        "Sampling": _sampling_lines(snapshot, figures),
        "Exclusions": _exclusion_lines(snapshot),
        "From ratings to labels": _conversion_lines(snapshot),
        "Limitations": _limitation_lines(snapshot),
        "Files": _file_lines(files),
    }
    parts = [head, f"# {snapshot.name}", _write_introduction(snapshot)]
    parts += ["\n".join([f"## {title}", "", *lines]).strip("\n") for title, lines in sections.items()]
    return "\n\n".join(parts) + "\n"


def write_front_matter(name: str, licence: str, rows: int, files: Sequence[WrittenFile]) -> str:
    by_format: dict[str, dict[str, list[str]]] = {}
    for file in files:
        if file.format in OUTPUT_FORMATS:  # weights and the card are not datasets
            by_format.setdefault(file.format, {}).setdefault(file.split, []).append(file.name)
    head: dict[str, Any] = {
        "pretty_name": name,
        **_describe_licence(licence.strip()),
        "tags": ["process-supervision", "process-reward-model"],
        "size_categories": [_size_category(rows)],
    }
    if by_format:
        head["configs"] = [
            {
                "config_name": format,
                "data_files": [{"split": split, "path": sorted(paths)} for split, paths in splits.items()],
            }
            for format, splits in by_format.items()
        ]
        head["dataset_info"] = [
            {"config_name": format, "features": _list_features(columns)}
            for format in by_format
            if (columns := OUTPUT_FORMATS[format].columns)
        ]
    return f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---"


def _list_features(columns: Columns) -> list[dict[str, Any]]:
    return [{"name": name, **_list_feature(kind)} for name, kind in columns.items()]


def _list_feature(kind: ColumnType) -> dict[str, Any]:
    if isinstance(kind, str):
        return {"dtype": kind}
    if isinstance(kind, dict):
        return {"struct": _list_features(kind)}
    return {"list": kind[0] if isinstance(kind[0], str) else _list_features(kind[0])}


def _describe_licence(licence: str) -> dict[str, str]:
    if licence.lower() in LICENCES:
        return {"license": licence.lower()}
    return {"license": "other", "license_name": licence} if licence else {"license": "unknown"}


def _size_category(rows: int) -> str:
    bounds = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
    return next((name for limit, name in bounds if rows < limit), "n>1M")


# --- sections --------------------------------------------------------------------------------------------------------


def _write_introduction(snapshot: Snapshot) -> str:
    assert snapshot.manifest is not None
    facts, project = snapshot.figures["facts"], snapshot.project
    labels = "the consensus of its raters" if load_order(snapshot).filters.is_consensus else "the ratings of each rater"
    paragraphs = [
        f"Step-level ratings from the project “{project.name}”: {facts['traces']:,} traces of {facts['problems']:,}"
        f" problems, with {facts['submissions']:,} submissions by {facts['raters']:,} raters."
        f" {PROTOCOL_NOTES.get(project.protocol, '')} The labels of a trace are {labels}.",
        f"Purpose: {snapshot.purpose}. Frozen on {format_frozen_at(snapshot)} with Stepmark"
        f" {snapshot.manifest.code_version}. The data does not change after that.",
        _escape_text(project.description),
    ]
    return "\n\n".join(paragraphs).strip()


def _disclosure_lines(snapshot: Snapshot) -> Iterator[str]:
    yield from ("| field | statement |", "|---|---|")
    yield from (f"| {label} | {_stated(snapshot, name)} |" for name, label in DISCLOSURE_LABELS.items())


def _process_lines(snapshot: Snapshot) -> list[str]:
    facts, process = snapshot.figures["facts"], snapshot.figures["facts"]["process"]
    pay = f"{process['pay']} per hour (project setting); " if process.get("pay") else ""
    n_training = process["training_traces"]
    screening = "none on the platform"
    if process["screening_traces"]:
        screening = (
            f"{process['screening_traces']:,} traces, passed with at least {process['pass_share']:.0%} correct; "
            f"{process['screened']:,} of these raters passed"
        )
    n_assisted = sum(n for name, n in facts["machines"].items() if name) + facts["assisted"].get("True", 0)
    lines = [
        f"- Raters: {_format_counts(facts['rater_kinds'], 'unknown', RATER_KINDS)};"
        f" background: {_stated(snapshot, 'raters')}",
        f"- Pay: {pay}{_stated(snapshot, 'pay')}",
        f"- Labels per trace, by the settings when the snapshot was ordered: {process['overlap']},"
        f" up to {process['overlap_limit']} where raters disagree",
        f"- Training: {f'{n_training:,} traces with explained answers' if n_training else 'none on the platform'}",
        f"- Screening: {screening}",
        f"- Hidden gold: {process['hidden_gold']:,} traces with known answers among the regular work",
        f"- Origin of the labels: {_format_counts(facts['origins'], 'unknown', ORIGINS)}",
        f"- Guideline versions: {_format_counts(facts['guidelines'], 'none')}",
        *_taxonomy_lines(snapshot.project),
        f"- Reference answer shown: {_format_counts(facts['saw_reference_answer'], 'not recorded')}",
        f"- Correctness of the final answer shown: {_format_counts(facts['saw_final_verdict'], 'not recorded')}",
        f"- PRM scores shown before rating: {_format_counts(facts['assisted'], 'not recorded')}",
        f"- Finish reasons: {_format_counts(facts['finish_reasons'], 'none', FINISH_REASONS)}",
        f"- Base models of the traces: {_format_counts(facts['base_models'], NOT_STATED)}",
        f"- Policies of the traces: {_format_counts(facts['policies'], NOT_STATED)}",
        f"- Scaffolds of the traces: {_format_counts(facts['scaffolds'], 'none')}",
        f"- PRMs that selected traces: {_format_counts(facts['choosing_prms'], 'none')}",
        f"- PRM of the step scores in the long table: {_escape_text(snapshot.plan.get('prm_label', '')) or 'none'}",
        f"- Segmented into steps by: {_format_counts(facts['segmenters'], 'the source file')}",
        "- Probabilities: `p_…` and `posterior_…` are based on people who saw no PRM scores. Columns named `assisted_…`"
        f" include machines and people who saw scores, who made {n_assisted:,} of these submissions.",
    ]
    if facts["rater_kinds"].get("imported"):
        has_names = load_order(snapshot).has_labeler_names
        stated = "as in their files, by choice of the lead" if has_names else "pseudonyms made for this project"
        lines.append(f"- Names of imported labelers: {stated}")
    lines += [
        f"- **PRM {_escape_text(each['prm'])} was promoted by a person on {each['at'][:10]}** although it"
        f" was {' and '.join(each['concerns'])}. Reason: {_escape_cell(each['reason'])}"
        for each in facts["overridden_gates"]
    ]
    if any(facts["machines"]):
        lines.append(f"- Machine raters: {_format_counts(facts['machines'], 'not a machine')}")
    lines += [
        f"- {MACHINE_KINDS[each.get('kind', 'judge')]} {_escape_text(identities.format_machine(each))}"
        for each in facts["judges"]
    ]
    return lines


def _taxonomy_lines(project: Project) -> Iterator[str]:
    """Say what the codes of kinds of errors, of severities, of answers and of clauses mean."""
    if not (project.asks_error_category or project.asks_severity or project.trace_questions or project.asks_clauses):
        return
    taxonomy = taxonomies.load_taxonomy(project)
    if taxonomy.kinds:
        kinds = (f"`{kind.code}` {_escape_text(str(kind.name))}" for kind in taxonomy.kinds)
        yield f"- Kinds of errors: {', '.join(kinds)}"
    if taxonomy.severities:
        severities = (f"{number} {_escape_text(name)}" for number, name in enumerate(taxonomy.severities, 1))
        yield f"- Severities: {', '.join(severities)}"
    for question in taxonomy.questions:
        choices = (f"`{choice.code}` {_escape_text(str(choice.name))}" for choice in question.choices)
        yield f"- Question `{question.code}`: {_escape_text(str(question.title))} {', '.join(choices) or '(a text)'}"
    if taxonomy.clauses and project.guideline:
        clauses = (f"`{clause.code}` {_escape_text(clause.title)} (`{clause.digest}`)" for clause in taxonomy.clauses)
        yield f"- Clauses of version {project.guideline.version} of the guideline: {', '.join(clauses)}"


def _quality_lines(snapshot: Snapshot, figures: Sequence[CardFigure]) -> Iterator[str]:
    contested = snapshot.figures["facts"]["contested"]
    n_known = contested.get("True", 0) + contested.get("False", 0)
    share = f"{contested.get('True', 0) / n_known:.1%} of the rows of resolved traces" if n_known else "not known"
    yield from (f"Contested: {share}.", "")
    yield from _chart_lines(figures, "labels.svg", "first_errors.svg")
    yield from _agreement_lines(snapshot.figures["facts"].get("agreement"), figures)
    yield from _imported_agreement_lines(snapshot.figures["facts"].get("imported_agreement"))


def _agreement_lines(agreement: Mapping[str, Any] | None, figures: Sequence[CardFigure]) -> Iterator[str]:
    if not agreement:
        yield (
            "Agreement was not measured: no trace in this snapshot has two scheduled, blind submissions made in"
            " Stepmark."
        )
        return
    yield from _chart_lines(figures, "agreement.svg", "domains.svg")
    yield from _estimate_lines(agreement)
    population = (
        "of the audit slice, a random sample of the pool," if agreement["is_audit_slice"] else "in this snapshot"
    )
    yield ""
    yield (
        f"Measured on the {agreement['n_traces']:,} traces {population} whose first two scheduled submissions are both"
        " present, blind and as first submitted. Step statistics cover the traces' own steps, not the alternatives."
        " The intervals are jackknife estimates, clustered by problem."
    )


def _imported_agreement_lines(agreement: Mapping[str, Any] | None) -> Iterator[str]:
    if not agreement:
        return
    yield from ("", "### Imported labels", "")
    yield from _estimate_lines(agreement)
    yield ""
    yield (
        f"Measured on the {agreement['n_traces']:,} traces of this snapshot that have labels from at least two of the"
        f" {agreement['n_raters']:,} people whose labels came from files. Stepmark does not know how these people"
        " worked, so their figures are separate from those above. Machines, gold and screening are left out."
    )


def _estimate_lines(agreement: Mapping[str, Any]) -> Iterator[str]:
    yield from ("| statistic | value | 95% interval |", "|---|---|---|")
    for label, estimate in _agreement_estimates(agreement):
        yield f"| {label} | {' | '.join(_format_estimate(estimate))} |"


def _agreement_estimates(agreement: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the label and the estimate of each statistic."""
    for key, label in AGREEMENT_LABELS.items():
        estimate = (agreement.get("first_error") or {}).get(key) or (agreement.get("steps") or {}).get(key)
        if isinstance(estimate, Mapping):
            yield label, estimate


def _format_estimate(estimate: Mapping[str, Any]) -> tuple[str, str]:
    """Return the value and the interval as text, or the reason why one is missing."""
    value, low, high = (estimate.get(key) for key in ("value", "low", "high"))
    interval = estimate.get("interval_reason") if low is None or high is None else f"[{low:.3f}, {high:.3f}]"
    return str(estimate.get("reason")) if value is None else f"{value:.3f}", interval or ""


def _sampling_lines(snapshot: Snapshot, figures: Sequence[CardFigure]) -> Iterator[str]:
    plan = snapshot.plan
    yield from ("| sampling source | rows | probability of being drawn |", "|---|---|---|")
    for source in snapshot.figures["facts"]["arms"]:
        draws = "not drawn" if source["low"] is None else f"{source['low']:.3g} to {source['high']:.3g}"
        yield f"| {source['arm'] or 'not recorded'} | {source['n']:,} | {draws} |"
    yield ""
    yield from _chart_lines(figures, "selection.svg")
    if plan.get("n_weighted"):
        yield (
            "Rows of drawn traces, unless a person moved the trace to the front, have the probability `q` of being"
            " drawn and a weight of 1 / (q × remaining traces),"
            f" capped at 10 and normalized to average 1. The effective sample size of the {plan['n_weighted']:,} draws"
            f" is {plan['effective_sample_size']:,.0f}. Use the weights for every estimate that includes actively"
            " selected traces, and do not evaluate on these traces without weights."
        )
    else:
        yield "No trace was drawn with a recorded probability, so there are no weights."


def _exclusion_lines(snapshot: Snapshot) -> Iterator[str]:
    assert snapshot.manifest is not None
    order, left_out = load_order(snapshot), snapshot.manifest.left_out
    reasons = list(EXCLUSION_LABELS)
    if snapshot.purpose == "archive":
        reasons = [reason for reason in ARCHIVE_EXCLUSIONS if reason in left_out]
    if reasons:
        yield from ("| reason | rows left out |", "|---|---|")
        yield from (f"| {EXCLUSION_LABELS[reason]} | {left_out.get(reason, 0):,} |" for reason in reasons)
    else:
        yield "None. An archive includes every submission, including those of held-out, gold, and screening traces."
    if order.filters.labelers is not None:
        yield from ("", f"**Only labels of {len(order.filters.labelers):,} chosen raters are included.**")
    if order.filters.without_labelers:
        yield from ("", f"**Labels of {len(order.filters.without_labelers):,} chosen raters are left out.**")
    yield from _inferred_consensus_lines(order, snapshot.plan)
    if order.filters.set_aside != "out":
        yield from ("", "**Labels that a lead set aside are included**, as requested for this snapshot.")
    if listed := sorted(snapshot.plan.get("benchmarks", {}).items()):
        yield from ("", "Problems of this project on benchmark lists:", "")
        yield from (f"- {_escape_cell(name)}: {n:,}" for name, n in listed)
    if order.taken_in:
        overrides, reason = ", ".join(order.taken_in), _escape_cell(order.reason)
        yield from ("", f"**Included despite these rules:** {overrides}. Reason: {reason}")


def _inferred_consensus_lines(order: SnapshotOrder, plan: Mapping[str, Any]) -> Iterator[str]:
    """State for how many traces the consensus was inferred again without the raters who are left out."""
    if order.filters.is_consensus and not order.filters.choice.is_everybody:
        yield from (
            "",
            f"On {plan['n_inferred']:,} traces with labels of other raters, the consensus was inferred again from the"
            f" remaining labels; {plan['n_inferred_from_one']:,} of these traces have one such label. On"
            f" {plan['n_undetermined']:,} traces, the remaining labels determine no consensus, so these are left out.",
        )


def _conversion_lines(snapshot: Snapshot) -> Iterator[str]:
    rule = load_order(snapshot).rule
    neutral = {
        "positive": "counts as correct",
        "negative": "counts as incorrect",
        "drop": "the row ends before the step",
    }
    table = CONVERSION_TABLE.format(
        neutral=neutral[rule.neutral],
        later_steps="labeled by the label set" if rule.label_set in label_sets.SETS_PAST_ERRORS else "no label",
        contested="left out of consensus labels" if rule.takes_cut_off else "left out",
        alternatives="one row each: the preceding steps and the alternative" if rule.has_alternatives else "left out",
        human_steps="count as correct" if rule.human_steps == "positive" else "the row ends before the step",
    )
    yield from (f"Label set `{rule.label_set}`: {LABEL_SET_NOTES[rule.label_set]}", "")
    yield from ("Formats with binary labels convert the ratings as follows.", "", table, "")
    yield from (_format_tally(name, tally) for name, tally in sorted(snapshot.figures["tallies"].items()))


def _format_tally(name: str, tally: Mapping[str, Any]) -> str:
    parts = [f"- `{name}`: {tally['rows']:,} rows"]
    if labels := sorted(tally["labels"].items()):
        parts.append(f"labels: {', '.join(f'{n:,} {label}' for label, n in labels)}")
    parts += [f"left out: {n:,} ({reason})" for reason, n in sorted(tally["left_out"].items())]
    if lengths := sorted(tally.get("characters", {}).items()):
        parts.append(
            f"length in characters: {', '.join(f'{float(share):.0%} of rows ≤ {n:,}' for share, n in lengths)}"
        )
    return "; ".join(parts)


def _limitation_lines(snapshot: Snapshot) -> list[str]:
    domains = _format_counts(snapshot.figures["facts"]["domains"], "not named")
    lines = [
        f"- Known failures: {_stated(snapshot, 'known_failures')}",
        f"- Domains: {domains}. Not covered: {_stated(snapshot, 'domains_not_covered')}",
        *_image_lines(snapshot),
        *_later_step_lines(load_order(snapshot).rule.label_set),
        f"- License of the labels: {_stated(snapshot, 'licence')}. Sources:",
    ]
    for source in snapshot.figures["facts"]["sources"]:
        lines.append(f"  - {_escape_cell(source['name'])}: {_escape_cell(source['licence'])} ({source['n']:,} rows)")
    return lines


def _image_lines(snapshot: Snapshot) -> Iterator[str]:
    if not (n_traces := snapshot.figures["facts"].get("with_images")):
        return
    names = load_order(snapshot).formats
    yield (
        f"- Images: {n_traces:,} traces have images. They are stored as PNG without metadata, with the pixels of the"
        " imported files."
    )
    if named := [name for name in names if OUTPUT_FORMATS[name].has_images]:
        yield f"  - {', '.join(named)}: rows name files in `data/images*.zip`. Unpack it beside the rows."
    if others := [name for name in names if not OUTPUT_FORMATS[name].has_images]:
        yield (
            f"  - {', '.join(others)}: no place for images. The texts have a placeholder for each one, with its"
            " description: `[image: …]`."
        )


def _later_step_lines(label_set: str) -> Iterator[str]:
    if label_set not in label_sets.SETS_PAST_ERRORS:
        yield "- Steps after the first error have no label, even if some raters continued and rated them."


def format_frozen_at(snapshot: Snapshot) -> str:
    return f"{snapshot.frozen_at:%Y-%m-%d %H:%M} UTC"


def _file_lines(files: Sequence[WrittenFile]) -> Iterator[str]:
    yield from ("| file | rows | bytes | SHA-256 |", "|---|---|---|---|")
    yield from (f"| `{file.name}` | {file.rows:,} | {file.size:,} | `{file.sha256[:16]}…` |" for file in files)


# --- text ------------------------------------------------------------------------------------------------------------


def _chart_lines(figures: Sequence[CardFigure], *names: str) -> Iterator[str]:
    """Show the charts that have data."""
    for figure in figures:
        if figure.file_name in names:
            yield from (f"![{figure.caption}]({figure.file_name})", "")


def _format_counts(counts: Mapping[str, int], missing: str, labels: Mapping[str, str] | None = None) -> str:
    """List values by count. `missing` is the text for rows without a value; `labels` replace stored codes."""
    words = {"True": "yes", "False": "no", "": missing, **(labels or {})}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{words.get(value, _escape_cell(value))} ({n:,})" for value, n in ordered) or missing


def _stated(snapshot: Snapshot, field: str) -> str:
    return _escape_cell(snapshot.statement.get(field, ""))


def _escape_cell(text: str) -> str:
    return _escape_text(text).replace("|", "\\|").replace("\n", " ") or NOT_STATED


def _escape_text(text: str) -> str:
    """Keep people's text from being read as markup where the card is rendered."""
    return text.strip().replace("<", "&lt;")


# --- figures ---------------------------------------------------------------------------------------------------------


def draw_card_figures(facts: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[CardFigure]:
    """Draw every figure that has data."""
    agreement = facts.get("agreement") or {}
    domains = agreement.get("domains", [])
    bars = (
        ("labels.svg", "Distribution of ratings", _rating_bars(facts.get("labels", {}))),
        ("first_errors.svg", "Position of the first error", _first_error_bars(facts.get("first_errors", {}))),
        ("selection.svg", "Sampling sources", _source_bars(facts["arms"], plan)),
    )
    intervals = (
        (
            "agreement.svg",
            "Agreement with 95% intervals",
            [_build_interval(label, estimate) for label, estimate in _agreement_estimates(agreement)],
        ),
        (
            "domains.svg",
            "Agreement on the first error by domain",
            [_build_interval(f"{row['key'] or 'no domain'} ({row['n_traces']:,})", row["exact"]) for row in domains]
            if len(domains) > 1
            else [],
        ),
    )
    for file_name, caption, bar_rows in bars:
        if rows := list(bar_rows):
            yield CardFigure(file_name, caption, draw_share_bars(caption, rows))
    for file_name, caption, interval_rows in intervals:
        if interval_rows:
            yield CardFigure(file_name, caption, draw_share_intervals(caption, interval_rows))


def _rating_bars(counts: Mapping[str, int]) -> Iterator[ShareBar]:
    total = sum(counts.values())
    for rating, label in _RATING_LABELS.items() if total else ():
        n = counts.get(rating, 0)
        yield ShareBar(label, n / total, f"{n / total:.1%} ({n:,})", css=label.split()[0])


def _first_error_bars(counts: Mapping[str, int]) -> Iterator[ShareBar]:
    """Bars by step number, counted from 1; the last steps are one bar. Then submissions without an error."""
    by_position = {int(key): n for key, n in counts.items() if key.isdecimal()}
    n_bars = min(max(by_position, default=-1) + 1, _MAX_ERROR_STEPS)
    bars = [(f"step {position + 1}", by_position.get(position, 0)) for position in range(n_bars)]
    others = [
        (f"after step {_MAX_ERROR_STEPS}", sum(n for at, n in by_position.items() if at >= _MAX_ERROR_STEPS)),
        ("no error", counts.get("none", 0)),
        ("ended early", counts.get("cut_off", 0)),
    ]
    bars += [(label, n) for label, n in others if n]
    total, longest = sum(counts.values()), max((n for _, n in bars), default=0)
    for label, n in bars:
        yield ShareBar(label, n / longest, f"{n:,} ({n / total:.1%})")


def _source_bars(sources: Sequence[Mapping[str, Any]], plan: Mapping[str, Any]) -> Iterator[ShareBar]:
    """Bars of rows by sampling source, then the effective sample size of the draws with a known probability."""
    total = sum(source["n"] for source in sources)
    for source in sources if total else ():
        n = source["n"]
        yield ShareBar(source["arm"] or "not recorded", n / total, f"{n:,} rows ({n / total:.1%})")
    if n_draws := plan.get("n_weighted"):
        size = plan["effective_sample_size"]
        yield ShareBar("effective sample size", size / n_draws, f"{size:,.0f} of {n_draws:,} draws", "dark")


def _build_interval(label: str, estimate: Mapping[str, Any]) -> ShareInterval:
    value, low, high = (estimate.get(key) for key in ("value", "low", "high"))
    return ShareInterval(label, " ".join(_format_estimate(estimate)), value, low, high)
