"""The dataset card of a snapshot: YAML front matter for the Hugging Face hub, then Markdown. Pure.

Leads publish this text. It reports what is known, prints "not stated" for the rest, and puts the limits of each figure
next to it. The same context always gives the same card.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from exports.disclosures import DISCLOSURE_LABELS, NOT_STATED
from exports.exclusions import ARCHIVE_EXCLUSIONS, EXCLUSION_LABELS
from exports.files import WrittenFile
from exports.orders import SnapshotOrder
from formats import columns
from formats.catalog import OUTPUT_FORMATS

# The identifiers of the hub; any other license is written as text.
LICENCES = (
    *("apache-2.0", "mit", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc0-1.0", "odc-by", "gpl-3.0"),
    "bsd-3-clause",
)
PROTOCOL_NOTES = {
    "first_error": "Raters labeled each trace up to its first error, and rated alternatives to that step.",
    "every_step": "Raters labeled every step.",
    "live": "Raters labeled alternatives that were generated during annotation.",
}
RATER_KINDS = {"member": "project member", "imported": "imported labeler"}
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
    "has_error_kappa": "Has an error, kappa",
    "alpha_nominal": "Alpha, nominal",
    "alpha_ordinal": "Alpha, ordinal",
    "gwet_ac1": "Gwet AC1",
    "pairwise_agreement": "Pairwise agreement",
}
CONVERSION_TABLE = """| rating | conversion |
|---|---|
| neutral | {neutral} |
| steps after the first error | no label |
| contested traces, and submissions that ended early | {contested}; kept in the long table (`steps`) |
| alternatives that were not chosen | {alternatives} |
| steps written by the rater | {human_steps} |
| observations of an agent | part of the prompt, never a completion |"""


class CardContext(Struct):
    name: str
    project: str
    description: str
    protocol: str
    purpose: str
    frozen_at: str
    code_version: str
    order: SnapshotOrder
    rows: int
    left_out: dict[str, int]
    plan: dict[str, Any]
    disclosure: dict[str, str]
    facts: dict[str, Any]
    tallies: dict[str, dict[str, Any]]
    files: list[WrittenFile]
    charts: dict[str, str]  # captions by file name


def write_card(context: CardContext) -> str:
    parts = [
        write_front_matter(context.name, context.disclosure.get("licence", ""), context.rows, context.files),
        f"# {context.name}",
        _intro_section(context),
        _disclosure_section(context),
        _process_section(context),
        _quality_section(context),
        _sampling_section(context),
        _exclusions_section(context),
        _conversion_section(context),
        _limitations_section(context),
        _files_section(context),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


# --- front matter ----------------------------------------------------------------------------------------------------


def write_front_matter(name: str, licence: str, rows: int, files: Sequence[WrittenFile]) -> str:
    lines = ["---", f"pretty_name: {_quote(name)}", *_licence_lines(licence)]
    lines += ["tags:", "- process-supervision", "- process-reward-model", f"size_categories:\n- {_size_category(rows)}"]
    if by_format := _group_by_format(files):
        lines += ["configs:", *(line for format, splits in by_format.items() for line in _config_lines(format, splits))]
        lines += ["dataset_info:", *(line for format in by_format for line in _feature_lines(format))]
    return "\n".join([*lines, "---"])


def _group_by_format(files: Sequence[WrittenFile]) -> dict[str, dict[str, list[str]]]:
    """Return the names of data files by format and split. Weights and the card are not datasets."""
    by_format: dict[str, dict[str, list[str]]] = {}
    for file in files:
        if file.format in OUTPUT_FORMATS:
            by_format.setdefault(file.format, {}).setdefault(file.split, []).append(file.name)
    return by_format


def _config_lines(name: str, splits: Mapping[str, list[str]]) -> Iterator[str]:
    yield f"- config_name: {name}"
    yield "  data_files:"
    for split, files in splits.items():
        yield f"  - split: {split}"
        yield "    path:"
        yield from (f"    - {file}" for file in sorted(files))


def _feature_lines(name: str) -> Iterator[str]:
    yield f"- config_name: {name}"
    yield "  features:"
    yield from columns.write_yaml(OUTPUT_FORMATS[name].columns, "  ")


def _licence_lines(licence: str) -> list[str]:
    identifier = licence.strip().lower()
    if identifier in LICENCES:
        return [f"license: {identifier}"]
    return ["license: other", f"license_name: {_quote(licence.strip())}"] if identifier else ["license: unknown"]


def _size_category(rows: int) -> str:
    bounds = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
    return next((name for limit, name in bounds if rows < limit), "n>1M")


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


# --- sections --------------------------------------------------------------------------------------------------------


def _intro_section(context: CardContext) -> str:
    facts = context.facts
    labels = "the consensus of its raters" if context.order.filters.is_consensus else "the ratings of each rater"
    paragraphs = [
        f"Step-level ratings from the project “{context.project}”: {facts['traces']:,} traces of {facts['problems']:,}"
        f" problems, with {facts['submissions']:,} submissions by {facts['raters']:,} raters."
        f" {PROTOCOL_NOTES.get(context.protocol, '')} The labels of a trace are {labels}.",
        f"Purpose: {context.purpose}. Frozen on {context.frozen_at} with Stepmark {context.code_version}. The data does"
        " not change after that.",
        _escape_text(context.description),
    ]
    return "\n\n".join(paragraphs).strip()


def _disclosure_section(context: CardContext) -> str:
    rows = [f"| {label} | {_stated(context, name)} |" for name, label in DISCLOSURE_LABELS.items()]
    return "\n".join(["## Disclosure", "", "| field | statement |", "|---|---|", *rows])


def _process_section(context: CardContext) -> str:
    facts, process = context.facts, context.facts["process"]
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
        f" about them: {_stated(context, 'raters')}",
        f"- Pay: {pay}{_stated(context, 'pay')}",
        f"- Labels per trace: {process['overlap']}, up to {process['overlap_limit']} where raters disagree",
        f"- Training: {f'{n_training:,} traces with explained answers' if n_training else 'none on the platform'}",
        f"- Screening: {screening}",
        f"- Hidden gold: {process['hidden_gold']:,} traces with known answers among the regular work",
        f"- Origin of the labels: {_format_counts(facts['origins'], 'unknown', ORIGINS)}",
        f"- Guideline versions: {_format_counts(facts['guidelines'], 'none')}",
        f"- Reference answer shown: {_format_counts(facts['saw_reference_answer'], 'not recorded')}",
        f"- Correctness of the final answer shown: {_format_counts(facts['saw_final_verdict'], 'not recorded')}",
        f"- PRM scores shown before rating: {_format_counts(facts['assisted'], 'not recorded')}",
        f"- Finish reasons: {_format_counts(facts['finish_reasons'], 'none', FINISH_REASONS)}",
        f"- Base models of the traces: {_format_counts(facts['base_models'], NOT_STATED)}",
        f"- Policies of the traces: {_format_counts(facts['policies'], NOT_STATED)}",
        f"- Scaffolds of the traces: {_format_counts(facts['scaffolds'], 'none')}",
        f"- PRMs that selected traces: {_format_counts(facts['choosing_prms'], 'none')}",
        f"- PRM of the step scores in the long table: {_escape_text(context.plan.get('prm_label', '')) or 'none'}",
        f"- Segmented into steps by: {_format_counts(facts['segmenters'], 'the source file')}",
        "- Probabilities: `p_…` and `posterior_…` are based on people who saw no scores. Columns named `assisted_…`"
        f" include machines and people who saw scores, who made {n_assisted:,} of these submissions.",
    ]
    if any(facts["machines"]):
        lines.append(f"- Machine raters: {_format_counts(facts['machines'], 'not a machine')}")
    return "\n".join(["## Annotation process", "", *lines])


def _quality_section(context: CardContext) -> str:
    contested = context.facts["contested"]
    n_known = contested.get("True", 0) + contested.get("False", 0)
    share = f"{contested.get('True', 0) / n_known:.1%} of the rows of resolved traces" if n_known else "not known"
    lines = ["## Data quality", "", f"Contested: {share}.", ""]
    lines += [*_chart_lines(context, "labels.svg", "first_errors.svg"), *_agreement_lines(context)]
    return "\n".join(lines)


def _agreement_lines(context: CardContext) -> Iterator[str]:
    agreement = context.facts.get("agreement")
    if not agreement:
        yield "Agreement was not measured: no trace has two scheduled, blind submissions in this snapshot."
        return
    yield from _chart_lines(context, "agreement.svg", "domains.svg")
    yield from ("| statistic | value | 95% interval |", "|---|---|---|")
    yield from (f"| {label} | {' | '.join(format_estimate(each))} |" for label, each in agreement_estimates(agreement))
    population = (
        "of the audit slice, a random sample of the pool," if agreement["is_audit_slice"] else "in this snapshot"
    )
    yield ""
    yield (
        f"Measured on the {agreement['n_traces']:,} traces {population} that have both of their first two scheduled"
        " submissions, blind and as first submitted. The intervals are jackknife estimates, clustered by problem."
    )


def agreement_estimates(agreement: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the label and the estimate of each statistic."""
    for key, label in AGREEMENT_LABELS.items():
        estimate = (agreement.get("first_error") or {}).get(key) or (agreement.get("steps") or {}).get(key)
        if isinstance(estimate, Mapping):
            yield label, estimate


