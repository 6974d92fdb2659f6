"""Labels of the steps after the first error: derive each label set that datasets use from one submission.

Datasets treat steps after the first error differently, and so do the protocols under which people rate. The table says
from which protocol each label set follows. `yes` means completely, `part` means up to the first error, and a dash means
that only simple cases are determined (see `_find_certain_error`).

| protocol         | stop | carried_forward | propagated_ternary | decisive_error |
|------------------|------|-----------------|--------------------|----------------|
| `first_error`    | yes  | part            | part               | -              |
| `carry_forward`  | yes  | yes             | yes                | -              |
| `every_step`     | yes  | part            | part               | -              |
| `recovery`       | yes  | yes             | yes                | yes            |
| `propagated`     | yes  | yes             | yes                | -              |
| `decisive_error` | -    | -               | -                  | yes            |

`propagated` and `decisive_error` only come from files. An unknown protocol is treated as `first_error`.

Sources: stop is the rule of ProcessBench (C. Zheng et al. 2024, arXiv:2412.06559), carried forward that of Hard2Verify
(S. Pandit et al. 2025, arXiv:2510.13744), propagated ternary that of AgentProcessBench (S. Fan et al. 2026,
arXiv:2603.14465). The decisive error is the first one from which a trace never recovers (S. Zhang et al. 2025,
arXiv:2505.00212).
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from msgspec import structs

from formats.records import JudgmentRecord, TraceRecord, TurnRecord

NEGATIVE = -1
# How a step after an error relates to it, as the rater marked it. A step without a mark depends on the error.
RECOVERS = "recovers"  # it corrects the error: no step from here on depends on an earlier error
INDEPENDENT = "independent"  # this step does not depend on the error; later ones may
ERROR_LINKS = (RECOVERS, INDEPENDENT)

LabelSet = Literal["as_rated", "stop", "carried_forward", "propagated_ternary", "decisive_error"]
LABEL_SETS: tuple[LabelSet, ...] = get_args(LabelSet)
# The protocol that a derived set follows, so that an exported file can be imported again.
PROTOCOL_OF_SET: dict[str, str] = {
    "stop": "first_error",
    "carried_forward": "carry_forward",
    "propagated_ternary": "propagated",
    "decisive_error": "decisive_error",
}
LabelingProtocol = Literal[
    "first_error", "carry_forward", "every_step", "recovery", "live", "propagated", "decisive_error"
]
_CARRIED = ("carry_forward", "propagated")  # the ratings already count what an error does to later steps
# The sets that have labels after the first error.
SETS_PAST_ERRORS = ("carried_forward", "propagated_ternary")


class RatedStep(NamedTuple):
    """The rating of a step on the path, and the rater's mark of how it relates to an earlier error."""

    rating: int | None
    error_link: str = ""


class DerivedLabels(NamedTuple):
    """The labels of one label set. A step that the set does not label, or that is not determined, has none."""

    labels: tuple[int | None, ...]
    error: int | None  # index of the first negative label
    is_complete: bool  # whether the submission determines all labels of the set


def derive_labels(steps: Sequence[RatedStep], *, protocol: str, label_set: str) -> DerivedLabels:
    """Return the labels of a label set. `steps` are the steps that can be rated, in their order."""
    match label_set:
        case "stop":
            return _make_result(*_stop_labels(steps, protocol))
        case "propagated_ternary":
            return _make_result(*_propagated_labels(steps, protocol))
        case "carried_forward":
            labels, is_complete = _propagated_labels(steps, protocol)
            return _make_result([1 if label == 0 else label for label in labels], is_complete)
        case "decisive_error":
            return _make_result(*_decisive_labels(steps, protocol))
        case _:
            raise ValueError(f"unknown label set {label_set!r}")


def _make_result(labels: Sequence[int | None], is_complete: bool) -> DerivedLabels:
    error = next((index for index, label in enumerate(labels) if label == NEGATIVE), None)
    return DerivedLabels(tuple(labels), error, is_complete)


def _stop_labels(steps: Sequence[RatedStep], protocol: str) -> tuple[list[int | None], bool]:
    """Label up to the first error, or up to the first step without a rating."""
    labels: list[int | None] = [None] * len(steps)
    if protocol == "decisive_error":
        return labels, False
    for index, step in enumerate(steps):
        labels[index] = step.rating
        if step.rating is None or step.rating == NEGATIVE:
            return labels, step.rating is not None
    return labels, True


def _propagated_labels(steps: Sequence[RatedStep], protocol: str) -> tuple[list[int | None], bool]:
    """Make later steps negative while they depend on an error."""
    if protocol in _CARRIED:
        return [step.rating for step in steps], all(step.rating is not None for step in steps)
    if protocol == "recovery":
        return _propagate(steps)
    labels, is_complete = _stop_labels(steps, protocol)
    is_whole = all(label is not None for label in labels)  # without an error, or with one at the last step
    return labels, is_complete and is_whole


