"""First errors: one row per rater and one for the consensus, with probabilities, the majority and the outcome.

`p_error` and `p_none` count people who saw no score. They come from the rater model that settled the trace (`p_by` is
"raters"). Without a consensus or a rater model they are shares of the votes (`p_by` is "votes"). The `assisted_`
columns also count machines and people who saw scores. With the label set `decisive_error`, the rows of raters have
their decisive error.
"""

from collections.abc import Iterator

from formats.examples import (
    CONSENSUS_KIND,
    MACHINE_COLUMNS,
    Columns,
    LabelRule,
    OutputRow,
    RowTally,
    TraceExample,
    describe_rater,
)
from stats import label_votes

COLUMNS: Columns = {
    "trace": "int64",
    "problem": "string",
    "problem_digest": "string",
    "domain": "string",
    "steps": ["string"],
    "by": "string",
    **MACHINE_COLUMNS,
    "first_error": "int64",
    "is_censored": "bool",
    "trace_answers": "string",
    "p_error": ["float64"],
    "p_none": "float64",
    "p_by": "string",
    "n_votes": "int64",
    "majority": "int64",
    "majority_share": "float64",
    "majority_margin": "float64",
    "assisted_p_error": ["float64"],
    "assisted_p_none": "float64",
    "assisted_p_by": "string",
    "assisted_n_votes": "int64",
    "is_right": "bool",
    "outcome_by": "string",
    "weight": "float64",
    "policy": "string",
}


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    """Yield a row for each submission, then one for the consensus. -1 means no error; None means cut off before one."""
    columns = _trace_columns(example)
    votes = example.decisive_errors if rule.label_set == "decisive_error" else example.first_errors
    for row, vote in zip(example.submitted, votes, strict=True):
        first_error = None if vote.is_censored else -1 if vote.first_error is None else vote.first_error
        rater = describe_rater(row.facts)
        by = rater.pop("rater") or "unknown"
        yield {
            **columns,
            "by": by,
            **rater,
            "first_error": first_error,
            "is_censored": vote.is_censored,
            "trace_answers": row.facts.answers,
        }
    if example.agreed is not None:
        first_error = -1 if example.agreed.first_error is None else example.agreed.first_error
        rater = {"by": CONSENSUS_KIND, **dict.fromkeys(MACHINE_COLUMNS), "rater_kind": CONSENSUS_KIND}
        yield {**columns, **rater, "first_error": first_error, "is_censored": False, "trace_answers": None}


def _trace_columns(example: TraceExample) -> OutputRow:
    facts, record = example.facts, example.record
    return {
        "trace": facts.trace,
        "problem": facts.text,
        "problem_digest": facts.problem_digest,
        "domain": facts.domain,
        "steps": [step.options[0].text if step.options else "" for step in record.steps],
        **_probabilities(example),
        **_majority(example),
        **{f"assisted_{name}": value for name, value in _probabilities(example, assisted=True).items()},
        "is_right": record.is_right,
        "outcome_by": record.outcome_by,
        "weight": example.weight,
        "policy": facts.policy or "",
    }


def _probabilities(example: TraceExample, *, assisted: bool = False) -> OutputRow:
    votes, posterior, by = example.votes(assisted=assisted), list[float](), None
    agreed = example.agreed
    modeled = (agreed.assisted_posterior if assisted else agreed.posterior) if agreed else None
    if modeled is not None:
        posterior, by = list(modeled), "raters"
    elif votes:
        steps = [*range(len(example.record.steps)), None]
        posterior, by = [votes.count(step) / len(votes) for step in steps], "votes"
    p_none = posterior[-1] if posterior else None
    return {"p_error": posterior[:-1], "p_none": p_none, "p_by": by, "n_votes": len(votes)}


def _majority(example: TraceExample) -> OutputRow:
    """Return the first error that most people who saw no score found: -1 for no error, None for a tie."""
    leading = label_votes.find_leading_place(example.votes())
    if leading is None:
        return {"majority": None, "majority_share": None, "majority_margin": None}
    place = None if leading.is_tied else -1 if leading.place is None else leading.place
    return {"majority": place, "majority_share": leading.share, "majority_margin": leading.margin}