def format_estimate(estimate: Mapping[str, Any]) -> tuple[str, str]:
    """Return the value and the interval as text, or the reason why one is missing."""
    value, low, high = (estimate.get(key) for key in ("value", "low", "high"))
    interval = estimate.get("interval_reason") if low is None or high is None else f"[{low:.3f}, {high:.3f}]"
    return str(estimate.get("reason")) if value is None else f"{value:.3f}", interval or ""


def _sampling_section(context: CardContext) -> str:
    plan = context.plan
    lines = ["## Sampling", "", "| sampling source | rows | probability of the draw |", "|---|---|---|"]
    for source in context.facts["arms"]:
        draws = "not drawn" if source["low"] is None else f"{source['low']:.3g} to {source['high']:.3g}"
        lines.append(f"| {source['arm'] or 'not recorded'} | {source['n']:,} | {draws} |")
    lines += ["", *_chart_lines(context, "selection.svg")]
    if plan.get("n_weighted"):
        lines.append(
            "Rows of drawn traces have the probability `q` of the draw and a weight of 1 / (q × remaining traces),"
            f" capped at 10 and normalized to average 1. The effective sample size of the {plan['n_weighted']:,} draws"
            f" is {plan['effective_sample_size']:,.0f}. Use the weights for every estimate that includes actively"
            " selected traces, and do not evaluate on these traces without weights."
        )
    else:
        lines.append("No trace was drawn with a recorded probability, so there are no weights.")
    return "\n".join(lines)


