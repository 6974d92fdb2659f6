"""Examples of several raters: no format writes a label after the first error of the consensus."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from formats import examples, outcomes
from formats.examples import AgreedLabels, FirstErrorVote, LabelRule, RowTally
from formats.records import TraceRecord
from labeling.quality import consensus
from labeling.quality.consensus import OptionRating
from tests.formats import prm800k_lines as prm
from tests.formats.export_rows import make_example, write_rows

STEPS = ["a", "b", "c", "d", "e"]


def rated(*ratings: int, labeler: str = "ann") -> TraceRecord:
    """Return a rater's record of a trace of five steps."""
    steps = [prm.make_step(STEPS[n], rating, chosen=None if rating < 0 else 0) for n, rating in enumerate(ratings)]
    finish = "found_error" if ratings and ratings[-1] < 0 else "solution"
    return prm.make_record(*steps, pre_generated_steps=STEPS, labeler=labeler, finish_reason=finish)


def agreed(raters: list[list[int]], first_error: int | None) -> AgreedLabels:
    """Return the consensus labels that follow from this first error."""
    ends = [next((n for n, rating in enumerate(each) if rating < 0), None) for each in raters]
    ratings = [
        OptionRating(n, 0, rating, end) for each, end in zip(raters, ends, strict=True) for n, rating in enumerate(each)
    ]
    labels = consensus.labels_from_first_error(ratings, first_error=first_error, votes=ends)
    return AgreedLabels(1, first_error, 0.5, [(*label,) for label in labels])


def written(name: str, raters: list[list[int]], first_error: int | None) -> list[dict[str, Any]]:
    records = [rated(*each, labeler=f"rater {n}") for n, each in enumerate(raters)]
    return write_rows(name, make_example(*records, agreed=agreed(raters, first_error), is_consensus=True))


STOPS = [[1, 1, -1], [1, 0, -1], [1, 1, 1, 1, 1]]  # at 2, at 2, and never


def test_no_format_labels_a_step_after_the_agreed_error() -> None:
    assert written("trl", STOPS, 2)[0]["labels"] == [True, True, False]
    assert written("math_shepherd", STOPS, 2)[0]["label"].endswith("Step 1: a +\nStep 2: b +\nStep 3: c -")
    assert len(written("rlhflow", STOPS, 2)[0]["conversations"]) == 6
    assert written("processbench", STOPS, 2)[0]["label"] == 2
    rows = written("steps", STOPS, 2)
    assert [row["label"] for row in rows] == [1, 1, -1, None, None]
    assert [row["n_at_risk"] for row in rows] == [3, 3, 3, 1, 1]
    assert [row["n_raters"] for row in rows] == [3, 3, 3, 1, 1]
    assert rows[3]["ratings"][0]["rating"] == 1  # the rating of the rater who continued is kept
    assert [round(row["p_correct"], 2) for row in rows] == [1.0, 1.0, 0.33, 0.33, 0.33]
    by = {row["by"]: row["first_error"] for row in written("first_errors", STOPS, 2)}
    assert by == {"rater 0": 2, "rater 1": 2, "rater 2": -1, "consensus": 2}


one = st.integers(0, 5).flatmap(
    lambda end: st.lists(st.sampled_from([0, 1]), min_size=end, max_size=end).map(
        lambda before: [*before, -1] if end < 5 else before
    )
)


@given(st.lists(one, min_size=1, max_size=5), st.none() | st.integers(0, 4))
@pytest.mark.fault
def test_no_label_follows_any_first_error(raters: list[list[int]], first_error: int | None) -> None:
    last = 4 if first_error is None else first_error
    for row in written("trl", raters, first_error):
        assert len(row["labels"]) <= last + 1
        assert all(row["labels"][:-1])
    for name in ("math_shepherd", "rlhflow", "pairs"):
        written(name, raters, first_error)
    assert all(row["label"] is None for row in written("steps", raters, first_error) if row["step"] > last)
    assert all(len(row["conversations"]) <= 2 * (last + 1) for row in written("rlhflow", raters, first_error))


def test_contested_traces_are_only_in_the_long_table() -> None:
    tally = RowTally()
    contested = make_example(rated(1, -1), rated(-1, labeler="ben"), is_consensus=True, is_contested=True)
    for name in ("trl", "processbench"):
        assert not write_rows(name, contested, tally=tally)
    assert tally.left_out == {examples.UNSETTLED: 2}
    rows = write_rows("steps", contested)
    assert {row["is_contested"] for row in rows} == {True}
    assert [each["rating"] for each in rows[0]["ratings"]] == [1, -1]


def test_first_errors_of_unfinished_submissions_are_censored() -> None:
    given_up = rated(1, 1)
    given_up.submissions[0].finish_reason = "give_up"
    assert make_example(given_up, rated(1, 1, 1, 1, 1), rated(1, -1)).first_errors == [
        FirstErrorVote(None, is_censored=True),
        FirstErrorVote(None, is_censored=False),
        FirstErrorVote(1, is_censored=False),
    ]


