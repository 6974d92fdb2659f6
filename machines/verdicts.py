"""Combine the votes of a judge into one verdict on a trace: a distribution over the first error, and a rating per step.

P(E) is the share of parsed votes for each first error. The verdict of a critic is the first error with the most votes;
in a tie, the one that was voted for first. The verdict of a judge that labels steps is the majority for each step, by
the same rule.

Votes with yes or no have P(step right) for each step: the stated one, otherwise 1 for Yes and 0 for No. Then P(E) comes
from these, as for a PRM: P(E = k) is the product of P(right) before k, times 1 - P(right) at k. P(right) is averaged
over the votes, and a step is wrong if it is below 0.5.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from machines.prompts import JudgeContract
from machines.replies import ParsedReply, ReplyState


@dataclass(frozen=True)
class StepVerdict:
    """`n_right` of `n_votes` votes put the first error after this step, or nowhere. Of rollouts, so many had the right
    answer; a step that a search only inferred has none."""

    position: int
    rating: int
    n_votes: int
    n_right: int
    reason: str = ""
    clause: str = ""  # of a policy
    p_right: float | None = None  # of yes or no: that no step so far is wrong

    @property
    def value(self) -> float | None:
        if self.p_right is not None:
            return self.p_right
        return self.n_right / self.n_votes if self.n_votes else None


@dataclass(frozen=True)
class TraceVerdict:
    first_error: int | None
    first_errors: dict[int | None, float]  # P(E): share of the votes by position; None for no error
    n_votes: int  # parsed ones
    steps: list[StepVerdict]


def combine_votes(contract: str, replies: Sequence[ParsedReply], rateable: Sequence[int]) -> TraceVerdict | None:
    """Return the verdict, or None if no vote could be read."""
    votes = [reply for reply in replies if reply.state == ReplyState.PARSED]
    if not votes:
        return None
    if contract == JudgeContract.YES_NO:
        return _combine_yes_no(votes, rateable)
    counts = Counter(vote.first_error for vote in votes)
    ratings = _count_critic(counts, rateable) if contract == JudgeContract.CRITIC else _count_labels(votes, rateable)
    steps = [
        StepVerdict(
            position,
            rating,
            n_votes=len(votes),
            n_right=sum(n for error, n in counts.items() if error is None or error > position),
            reason=_find_text([(vote.ratings, vote.reasons) for vote in votes], position, rating),
            clause=_find_text([(vote.ratings, vote.clauses) for vote in votes], position, rating),
        )
        for position, rating in ratings.items()
    ]
    first_error = min((step.position for step in steps if step.rating == -1), default=None)
    shares = {error: n / len(votes) for error, n in sorted(counts.items(), key=_order_first_errors)}
    return TraceVerdict(first_error, shares, len(votes), steps)


def _combine_yes_no(votes: Sequence[ParsedReply], rateable: Sequence[int]) -> TraceVerdict:
    shares: dict[int | None, float] = {}
    steps, p_so_far = [], 1.0
    for position in rateable:
        given = [
            vote.yes_shares.get(position, float(vote.ratings[position] == 1))
            for vote in votes
            if position in vote.ratings
        ]
        if not given:  # a vote may end with its first No
            continue
        p_right = sum(given) / len(given)
        shares[position] = p_so_far * (1 - p_right)
        p_so_far *= p_right
        steps.append(StepVerdict(position, 1 if p_right >= 0.5 else -1, 0, 0, p_right=p_so_far))
    shares[None] = p_so_far
    first_error = min((step.position for step in steps if step.rating == -1), default=None)
    return TraceVerdict(first_error, {error: share for error, share in shares.items() if share > 0}, len(votes), steps)


def _order_first_errors(item: tuple[int | None, int]) -> tuple[bool, int]:
    return item[0] is None, item[0] or 0


def _count_critic(counts: Counter[int | None], rateable: Sequence[int]) -> dict[int, int]:
    winner = counts.most_common(1)[0][0]
    return {position: -1 if position == winner else 1 for position in rateable if winner is None or position <= winner}


def _count_labels(votes: Sequence[ParsedReply], rateable: Sequence[int]) -> dict[int, int]:
    ratings = {}
    for position in rateable:
        counts = Counter(vote.ratings[position] for vote in votes if position in vote.ratings)
        if counts:
            ratings[position] = counts.most_common(1)[0][0]
    return ratings


def _find_text(votes: Sequence[tuple[Mapping[int, int], Mapping[int, str]]], position: int, rating: int) -> str:
    """Return the first text that a vote gave for this rating."""
    texts = (found.get(position, "") for ratings, found in votes if ratings.get(position) == rating)
    return next((text for text in texts if text), "")
