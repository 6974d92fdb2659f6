"""The card of a snapshot, in the conventions of the Hugging Face hub: a head in YAML, then words. Pure.

It says what is known and says of the rest that it was not stated. What a number cannot be trusted for stands beside it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from exports.files import WrittenFile
from exports.orders import SnapshotOrder
from formats import columns
from formats.catalog import OUTPUT_FORMATS

# The head of a card in YAML: what programs of the Hugging Face hub read of it. Pure.


LICENCES = (
    *("apache-2.0", "mit", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc0-1.0", "odc-by", "gpl-3.0"),
    "bsd-3-clause",
)


def write_front_matter(name: str, licence: str, rows: int, files: Sequence[WrittenFile]) -> str:
    lines = ["---", f"pretty_name: {_quote(name)}", *_licence_lines(licence)]
    lines += ["tags:", "- process-supervision", "- process-reward-model", f"size_categories:\n- {_size_category(rows)}"]
    by_format = _group_by_format(files)
    if by_format:
        lines += ["configs:", *(line for format, splits in by_format.items() for line in _config_lines(format, splits))]
        lines += ["dataset_info:", *(line for format in by_format for line in _feature_lines(format))]
    return "\n".join([*lines, "---"])


def _group_by_format(files: Sequence[WrittenFile]) -> dict[str, dict[str, list[str]]]:
    """Data files by format and split. Weights and card are no data sets of their own."""
    found: dict[str, dict[str, list[str]]] = {}
    for file in files:
        if file.format in OUTPUT_FORMATS:
            found.setdefault(file.format, {}).setdefault(file.split, []).append(file.name)
    return found


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
    known = licence.strip().lower()
    if known in LICENCES:
        return [f"license: {known}"]
    return ["license: other", f"license_name: {_quote(licence.strip())}"] if known else ["license: unknown"]


def _size_category(rows: int) -> str:
    bounds = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
    return next((name for limit, name in bounds if rows < limit), "n>1M")


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


# How far a snapshot is to be trusted, as its card says it: what is contested, agreement, figures. Pure.


FigureCaptions = Mapping[str, str]  # what each drawing shows, by its file
AGREEMENT_LABELS = {
    "exact": "First error, exact",
    "within_one": "First error, within one step",
    "has_error_kappa": "Has an error, kappa",
    "alpha_nominal": "Alpha, nominal",
    "alpha_ordinal": "Alpha, ordinal",
    "gwet_ac1": "Gwet AC1",
    "pairwise_agreement": "Pairwise agreement",
}


def write_trust_section(facts: Mapping[str, Any], figures: FigureCaptions) -> str:
    contested = facts["contested"]
    known = contested.get("True", 0) + contested.get("False", 0)
    share = f"{contested.get('True', 0) / known:.1%} of the rows whose trace was settled" if known else "not known"
    lines = ["## How far to trust it", "", f"Contested: {share}.", ""]
    return "\n".join(
        [*lines, *figure_lines(figures, "labels.svg", "first_errors.svg"), *_agreement_lines(facts, figures)]
    )


def _agreement_lines(facts: Mapping[str, Any], figures: FigureCaptions) -> Iterator[str]:
    found = facts.get("agreement")
    if not found:
        yield "Agreement was not measured: no trace has two scheduled, blind readings among the rows."
        return
    yield from figure_lines(figures, "agreement.svg", "domains.svg")
    yield from ("| statistic | value | 95 % interval |", "|---|---|---|")
    yield from (f"| {label} | {' | '.join(format_estimate(each))} |" for label, each in agreement_estimates(found))
    whose = "of the audit slice, a random sample of the pool," if found["is_audit_slice"] else "among the rows"
    yield ""
    yield (
        f"Of the {found['n_traces']:,} traces {whose} that hold both of their first two scheduled readings, blind and "
        "as first submitted. Intervals by problem (jackknife)."
    )


def figure_lines(figures: FigureCaptions, *names: str) -> Iterator[str]:
    """Figures, where there was something to draw."""
    for name in names:
        if name in figures:
            yield from (f"![{figures[name]}]({name})", "")


def agreement_estimates(agreement: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The label and the estimate of each statistic."""
    for key, label in AGREEMENT_LABELS.items():
        estimate = (agreement.get("first_error") or {}).get(key) or (agreement.get("steps") or {}).get(key)
        if isinstance(estimate, Mapping):
            yield label, estimate


