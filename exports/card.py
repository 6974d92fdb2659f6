"""The card of a snapshot, in the conventions of the Hugging Face hub: a head in YAML, then words. Pure.

It says what is known and says of the rest that it was not stated. What a number cannot be trusted for stands beside it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from exports import card_head, card_trust
from exports.files import Written
from exports.orders import Order

NOT_STATED = "not stated"
ASKED = {
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
TABLE = """| what a rater said | what becomes of it |
|---|---|
| neutral | {neutral} |
| anything behind the first error | absent, never filled in |
| contested, or given up | {contested}; kept in the long table |
| an alternative that was not chosen | {alternatives} |
| a step in the rater's own words | {human_steps} |
| what an agent saw | stands in the prompt, never among the completions |"""


class Told(Struct):
    """What a card is written from. Kept with the snapshot: written again, it is the same."""

    name: str
    project: str
    description: str
    protocol: str
    purpose: str
    frozen_at: str
    code_version: str
    order: Order
    rows: int
    left_out: dict[str, int]
    plan: dict[str, Any]
    statement: dict[str, str]
    facts: dict[str, Any]
    tallies: dict[str, dict[str, Any]]
    files: list[Written]
    figures: dict[str, str]  # drawings by file: what each shows


def write(told: Told) -> str:
    parts = [
        card_head.write(told.name, told.statement.get("licence", ""), told.rows, told.files),
        f"# {told.name}",
        *_body(told),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _body(told: Told) -> Iterator[str]:
    yield _what(told)
    yield _stated(told)
    yield _labels(told)
    yield card_trust.write(told.facts, told.figures)
    yield _selection(told)
    yield _left_out(told)
    yield _becomes(told)
    yield _limits(told)
    yield _files(told)


def _what(told: Told) -> str:
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
    return "\n\n".join([*said, _plain(told.description)]).strip()


def _stated(told: Told) -> str:
    rows = [f"| {label} | {_cell(told.statement.get(name, ''))} |" for name, label in ASKED.items()]
    return "\n".join(["## What the lead states", "", "| asked | stated |", "|---|---|", *rows])


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|").replace("\n", " ") or NOT_STATED


def _plain(text: str) -> str:
    """What people wrote, as text: a card is shown on pages that take markup."""
    return text.strip().replace("<", "&lt;")


def _labels(told: Told) -> str:
    facts, statement = told.facts, told.statement
    lines = [
        f"- Raters: {_listed(facts['rater_kinds'], 'unknown')}; who they are: {_cell(statement.get('raters', ''))}",
        f"- Pay: {_pay(facts['process'])}{_cell(statement.get('pay', ''))}",
        *_process(facts["process"]),
        f"- Made: {_listed(facts['origins'], 'unknown')}",
        f"- Guideline versions: {_listed(facts['guidelines'], 'none')}",
        f"- Saw the reference answer: {_listed(facts['saw_reference_answer'], 'not recorded')}",
        f"- Saw whether the final answer is right: {_listed(facts['saw_final_verdict'], 'not recorded')}",
        f"- Saw a PRM's scores before judging: {_listed(facts['assisted'], 'not recorded')}",
        f"- Finish reasons: {_listed(facts['finish_reasons'], 'none')}",
        f"- Base models in the traces: {_listed(facts['base_models'], NOT_STATED)}",
        f"- Policies in the traces: {_listed(facts['policies'], NOT_STATED)}",
        f"- Scaffolds in the traces: {_listed(facts['scaffolds'], 'none')}",
        f"- PRMs that chose traces: {_listed(facts['choosing_prms'], 'none')}",
        f"- PRM whose scores of steps are in the long table: {_plain(told.plan.get('prm_label', '')) or 'none'}",
        f"- Cut into steps by: {_listed(facts['segmenters'], 'the file itself')}",
    ]
    lines.append(f"- Probabilities: {_probabilities(facts)}")
    if any(facts["machines"]):
        lines.append(f"- Machines among the raters: {_listed(facts['machines'], 'none of these')}")
    return "\n".join(["## How labels were made", "", *lines])


def _probabilities(facts: Mapping[str, Any]) -> str:
    """Which columns are of people alone: `n` counts readings that are not."""
    n = sum(n for name, n in facts["machines"].items() if name) + facts["assisted"].get("True", 0)
    return (
        "`p_…` and `posterior_…` are of people who saw no score; with machines and people who saw scores they stand"
        f" apart, as `assisted_…`. Of the submissions here {n:,} are of those"
    )


def _pay(process: Mapping[str, Any]) -> str:
    return f"{process['pay']} an hour in the project's settings; in the lead's words: " if process.get("pay") else ""


def _process(process: Mapping[str, Any]) -> Iterator[str]:
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


def _listed(counts: Mapping[str, int], nothing: str) -> str:
    words = {"True": "yes", "False": "no", "": nothing}
    found = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{words.get(name, _cell(name))} ({n:,})" for name, n in found) or nothing


def _selection(told: Told) -> str:
    rows = [f"| {each['arm'] or 'not recorded'} | {each['n']:,} | {_range(each)} |" for each in told.facts["arms"]]
    plan = told.plan
    lines = ["## How traces were chosen", "", "| arm | rows | probability of the draw |", "|---|---|---|", *rows, ""]
    lines += card_trust.drawn(told.figures, "selection.svg")
    if plan.get("n_weighted"):
        lines.append(
            f"Rows carry `q` and a weight: 1 / (q × traces left), no more than 10, made to average one. The "
            f"{plan['n_weighted']:,} draws are worth {plan['effective_sample_size']:,.0f} equal ones. Weigh with it "
            "whatever is estimated from traces that were chosen actively; do not evaluate on them unweighted."
        )
    else:
        lines.append("Nothing was drawn with a recorded probability: there are no weights.")
    return "\n".join(lines)


def _range(arm: Mapping[str, Any]) -> str:
    return "not drawn" if arm["low"] is None else f"{arm['low']:.3g} to {arm['high']:.3g}"


REASONS = {
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
ALWAYS = ("duplicate", "astride", "late")  # what an archive leaves out as well, where it was asked for that


def _left_out(told: Told) -> str:
    lines = ["## What was left out", ""]
    reasons = REASONS if told.purpose != "archive" else {key: REASONS[key] for key in ALWAYS if key in told.left_out}
    if reasons:
        lines += ["| why | rows |", "|---|---|"]
        lines += [f"| {name} | {told.left_out.get(key, 0):,} |" for key, name in reasons.items()]
    else:
        lines.append("Nothing: an archive holds every submission as it is, reserve, gold and screening included.")
    lists = sorted(told.plan.get("benchmarks", {}).items())
    if lists:
        lines += ["", "Problems of the project that stand on a list:", ""]
        lines += [f"- {_cell(name)}: {n:,}" for name, n in lists]
    if told.order.taken_in:
        lines += ["", f"**Taken in nevertheless:** {', '.join(told.order.taken_in)}. Why: {_cell(told.order.reason)}"]
    return "\n".join(lines)


def _becomes(told: Told) -> str:
    rule = told.order.rule
    neutral = {"positive": "counts as right", "negative": "counts as wrong", "drop": "the row ends before it"}
    filled = TABLE.format(
        neutral=neutral[rule.neutral],
        contested="left out of consensus" if rule.takes_cut_off else "left out",
        alternatives="a row of its own: the steps before it, and it" if rule.has_alternatives else "left out",
        human_steps="counts as right" if rule.human_steps == "positive" else "the row ends before it",
    )
    lines = ["## What becomes of a rating where a format knows right and wrong alone", "", filled, ""]
    lines += [_tally(name, tally) for name, tally in sorted(told.tallies.items())]
    return "\n".join(lines)


def _tally(name: str, tally: Mapping[str, Any]) -> str:
    said = [f"- `{name}`: {tally['rows']:,} rows"]
    said += [f"{n:,} {label}" for label, n in sorted(tally["labels"].items())]
    said += [f"left out: {n:,} {reason}" for reason, n in sorted(tally["left_out"].items())]
    if tally.get("characters"):
        said.append(
            "characters, by share of rows: " + ", ".join(f"{q} ≤ {n:,}" for q, n in sorted(tally["characters"].items()))
        )
    return "; ".join(said)


def _limits(told: Told) -> str:
    domains = _listed(told.facts["domains"], "not named")
    sources = told.facts["sources"]
    return "\n".join(
        [
            "## Limits",
            "",
            f"- Known failures: {_cell(told.statement.get('known_failures', ''))}",
            f"- Domains: {domains}. Not covered: {_cell(told.statement.get('domains_not_covered', ''))}",
            "- A step behind the first error has no label. A rating that only survivors gave is no label either.",
            f"- Licence of the labels: {_cell(told.statement.get('licence', ''))}. Sources:",
            *(f"  - {_cell(each['name'])}: {_cell(each['licence'])} ({each['n']:,} rows)" for each in sources),
        ]
    )


def _files(told: Told) -> str:
    rows = [f"| `{each.name}` | {each.rows:,} | {each.size:,} | `{each.sha256[:16]}…` |" for each in told.files]
    return "\n".join(["## Files", "", "| file | rows | bytes | sha256 |", "|---|---|---|---|", *rows])