def _propagate(steps: Sequence[RatedStep]) -> tuple[list[int | None], bool]:
    labels: list[int | None] = [None] * len(steps)
    follows_error = False
    for index, (rating, link) in enumerate(steps):
        if rating is None:  # it may be an error, so later labels are not determined
            return labels, False
        follows_error = follows_error and link != RECOVERS
        labels[index] = NEGATIVE if follows_error and link != INDEPENDENT else rating
        follows_error = follows_error or rating == NEGATIVE
    return labels, True


def _decisive_labels(steps: Sequence[RatedStep], protocol: str) -> tuple[list[int | None], bool]:
    """Label up to the decisive error. Errors from which the trace recovers, and steps that depend on them, have no
    label: the set calls them neither right nor decisive."""
    if protocol == "decisive_error":
        ratings = [step.rating for step in steps]
        n_kept = ratings.index(NEGATIVE) + 1 if NEGATIVE in ratings else len(ratings)
        return [*ratings[:n_kept], *[None] * (len(ratings) - n_kept)], True
    propagated, is_complete = _propagated_labels(steps, protocol)
    if protocol == "recovery" and is_complete:
        error = _find_unrecovered_error(steps)
    else:
        is_certain, error = _find_certain_error(steps, protocol)
        if not is_certain:
            return [None] * len(steps), False
    end = len(steps) if error is None else error
    labels = [None if label == NEGATIVE or index > end else label for index, label in enumerate(propagated)]
    if error is not None:
        labels[error] = NEGATIVE
    return labels, True


def _find_unrecovered_error(steps: Sequence[RatedStep]) -> int | None:
    error: int | None = None
    for index, (rating, link) in enumerate(steps):
        if error is not None and link == RECOVERS:
            error = None
        if error is None and rating == NEGATIVE:
            error = index
    return error


def _find_certain_error(steps: Sequence[RatedStep], protocol: str) -> tuple[bool, int | None]:
    """Return whether the decisive error is certain without marks, and its index.

    It is certain if there is no error, and if no step after the first error could be a recovery: the error is at the
    last step, or all steps after it were rated negative.
    """
    ratings = [step.rating for step in steps]
    first = next((index for index, rating in enumerate(ratings) if rating is None or rating == NEGATIVE), None)
    if first is None:
        return True, None
    if ratings[first] is None:
        return False, None
    rated_to_end = protocol in (*_CARRIED, "every_step") and all(rating == NEGATIVE for rating in ratings[first:])
    return rated_to_end or first == len(steps) - 1, first


# --- records ---------------------------------------------------------------------------------------------------------


def relabel_record(record: TraceRecord, label_set: str) -> tuple[TraceRecord, DerivedLabels]:
    """Return the record with the labels of a set as the ratings of its first submission, and the labels.

    Alternatives after the first error lose their ratings: they continue a path that is already wrong.
    """
    submission = record.submissions[0]
    turns = {turn.position: turn for turn in submission.turns}
    own = [position for position, step in enumerate(record.steps) if step.is_rateable]
    positions = sorted({*own, *turns})
    rated = [_rate_step(turns.get(position)) for position in positions]
    derived = derive_labels(rated, protocol=submission.protocol, label_set=label_set)
    first = next((position for position, step in zip(positions, rated, strict=True) if step.rating == NEGATIVE), None)
    labels = dict(zip(positions, derived.labels, strict=True))
    relabeled = [
        _relabel_turn(turn, labels[turn.position], keeps_others=first is None or turn.position <= first)
        for turn in submission.turns
    ]
    protocol = PROTOCOL_OF_SET[label_set]
    submission = structs.replace(submission, turns=relabeled, protocol=protocol)
    return structs.replace(record, submissions=[submission], residue=None), derived


def _rate_step(turn: TurnRecord | None) -> RatedStep:
    if turn is None or not turn.shown:
        return RatedStep(None)
    taken = turn.shown[turn.chosen or 0]
    return RatedStep(taken.rating, taken.error_link)


def _relabel_turn(turn: TurnRecord, label: int | None, *, keeps_others: bool) -> TurnRecord:
    if turn.shown is None:
        return turn
    taken = turn.chosen or 0
    shown = [
        JudgmentRecord(
            judgment.text,
            label if place == taken else judgment.rating if keeps_others else None,
            judgment.flagged,
            judgment.category,
            judgment.reason,
            severity=judgment.severity,
            evidence=judgment.evidence,
            citations=judgment.citations,
        )
        for place, judgment in enumerate(turn.shown)
    ]
    return structs.replace(turn, shown=shown)
