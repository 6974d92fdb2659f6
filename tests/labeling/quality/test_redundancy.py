"""When the rater model settles a trace, asks for one more label, or leaves it to the votes."""

from collections.abc import Mapping

import pytest

from labeling.quality import redundancy
from labeling.quality.redundancy import CONFIDENT, LIKELY, WeighedVotes
from labeling.quality.submitted_reports import RevisionReport

SURE, UNSURE, UNLIKELY = CONFIDENT, CONFIDENT - 0.01, LIKELY - 0.01


def settle(
    votes: list[int | None],
    probabilities: Mapping[int | None, float],
    *,
    decides: bool = True,
    can_ask: bool = True,
    overlap: int = 2,
) -> WeighedVotes:
    reports = [RevisionReport(number, 1, 1, number, vote, 0) for number, vote in enumerate(votes)]
    n_added = max(0, len(votes) - overlap)
    return redundancy.settle_by_model(
        redundancy.weigh_votes(reports, overlap=overlap, added=n_added),
        reports,
        lambda place: probabilities.get(place, 0.0),
        decides=decides,
        can_ask=can_ask,
        overlap=overlap,
        n_requested=overlap + n_added,
    )


@pytest.mark.parametrize(
    ("votes", "probabilities", "options", "expected"),
    [
        ([None, None], {None: SURE}, {}, ("settled", "all_agree", None)),
        ([None, None], {None: UNSURE}, {}, ("ask", "doubtful", None)),
        ([None, None], {None: UNSURE}, {"decides": False}, ("ask", "doubtful", None)),
        ([None, None], {None: UNSURE}, {"can_ask": False}, ("settled", "all_agree", None)),
        ([2, None], {2: SURE}, {}, ("settled", "most_likely", 2)),
        ([2, None], {2: SURE}, {"decides": False}, ("ask", "differ", None)),
        ([2, None], {2: UNSURE}, {}, ("ask", "differ", None)),
        ([2, None], {2: UNSURE}, {"can_ask": False}, ("ask", "differ", None)),
        ([2, None, None], {2: SURE}, {}, ("settled", "most_likely", 2)),
        ([2, None, None], {2: SURE}, {"decides": False}, ("ask", "doubtful", None)),
        ([2, None, None], {2: UNSURE}, {}, ("ask", "doubtful", None)),
        ([2, None, None], {2: UNSURE}, {"can_ask": False}, ("settled", "most_likely", 2)),
        ([2, None, None], {2: UNSURE}, {"can_ask": False, "decides": False}, ("settled", "most_agree", None)),
        ([2, None, None], {2: LIKELY}, {"can_ask": False}, ("settled", "most_likely", 2)),
        ([2, None, None], {None: UNLIKELY}, {"can_ask": False}, ("contested", "doubtful_at_limit", None)),
        ([2, None, None], {None: UNLIKELY}, {"can_ask": False, "decides": False}, ("settled", "most_agree", None)),
        ([None, None], {3: SURE}, {"can_ask": False}, ("contested", "doubtful_at_limit", None)),  # nobody named it
        ([None], {None: UNSURE}, {"overlap": 1}, ("settled", "all_agree", None)),
        ([None], {None: SURE}, {}, ("wait", "first_readings", None)),
    ],
)
def test_model_settles_what_it_is_sure_of_and_asks_where_votes_are_doubtful(
    votes: list[int | None],
    probabilities: dict[int | None, float],
    options: dict[str, bool],
    expected: tuple[str, str, int | None],
) -> None:
    weighed = settle(votes, probabilities, **options)
    settled = weighed.first_error if weighed.course == "settled" else None
    assert (weighed.course, weighed.reason, settled) == expected


def test_doubtful_trace_is_settled_if_no_label_can_be_requested() -> None:
    weighed = settle([2, None, None], {2: UNSURE})
    assert weighed.otherwise is not None
    assert (weighed.otherwise.course, weighed.otherwise.first_error) == ("settled", 2)
    unlikely = settle([2, None, None], {2: UNLIKELY}).otherwise
    assert unlikely is not None
    assert (unlikely.course, unlikely.reason) == ("contested", "doubtful_at_limit")