def test_training_leaves_out_submissions_that_gave_up() -> None:
    given_up, tally = rated(1, 1), RowTally()
    given_up.submissions[0].finish_reason = "give_up"
    assert not write_rows("trl", make_example(given_up), LabelRule(takes_cut_off=False), tally)
    assert tally.left_out == {examples.GAVE_UP: 1}


@pytest.mark.parametrize("name", ["trl", "math_shepherd", "rlhflow", "pairs", "processbench"])
def test_training_leaves_out_contested_traces(name: str) -> None:
    contested, tally = make_example(rated(1, 1, -1), rated(-1, labeler="ben"), is_contested=True), RowTally()
    rule = LabelRule(takes_contested=False)
    assert not write_rows(name, contested, rule, tally)
    assert tally.left_out[examples.CONTESTED] == 1
    assert {row["is_contested"] for row in write_rows("steps", contested, rule)} == {True}


def test_weights_average_one_and_are_capped() -> None:
    tally = RowTally()
    for q in (0.1, 0.0001):
        write_rows("trl", make_example(rated(1), q=q, n_left=100, draw_arm="policy"), tally=tally)
    assert [row["weight"] for row in tally.weights] == [0.1, 10.0]
    assert tally.weights[0] == {"weight": 0.1, "q": 0.1, "arm": "policy", "trace": 1, "rater": "ann"}
    assert make_example(rated(1)).weight is None


def test_pairs_prefer_positive_options() -> None:
    options = {
        "completions": [{"text": t, "rating": r, "flagged": False} for t, r in zip("xyz", [-1, 1, 0], strict=True)]
    }
    turn = {**options, "human_completion": None, "chosen_completion": 1}
    (row,) = write_rows("pairs", make_example(prm.make_record(prm.make_step("a"), turn)))
    assert (row["prefix"], row["chosen"], row["rejected"], row["step"]) == (["a"], "y", "x", 1)


def test_outcomes_need_no_rater() -> None:
    found, tally = rated(1), RowTally()
    assert not write_rows("outcomes", make_example(found), tally=tally)
    found.is_right, found.submissions = True, []
    (row,) = write_rows("outcomes", make_example(found), tally=tally)
    assert (row["completion"], row["is_right"], row["reference_answer"]) == ("a\nb\nc\nd\ne", True, "6")
    assert tally.left_out == {outcomes.OUTCOME_UNKNOWN: 1}


def test_labels_of_machines_are_in_columns_of_their_own() -> None:
    """Two people find step 2 wrong; a machine and a person who saw scores find step 0 wrong."""
    found = make_example(
        *(rated(*each, labeler=f"rater {n}") for n, each in enumerate([[1, 1, -1], [1, 1, -1], [-1], [-1]]))
    )
    found.rows[2].facts = found.rows[2].facts._replace(machine="judge: x", labeler=None)
    found.rows[3].facts = found.rows[3].facts._replace(is_assisted=True)
    found.agreed = structs.replace(
        agreed([[1, 1, -1]] * 2, 2), posterior=[0, 0.1, 0.9, 0, 0, 0], assisted_posterior=[0.4, 0.1, 0.5, 0, 0, 0]
    )
    row = next(iter(write_rows("first_errors", found)))
    assert (row["p_error"][2], row["p_by"], row["n_votes"]) == (0.9, "raters", 2)
    assert (row["assisted_p_error"][0], row["assisted_p_by"], row["assisted_n_votes"]) == (0.4, "raters", 4)
    assert (row["majority"], row["majority_share"], row["majority_margin"]) == (2, 1.0, 1.0)
    steps = write_rows("steps", found)
    assert [each["n_at_risk"] for each in steps[:3]] == [2, 2, 2]
    assert [each["p_correct"] for each in steps[:3]] == [1.0, 1.0, 0.0]
    assert [each["assisted_p_correct"] for each in steps[:3]] == [0.5, 0.5, 0.0]
    assert [round(each["posterior_correct"], 6) for each in steps[:3]] == [1.0, 0.9, 0.0]
    assert [round(each["assisted_posterior_correct"], 6) for each in steps[:3]] == [0.6, 0.5, 0.0]
    found.agreed = None
    row = next(iter(write_rows("first_errors", found)))
    assert (row["p_by"], row["p_error"][2], row["assisted_p_by"], row["assisted_p_error"][2]) == (
        "votes",
        1,
        "votes",
        0.5,
    )


def test_assisted_columns_are_empty_without_machines() -> None:
    row = written("first_errors", STOPS, 2)[0]
    assert (row["majority"], row["majority_share"], row["majority_margin"]) == (2, 2 / 3, 1 / 3)
    assisted = [row[f"assisted_{name}"] for name in ("p_error", "p_none", "p_by", "n_votes")]
    assert assisted == [[], None, None, 0]
    tied = written("first_errors", STOPS[1:], 2)[0]
    assert (tied["majority"], tied["majority_share"], tied["majority_margin"]) == (None, 0.5, 0.0)
