"""Decide how many submissions a trace needs: the majority rule, and when an additional label is requested. Pure.

A first error is settled when more than half of the votes name it; if the project asks for more than one submission, it
needs at least two votes. Otherwise one more submission is requested, up to the project's limit, and then the trace is
contested. So with an overlap of two, a third label is requested when the first two differ.

The rater model asks for one more label where it doubts the votes; once hidden gold confirms it, it settles traces: see
`settle_by_model`.

A censored submission casts no vote. A late submission, made after its slot went to another rater, votes like any other,
and the other rater is still waited for. Expect contested traces: under "three of at most five agree", ProcessBench
dropped about 30 % of its traces (C. Zheng et al. 2024, arXiv:2412.06559).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from labeling.quality.submitted_reports import RevisionReport

# From CONFIDENT on, the rater model settles a trace without another label. A settled trace is doubtful when a later fit
# finds its first error less probable than DOUBTFUL. If no label can be requested, a trace is contested below LIKELY.
# Measured in `bench.settling`.
CONFIDENT, DOUBTFUL, LIKELY = 0.97, 0.9, 0.8


class ResolutionCourse(StrEnum):
    WAIT = "wait"  # for assignments that are already open or queued
    ASK = "ask"  # for one more submission
    SETTLED = "settled"
    CONTESTED = "contested"


class WeighedVotes(NamedTuple):
    course: ResolutionCourse
    reason: str  # a key of `settlements.RESOLUTION_REASONS`
    n_votes: int
    first_error: int | None = None  # if settled
    share: float = 0.0  # of the votes for it
    differs_at: int | None = None  # the earliest step on which votes differ
    otherwise: "WeighedVotes | None" = None  # if one more submission cannot be requested


def weigh_votes(submitted: Sequence[RevisionReport], *, overlap: int, added: int, set_aside: int = 0) -> WeighedVotes:
    """Apply the majority rule. `overlap` submissions were requested at first, and `added` since. Of those that arrived,
    `set_aside` cast no vote and are not in `submitted`."""
    votes = _cast_votes(submitted)
    leading, n_leading = Counter(votes).most_common(1)[0] if votes else (None, 0)
    differs_at = _earliest_difference(votes)
    if len(votes) >= overlap and 2 * n_leading > len(votes) and n_leading >= min(2, overlap):
        reason = "all_agree" if n_leading == len(votes) else "most_agree"
        share = n_leading / len(votes)
        return WeighedVotes(ResolutionCourse.SETTLED, reason, len(votes), leading, share, differs_at)
    if sum(report.has_bad_problem for report in submitted) >= 2:
        return WeighedVotes(ResolutionCourse.CONTESTED, "bad_problem", len(votes), differs_at=differs_at)
    reason = "differ" if len(set(votes)) > 1 else "cut_off"
    if is_submission_awaited(submitted, n_requested=overlap + added - set_aside):
        reason = reason if added else "first_readings"
        return WeighedVotes(ResolutionCourse.WAIT, reason, len(votes), differs_at=differs_at)
    return WeighedVotes(ResolutionCourse.ASK, reason, len(votes), differs_at=differs_at)


def is_submission_awaited(submitted: Sequence[RevisionReport], *, n_requested: int) -> bool:
    return sum(not report.is_extra for report in submitted) < n_requested


def accept_by_probability(
    weighed: WeighedVotes,
    submitted: Sequence[RevisionReport],
    *,
    leading: int | None,
    probability: float,
    threshold: float,
    n_requested: int,
) -> WeighedVotes:
    """Revise the result in a project that settles by probability.

    The leading place is accepted at or above the threshold, however many voted for it. Below it nothing is settled,
    even if all agree.
    """
    if weighed.course == ResolutionCourse.WAIT or weighed.reason == "bad_problem":
        return weighed
    votes = _cast_votes(submitted)
    if probability >= threshold and votes:
        return weighed._replace(
            course=ResolutionCourse.SETTLED,
            reason="accepted",
            first_error=leading,
            share=votes.count(leading) / len(votes),
        )
    if weighed.course == ResolutionCourse.SETTLED:
        is_awaited = is_submission_awaited(submitted, n_requested=n_requested)
        course = ResolutionCourse.WAIT if is_awaited else ResolutionCourse.ASK
        return weighed._replace(course=course, reason="doubtful", differs_at=_earliest_difference(votes))
    return weighed


def settle_by_model(
    weighed: WeighedVotes,
    submitted: Sequence[RevisionReport],
    probability_at: Callable[[int | None], float],
    *,
    decides: bool,
    can_ask: bool,
    overlap: int,
    n_requested: int,
) -> WeighedVotes:
    """Revise the result of the votes by the probabilities of the rater model.

    One more label is requested where votes would settle a doubtful first error. A model that hidden gold confirms also
    decides: it settles the most likely of the places that were voted for, as soon as it is confident. Where votes would
    settle the trace and no additional label can be requested, it settles a likely place too, and otherwise the trace is
    contested: of such traces, votes settle nearly half wrongly.
    """
    votes = _cast_votes(submitted)
    if weighed.course == ResolutionCourse.WAIT or weighed.reason == "bad_problem" or len(votes) < max(overlap, 2):
        return weighed
    is_settled = weighed.course == ResolutionCourse.SETTLED
    leading = max(set(votes), key=lambda vote: (probability_at(vote), vote == weighed.first_error))
    is_confirmed = is_settled and leading == weighed.first_error
    by_model = weighed
    if decides and not is_confirmed:
        share = votes.count(leading) / len(votes)
        by_model = weighed._replace(course=ResolutionCourse.SETTLED, reason="most_likely", first_error=leading)
        by_model = by_model._replace(share=share, differs_at=_earliest_difference(votes))
    if decides and is_settled and probability_at(leading) < LIKELY:
        by_model = weighed._replace(course=ResolutionCourse.CONTESTED, reason="doubtful_at_limit")
    is_confident = probability_at(leading) >= CONFIDENT and (decides or is_confirmed)
    if is_confident or (is_settled and not can_ask):
        return by_model
    if not is_settled:
        return weighed
    is_awaited = is_submission_awaited(submitted, n_requested=n_requested)
    course = ResolutionCourse.WAIT if is_awaited else ResolutionCourse.ASK
    return weighed._replace(course=course, reason="doubtful", otherwise=by_model)


def _cast_votes(submitted: Sequence[RevisionReport]) -> list[int | None]:
    return [report.position for report in submitted if not report.is_censored]


def _earliest_difference(votes: Sequence[int | None]) -> int | None:
    # The votes differ at the earliest step that any of them names: the other raters continued after it.
    steps = [vote for vote in votes if vote is not None]
    return min(steps) if len(set(votes)) > 1 else None