def format_estimate(found: Mapping[str, Any]) -> tuple[str, str]:
    """A value and its interval in figures, or why there is none."""
    value, low, high = (found.get(part) for part in ("value", "low", "high"))
    interval = f"[{low:.3f}, {high:.3f}]" if low is not None and high is not None else found.get("interval_reason")
    return f"{value:.3f}" if value is not None else str(found.get("reason")), str(interval)


NOT_STATED = "not stated"
DISCLOSURE_LABELS = {
    "process_supervised": "What process was supervised",
    "base_model": "Base model",
    "policy": "Policy that wrote the traces",
    "orm": "Outcome reward model (ORM)",
    "prm": "Process reward model (PRM)",
    "judge": "Judge",
    "human_source": "Human source",
    "scaffold": "Tool scaffold",
    "deployment_monitor": "Deployment monitor",
    "where_tested": "Where it was tested",
    "known_failures": "Known failures",
}
RATING_RULES_TABLE = """| what a rater said | what becomes of it |
|---|---|
| neutral | {neutral} |
| anything behind the first error | absent, never filled in |
| contested, or given up | {contested}; kept in the long table |
| an alternative that was not chosen | {alternatives} |
| a step in the rater's own words | {human_steps} |
| what an agent saw | stands in the prompt, never among the completions |"""


class CardContext(Struct):
    """What a card is written from. Kept with the snapshot: written again, it is the same."""

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
    statement: dict[str, str]
    facts: dict[str, Any]
    tallies: dict[str, dict[str, Any]]
    files: list[WrittenFile]
    figures: dict[str, str]  # drawings by file: what each shows


