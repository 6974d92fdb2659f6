"""Where the first error is: a row for each rater, and one for what the project stands behind, with the probability of
each place, and the outcome of the trace.

The probabilities are those that the consensus was settled with; `p_by` says "raters" then. Where there is none, or no
fit of the raters was there yet, they are the shares of the readings that name each place, and `p_by` is "votes"."""

from collections.abc import Iterator

from exports.formats.columns import Columns, Row
from exports.formats.examples import Example
from exports.formats.path import Rule
from exports.formats.tally import Tally
from labeling.readings import Facts

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
    "is_right": "bool",
    "outcome_by": "string",
    "weight": "float64",
    "policy": "string",
}
CONSENSUS = "consensus"


def rows(example: Example, rule: Rule, tally: Tally) -> Iterator[Row]:
    """-1 stands for "no error"; empty where a reading was cut off before it could tell."""
    about = _about(example)
    for reading, said in zip(_rated(example), example.said, strict=True):
        place = None if said.is_censored else -1 if said.first_error is None else said.first_error
        by = reading.labeler or reading.machine or "unknown"
        yield {**about, "by": by, "first_error": place, "is_censored": said.is_censored}
    if example.agreed is not None:
        place = -1 if example.agreed.first_error is None else example.agreed.first_error
        yield {**about, "by": CONSENSUS, "first_error": place, "is_censored": False}


def _rated(example: Example) -> list[Facts]:
    return [each.facts for each in example.readings if each.facts.submission is not None]


def _about(example: Example) -> Row:
    facts, record = example.facts, example.record
    n_votes, probabilities, by = _probabilities(example)
    return {
        "trace": facts.trace,
        "problem": facts.text,
        "problem_digest": facts.problem_digest,
        "domain": facts.domain,
        "steps": [step.options[0].text if step.options else "" for step in record.steps],
        "p_error": probabilities[:-1],
        "p_none": probabilities[-1] if probabilities else None,
        "p_by": by,
        "n_votes": n_votes,
        "is_right": record.is_right,
        "outcome_by": record.outcome_by,
        "weight": example.weight,
        "policy": facts.policy or "",
    }


def _probabilities(example: Example) -> tuple[int, list[float], str | None]:
    """How many name a place; the probability of each step, then of none; and what it is of."""
    votes = [each.first_error for each in example.said if not each.is_censored]
    if example.agreed is not None and example.agreed.posterior is not None:
        return len(votes), list(example.agreed.posterior), "raters"
    if not votes:
        return 0, [], None
    places = [*range(len(example.record.steps)), None]
    return len(votes), [votes.count(place) / len(votes) for place in places], "votes"
