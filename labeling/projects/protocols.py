"""The protocols: which steps a submission needs, how it ends, and what the submit button says. Pure, without queries.

The work page applies the same rules while the network is away. It gets them from here: the rule of the protocol comes
with the trace, the texts of all submit states with the page. `static/js/work/trace_state.js` computes the state, and
tests/journeys/test_protocols.py proves that both compute the same one.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.models.assignment import FinishReason
from labeling.models.project import ClauseRule, Protocol

NEGATIVE = -1


class ProtocolRule(NamedTuple):
    needs_ratings: bool  # whether ratings are required before a submit
    ends_at_first_negative: bool  # steps after it are not rated, its alternatives are
    marks_recovery: bool = False  # raters mark how later steps relate to an error


RULES: dict[str, ProtocolRule] = {
    Protocol.FIRST_ERROR: ProtocolRule(needs_ratings=True, ends_at_first_negative=True),
    Protocol.EVERY_STEP: ProtocolRule(needs_ratings=True, ends_at_first_negative=False),
    Protocol.CARRY_FORWARD: ProtocolRule(needs_ratings=True, ends_at_first_negative=False),
    Protocol.RECOVERY: ProtocolRule(needs_ratings=True, ends_at_first_negative=False, marks_recovery=True),
    Protocol.LIVE: ProtocolRule(needs_ratings=False, ends_at_first_negative=False),
}


def describe_later_steps(protocol: str) -> str:
    """Return what raters read about the steps after the first error, or "" if these are not rated."""
    match protocol:
        case Protocol.EVERY_STEP:
            return _("Rate each later step by itself, as if the steps before it were right.")
        case Protocol.CARRY_FORWARD:
            return _("A later step that builds on the error is negative, even if it follows from it.")
        case Protocol.RECOVERY:
            return _(
                "Rate each later step by itself. It counts as depending on the error until you mark that the trace"
                " recovers, or that the step does not depend on it."
            )
        case _:
            return ""


class ProtocolStep(NamedTuple):
    """A step with the rating of each of its options, by position; option 0 is the trace's own."""

    position: int
    is_rateable: bool
    ratings: tuple[int | None, ...]
    has_kind: bool = False  # whether the rater chose a kind of error
    has_clause: bool = False  # whether the rating cites a clause of the guideline

    @property
    def needs_rating(self) -> bool:
        return self.is_rateable and bool(self.ratings)


class MissingRating(NamedTuple):
    """An option without a rating, by zero-based positions."""

    step: int
    option: int


class SubmitCode(StrEnum):
    FIND_NEGATIVE = "find_negative"
    RATE_STEPS = "rate_steps"
    RATE_BEFORE = "rate_before"
    RATE_ALTERNATIVES = "rate_alternatives"
    EXPLAIN_ERROR = "explain_error"
    CITE_CLAUSE = "cite_clause"
    ANSWER_QUESTIONS = "answer_questions"
    FIRST_ERROR = "first_error"
    NO_ERROR = "no_error"
    ALL_RATED = "all_rated"


class SubmitState(NamedTuple):
    """Whether a trace can be submitted, and if not, what is missing."""

    code: SubmitCode
    missing: int = 0  # ratings, kinds of errors, clauses, or answers to questions on the whole trace
    number: int | None = None  # of the step with the first error, or without a kind or clause, as people count

    @property
    def is_ready(self) -> bool:
        return not self.missing


def find_end(protocol: str, steps: Sequence[ProtocolStep]) -> int | None:
    """Return the position of the first step whose own text is rated negative, if a submission ends there."""
    if not RULES[protocol].ends_at_first_negative:
        return None
    return next((step.position for step in steps if step.needs_rating and step.ratings[0] == NEGATIVE), None)


def _list_path(protocol: str, steps: Sequence[ProtocolStep]) -> list[ProtocolStep]:
    """List the steps to rate, up to the first error."""
    end = find_end(protocol, steps)
    return [step for step in steps if step.needs_rating and (end is None or step.position <= end)]


def find_missing_ratings(protocol: str, steps: Sequence[ProtocolStep]) -> list[MissingRating]:
    """List what must still be rated: the steps up to the first error in their order, then its alternatives."""
    if not RULES[protocol].needs_ratings:
        return []
    end, path = find_end(protocol, steps), _list_path(protocol, steps)
    missing = [MissingRating(step.position, 0) for step in path if step.ratings[0] is None]
    if end is not None:
        alternatives = enumerate(path[-1].ratings[1:], start=1)
        missing += [MissingRating(end, option) for option, rating in alternatives if rating is None]
    return missing