def write_card(told: CardContext) -> str:
    parts = [
        write_front_matter(told.name, told.statement.get("licence", ""), told.rows, told.files),
        f"# {told.name}",
        *_write_body(told),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _write_body(told: CardContext) -> Iterator[str]:
    yield _intro_section(told)
    yield _disclosure_section(told)
    yield _labels_section(told)
    yield write_trust_section(told.facts, told.figures)
    yield _selection_section(told)
    yield _exclusions_section(told)
    yield _rating_rules_section(told)
    yield _limits_section(told)
    yield _files_section(told)


def _intro_section(told: CardContext) -> str:
    facts = told.facts
    unit = {
        "first_error": "Raters went through each trace up to its first error, and rated alternatives to that step.",
        "every_step": "Raters rated every step.",
        "live": "Raters rated alternatives that were generated as they went.",
    }.get(told.protocol, "")
    labels = "what all its raters stand behind" if told.order.filters.is_consensus else "what each rater said"
    said = [
        f"Step ratings from the project “{told.project}”: {facts['traces']:,} traces of {facts['problems']:,} problems,"
        f" {facts['submissions']:,} submissions by {facts['raters']:,} raters. {unit} A trace carries {labels}.",
        f"Made for: {told.purpose}. Frozen {told.frozen_at} with version {told.code_version}; it does not change.",
    ]
    return "\n\n".join([*said, _escape_text(told.description)]).strip()


def _disclosure_section(told: CardContext) -> str:
    rows = [f"| {label} | {_escape_cell(told.statement.get(name, ''))} |" for name, label in DISCLOSURE_LABELS.items()]
    return "\n".join(["## What the lead states", "", "| asked | stated |", "|---|---|", *rows])


def _escape_cell(text: str) -> str:
    return _escape_text(text).replace("|", "\\|").replace("\n", " ") or NOT_STATED


def _escape_text(text: str) -> str:
    """What people wrote, as text: a card is shown on pages that take markup."""
    return text.strip().replace("<", "&lt;")


def _labels_section(told: CardContext) -> str:
    facts, statement = told.facts, told.statement
    lines = [
        f"- Raters: {_format_counts(facts['rater_kinds'], 'unknown')}; "
        f"who they are: {_escape_cell(statement.get('raters', ''))}",
        f"- Pay: {_pay_note(facts['process'])}{_escape_cell(statement.get('pay', ''))}",
        *_process_lines(facts["process"]),
        f"- Made: {_format_counts(facts['origins'], 'unknown')}",
        f"- Guideline versions: {_format_counts(facts['guidelines'], 'none')}",
        f"- Saw the reference answer: {_format_counts(facts['saw_reference_answer'], 'not recorded')}",
        f"- Saw whether the final answer is right: {_format_counts(facts['saw_final_verdict'], 'not recorded')}",
        f"- Saw a PRM's scores before judging: {_format_counts(facts['assisted'], 'not recorded')}",
        f"- Finish reasons: {_format_counts(facts['finish_reasons'], 'none')}",
        f"- Base models in the traces: {_format_counts(facts['base_models'], NOT_STATED)}",
        f"- Policies in the traces: {_format_counts(facts['policies'], NOT_STATED)}",
        f"- Scaffolds in the traces: {_format_counts(facts['scaffolds'], 'none')}",
        f"- PRMs that chose traces: {_format_counts(facts['choosing_prms'], 'none')}",
        f"- PRM whose scores of steps are in the long table: {_escape_text(told.plan.get('prm_label', '')) or 'none'}",
        f"- Cut into steps by: {_format_counts(facts['segmenters'], 'the file itself')}",
    ]
    lines.append(f"- Probabilities: {_probability_note(facts)}")
    if any(facts["machines"]):
        lines.append(f"- Machines among the raters: {_format_counts(facts['machines'], 'none of these')}")
    return "\n".join(["## How labels were made", "", *lines])


def _probability_note(facts: Mapping[str, Any]) -> str:
    """Which columns are of people alone: `n` counts readings that are not."""
    n = sum(n for name, n in facts["machines"].items() if name) + facts["assisted"].get("True", 0)
    return (
        "`p_…` and `posterior_…` are of people who saw no score; with machines and people who saw scores they stand"
        f" apart, as `assisted_…`. Of the submissions here {n:,} are of those"
    )


def _pay_note(process: Mapping[str, Any]) -> str:
    return f"{process['pay']} an hour in the project's settings; in the lead's words: " if process.get("pay") else ""


def _process_lines(process: Mapping[str, Any]) -> Iterator[str]:
    """How raters came to rate here, as the project stood when the snapshot was made."""
    yield f"- Readings of a trace: {process['overlap']}, up to {process['overlap_limit']} where raters differ"
    taught = process["training_traces"]
    yield f"- Training: {f'{taught:,} traces with explained answers' if taught else 'none on the platform'}"
    if process["screening_traces"]:
        yield (
            f"- Screening: {process['screening_traces']:,} traces, passed with {process['pass_share']:.0%} right; "
            f"{process['screened']:,} of the raters here passed it"
        )
    else:
        yield "- Screening: none on the platform"
    yield f"- Hidden checks: {process['hidden_gold']:,} traces with known answers among the work"


def _format_counts(counts: Mapping[str, int], nothing: str) -> str:
    words = {"True": "yes", "False": "no", "": nothing}
    found = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{words.get(name, _escape_cell(name))} ({n:,})" for name, n in found) or nothing


def _selection_section(told: CardContext) -> str:
    rows = [
        f"| {each['arm'] or 'not recorded'} | {each['n']:,} | {_format_draw_range(each)} |"
        for each in told.facts["arms"]
    ]
    plan = told.plan
    lines = ["## How traces were chosen", "", "| arm | rows | probability of the draw |", "|---|---|---|", *rows, ""]
    lines += figure_lines(told.figures, "selection.svg")
    if plan.get("n_weighted"):
        lines.append(
            f"Rows carry `q` and a weight: 1 / (q × traces left), no more than 10, made to average one. The "
            f"{plan['n_weighted']:,} draws are worth {plan['effective_sample_size']:,.0f} equal ones. Weigh with it "
            "whatever is estimated from traces that were chosen actively; do not evaluate on them unweighted."
        )
    else:
        lines.append("Nothing was drawn with a recorded probability: there are no weights.")
    return "\n".join(lines)


def _format_draw_range(arm: Mapping[str, Any]) -> str:
    return "not drawn" if arm["low"] is None else f"{arm['low']:.3g} to {arm['high']:.3g}"


EXCLUSION_LABELS = {
    "reserve": "in a reserve, of this project or another",
    "screening": "screening of raters",
    "gold": "gold",
    "training": "training of raters",
    "canary": "has the problem of a canary",
    "benchmark": "on the list of a benchmark",
    "overlap": "shares half of its 13-word runs with a problem that judges",
    "duplicate": "says what another trace says",
    "astride": "has a problem that is nearly like two that lie in different splits",
    "late": "came in while the snapshot was made",
}
ARCHIVE_EXCLUSIONS = ("duplicate", "astride", "late")  # what an archive leaves out as well, where it was asked for that


def _exclusions_section(told: CardContext) -> str:
    lines = ["## What was left out", ""]
    reasons = (
        EXCLUSION_LABELS
        if told.purpose != "archive"
        else {key: EXCLUSION_LABELS[key] for key in ARCHIVE_EXCLUSIONS if key in told.left_out}
    )
    if reasons:
        lines += ["| why | rows |", "|---|---|"]
        lines += [f"| {name} | {told.left_out.get(key, 0):,} |" for key, name in reasons.items()]
    else:
        lines.append("Nothing: an archive holds every submission as it is, reserve, gold and screening included.")
    lists = sorted(told.plan.get("benchmarks", {}).items())
    if lists:
        lines += ["", "Problems of the project that stand on a list:", ""]
        lines += [f"- {_escape_cell(name)}: {n:,}" for name, n in lists]
    if told.order.taken_in:
        lines += [
            "",
            f"**Taken in nevertheless:** {', '.join(told.order.taken_in)}. Why: {_escape_cell(told.order.reason)}",
        ]
    return "\n".join(lines)


def _rating_rules_section(told: CardContext) -> str:
    rule = told.order.rule
    neutral = {"positive": "counts as right", "negative": "counts as wrong", "drop": "the row ends before it"}
    filled = RATING_RULES_TABLE.format(
        neutral=neutral[rule.neutral],
        contested="left out of consensus" if rule.takes_cut_off else "left out",
        alternatives="a row of its own: the steps before it, and it" if rule.has_alternatives else "left out",
        human_steps="counts as right" if rule.human_steps == "positive" else "the row ends before it",
    )
    lines = ["## What becomes of a rating where a format knows right and wrong alone", "", filled, ""]
    lines += [_format_tally(name, tally) for name, tally in sorted(told.tallies.items())]
    return "\n".join(lines)


def _format_tally(name: str, tally: Mapping[str, Any]) -> str:
    said = [f"- `{name}`: {tally['rows']:,} rows"]
    said += [f"{n:,} {label}" for label, n in sorted(tally["labels"].items())]
    said += [f"left out: {n:,} {reason}" for reason, n in sorted(tally["left_out"].items())]
    if tally.get("characters"):
        said.append(
            "characters, by share of rows: " + ", ".join(f"{q} ≤ {n:,}" for q, n in sorted(tally["characters"].items()))
        )
    return "; ".join(said)


def _limits_section(told: CardContext) -> str:
    domains = _format_counts(told.facts["domains"], "not named")
    sources = told.facts["sources"]
    return "\n".join(
        [
            "## Limits",
            "",
            f"- Known failures: {_escape_cell(told.statement.get('known_failures', ''))}",
            f"- Domains: {domains}. Not covered: {_escape_cell(told.statement.get('domains_not_covered', ''))}",
            "- A step behind the first error has no label. A rating that only survivors gave is no label either.",
            f"- Licence of the labels: {_escape_cell(told.statement.get('licence', ''))}. Sources:",
            *(
                f"  - {_escape_cell(each['name'])}: {_escape_cell(each['licence'])} ({each['n']:,} rows)"
                for each in sources
            ),
        ]
    )


def _files_section(told: CardContext) -> str:
    rows = [f"| `{each.name}` | {each.rows:,} | {each.size:,} | `{each.sha256[:16]}…` |" for each in told.files]
    return "\n".join(["## Files", "", "| file | rows | bytes | sha256 |", "|---|---|---|---|", *rows])