def _exclusions_section(context: CardContext) -> str:
    lines = ["## Exclusions", ""]
    reasons = list(EXCLUSION_LABELS)
    if context.purpose == "archive":
        reasons = [reason for reason in ARCHIVE_EXCLUSIONS if reason in context.left_out]
    if reasons:
        lines += ["| reason | rows left out |", "|---|---|"]
        lines += [f"| {EXCLUSION_LABELS[reason]} | {context.left_out.get(reason, 0):,} |" for reason in reasons]
    else:
        lines.append("None. An archive includes every submission, also of held-out, gold, and screening traces.")
    if listed := sorted(context.plan.get("benchmarks", {}).items()):
        lines += ["", "Problems of this project on benchmark lists:", ""]
        lines += [f"- {_escape_cell(name)}: {n:,}" for name, n in listed]
    if context.order.taken_in:
        overrides, reason = ", ".join(context.order.taken_in), _escape_cell(context.order.reason)
        lines += ["", f"**Included despite these rules:** {overrides}. Reason: {reason}"]
    return "\n".join(lines)


def _conversion_section(context: CardContext) -> str:
    rule = context.order.rule
    neutral = {
        "positive": "counts as correct",
        "negative": "counts as incorrect",
        "drop": "the row ends before the step",
    }
    table = CONVERSION_TABLE.format(
        neutral=neutral[rule.neutral],
        contested="left out of consensus labels" if rule.takes_cut_off else "left out",
        alternatives="one row each: the preceding steps and the alternative" if rule.has_alternatives else "left out",
        human_steps="count as correct" if rule.human_steps == "positive" else "the row ends before the step",
    )
    intro = "Formats with binary labels convert the ratings as follows."
    lines = ["## From ratings to labels", "", intro, "", table, ""]
    lines += [_format_tally(name, tally) for name, tally in sorted(context.tallies.items())]
    return "\n".join(lines)


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


def _limitations_section(context: CardContext) -> str:
    domains = _format_counts(context.facts["domains"], "not named")
    lines = [
        "## Limitations",
        "",
        f"- Known failures: {_stated(context, 'known_failures')}",
        f"- Domains: {domains}. Not covered: {_stated(context, 'domains_not_covered')}",
        "- Steps after the first error have no label, even if some raters went on and rated them.",
        f"- License of the labels: {_stated(context, 'licence')}. Sources:",
    ]
    for source in context.facts["sources"]:
        lines.append(f"  - {_escape_cell(source['name'])}: {_escape_cell(source['licence'])} ({source['n']:,} rows)")
    return "\n".join(lines)


def _files_section(context: CardContext) -> str:
    rows = [f"| `{file.name}` | {file.rows:,} | {file.size:,} | `{file.sha256[:16]}…` |" for file in context.files]
    return "\n".join(["## Files", "", "| file | rows | bytes | SHA-256 |", "|---|---|---|---|", *rows])


# --- text ------------------------------------------------------------------------------------------------------------


def _chart_lines(context: CardContext, *names: str) -> Iterator[str]:
    """Show those of the charts that have data."""
    for name in names:
        if name in context.charts:
            yield from (f"![{context.charts[name]}]({name})", "")


def _format_counts(counts: Mapping[str, int], missing: str, labels: Mapping[str, str] | None = None) -> str:
    """List values by count. `missing` is the text for rows without a value; `labels` replace stored codes."""
    words = {"True": "yes", "False": "no", "": missing, **(labels or {})}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{words.get(value, _escape_cell(value))} ({n:,})" for value, n in ordered) or missing


def _stated(context: CardContext, field: str) -> str:
    return _escape_cell(context.disclosure.get(field, ""))


def _escape_cell(text: str) -> str:
    return _escape_text(text).replace("|", "\\|").replace("\n", " ") or NOT_STATED


def _escape_text(text: str) -> str:
    """Keep people's text from being read as markup where the card is rendered."""
    return text.strip().replace("<", "&lt;")