def list_ratings(protocol: str, steps: Sequence[ProtocolStep]) -> list[tuple[int, int, int]]:
    """List step, option and rating of what a submission asks for: the steps up to the first error, then its
    alternatives."""
    end, path = find_end(protocol, steps), _list_path(protocol, steps)
    ratings = [(step.position, 0, step.ratings[0]) for step in path]
    if end is not None:
        ratings += [(end, option, rating) for option, rating in enumerate(path[-1].ratings[1:], start=1)]
    return [(step, option, rating) for step, option, rating in ratings if rating is not None]


def derive_finish_reason(protocol: str, steps: Sequence[ProtocolStep]) -> FinishReason:
    """Return how a complete submission ended."""
    return FinishReason.SOLUTION if find_end(protocol, steps) is None else FinishReason.FOUND_ERROR


def finish_reason_of(code: str) -> FinishReason:
    """Return how a submission ends if its button showed this code."""
    return FinishReason.FOUND_ERROR if code == SubmitCode.FIRST_ERROR else FinishReason.SOLUTION


def submit_state(
    protocol: str,
    steps: Sequence[ProtocolStep],
    *,
    requires_kind: bool = False,
    clause_rule: str = ClauseRule.NONE,
    unanswered: int = 0,
) -> SubmitState:
    """Return whether a submission has the ratings that the protocol needs, with `requires_kind` the kind of each error,
    the clauses that the rule requires, and the answers to the questions on the whole trace."""
    state = _rating_state(protocol, steps)
    if not state.is_ready:
        return state
    path = _list_path(protocol, steps)
    negative = [step for step in path if step.ratings[0] == NEGATIVE]
    citing = {
        ClauseRule.NEGATIVES.value: negative,
        ClauseRule.ALL.value: [step for step in path if step.ratings[0] is not None],
    }
    for code, open_steps in (
        (SubmitCode.EXPLAIN_ERROR, [step for step in negative if requires_kind and not step.has_kind]),
        (SubmitCode.CITE_CLAUSE, [step for step in citing.get(clause_rule, ()) if not step.has_clause]),
    ):
        if open_steps:
            number = sum(step.is_rateable for step in steps if step.position <= open_steps[0].position)
            return SubmitState(code, len(open_steps), number)
    return SubmitState(SubmitCode.ANSWER_QUESTIONS, unanswered) if unanswered else state


def _rating_state(protocol: str, steps: Sequence[ProtocolStep]) -> SubmitState:
    rule, end, missing = RULES[protocol], find_end(protocol, steps), find_missing_ratings(protocol, steps)
    if end is None:
        if missing:
            code = SubmitCode.FIND_NEGATIVE if rule.ends_at_first_negative else SubmitCode.RATE_STEPS
        else:
            code = SubmitCode.NO_ERROR if rule.ends_at_first_negative else SubmitCode.ALL_RATED
        return SubmitState(code, len(missing))
    number = sum(step.is_rateable for step in steps if step.position <= end)
    before = sum(place.step < end for place in missing)
    if before:
        return SubmitState(SubmitCode.RATE_BEFORE, before, number)
    return SubmitState(SubmitCode.RATE_ALTERNATIVES if missing else SubmitCode.FIRST_ERROR, len(missing), number)


def submit_texts() -> dict[SubmitCode, tuple[str, str]]:
    """Return the text of each submit state, for one missing rating and for several, with {count} and {number} in it."""

    def forms(one: str, other: str) -> tuple[str, str]:
        return ngettext(one, other, 1), ngettext(one, other, 2)

    first_error, no_error = _("Submit: first error at step {number}"), _("Submit: no error found")
    all_rated, explain = _("Submit: all steps rated"), _("Choose the kind of error at step {number}")
    cite = _("Cite a clause at step {number}")
    return {
        SubmitCode.FIND_NEGATIVE: forms(
            "Find an error or rate {count} more step",
            "Find an error or rate {count} more steps",
        ),
        SubmitCode.RATE_STEPS: forms("Rate {count} more step", "Rate {count} more steps"),
        SubmitCode.RATE_BEFORE: forms(
            "Rate {count} more step before step {number}", "Rate {count} more steps before step {number}"
        ),
        SubmitCode.RATE_ALTERNATIVES: forms(
            "Rate {count} more alternative to step {number}", "Rate {count} more alternatives to step {number}"
        ),
        SubmitCode.EXPLAIN_ERROR: (explain, explain),
        SubmitCode.CITE_CLAUSE: (cite, cite),
        SubmitCode.ANSWER_QUESTIONS: forms("Answer {count} more question", "Answer {count} more questions"),
        SubmitCode.FIRST_ERROR: (first_error, first_error),
        SubmitCode.NO_ERROR: (no_error, no_error),
        SubmitCode.ALL_RATED: (all_rated, all_rated),
    }


def submit_text(state: SubmitState) -> str:
    """Return what the submit button says: what is missing, or how the submission ends."""
    one, other = submit_texts()[state.code]
    return (one if state.missing == 1 else other).format(count=state.missing, number=state.number)
