"""Where the first error is: a row for each rater, and one for what the project stands behind, with the probability of
each place, what most readings name, and the outcome of the trace.

The probabilities of people who saw no score are those that the consensus was settled with; `p_by` says "raters" then.
Where there is none, or no fit of the raters was there yet, they are the shares of the readings that name each place,
and `p_by` is "votes". What machines and people who saw scores make of it stands apart, as `assisted_…`."""

from collections.abc import Iterator

from formats.columns import Columns, OutputRow
from formats.examples import RowTally, TraceExample
from formats.labeled_paths import LabelRule
from formats.rows import RowFacts
from stats import label_votes

COLUMNS: Columns = {
    "trace": "int64",
    "problem": "string",
    "problem_digest": "string",
    "domain": "string",
    "steps": ["string"],
    "by": "string",
    "first_error": "int64",
    "is_censored": "bool",
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
CONSENSUS = "consensus"


def write_rows(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    """-1 stands for "no error"; empty where a reading was cut off before it could tell."""
    about = _trace_columns(example)
    for reading, said in zip(_submission_facts(example), example.said, strict=True):
        place = None if said.is_censored else -1 if said.first_error is None else said.first_error
        by = reading.labeler or reading.machine or "unknown"
        yield {**about, "by": by, "first_error": place, "is_censored": said.is_censored}
    if example.agreed is not None:
        place = -1 if example.agreed.first_error is None else example.agreed.first_error
        yield {**about, "by": CONSENSUS, "first_error": place, "is_censored": False}


def _submission_facts(example: TraceExample) -> list[RowFacts]:
    return [each.facts for each in example.readings if each.facts.submission is not None]


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
        **{f"assisted_{name}": told for name, told in _probabilities(example, assisted=True).items()},
        "is_right": record.is_right,
        "outcome_by": record.outcome_by,
        "weight": example.weight,
        "policy": facts.policy or "",
    }


def _probabilities(example: TraceExample, *, assisted: bool = False) -> OutputRow:
    """The probability of each step, then of none; what it is of; and how many name a place."""
    votes, posterior, by = example.votes(assisted=assisted), list[float](), None
    agreed = example.agreed
    known = (agreed.assisted_posterior if assisted else agreed.posterior) if agreed else None
    if known is not None:
        posterior, by = list(known), "raters"
    elif votes:
        places = [*range(len(example.record.steps)), None]
        posterior, by = [votes.count(place) / len(votes) for place in places], "votes"
    p_none = posterior[-1] if posterior else None
    return {"p_error": posterior[:-1], "p_none": p_none, "p_by": by, "n_votes": len(votes)}


def _majority(example: TraceExample) -> OutputRow:
    """The place that most of the people name who saw no score; -1 for none, empty where two are named alike."""
    found = label_votes.find_leading_place(example.votes())
    if found is None:
        return {"majority": None, "majority_share": None, "majority_margin": None}
    place = None if found.is_tied else -1 if found.place is None else found.place
    return {"majority": place, "majority_share": found.share, "majority_margin": found.margin}
