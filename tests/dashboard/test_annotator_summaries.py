"""Flags on annotators, and the description of the gold threshold."""

import pytest

from bench import flags
from dashboard import annotator_summaries
from dashboard.annotator_summaries import QualitySignal, ShareOfCases
from labeling.quality import signals
from labeling.quality.signals import describe_signals

NONE = ShareOfCases(None, None, None, 0)


def list_keys(
    *,
    signals: list[QualitySignal] | None = None,
    missed: ShareOfCases = NONE,
    blamed: ShareOfCases = NONE,
    gold: ShareOfCases = NONE,
    threshold: float | None = None,
) -> list[str]:
    raised = annotator_summaries.list_flags(
        signals=signals or [], missed=missed, blamed=blamed, gold=gold, threshold=threshold
    )
    return [flag.key for flag in raised]


def test_high_shares_raise_flags_with_their_interval_and_n() -> None:
    high, low = ShareOfCases(0.31, 0.22, 0.42, 58), ShareOfCases(0.05, 0.02, 0.1, 58)
    assert list_keys(missed=high, blamed=low) == ["missed_errors"]
    assert list_keys(missed=low, blamed=high) == ["false_alarms"]
    (flag,) = annotator_summaries.list_flags(signals=[], missed=high, blamed=low, gold=NONE, threshold=None)
    assert high.text in flag.why
    assert all(text in high.text for text in (high.shown, high.interval, "58"))


def test_accuracy_below_the_threshold_raises_a_flag_when_the_interval_is_below() -> None:
    gold = ShareOfCases(0.4, 0.22, 0.61, 20)
    assert list_keys(gold=gold, threshold=0.8) == ["below_gold_threshold"]
    assert list_keys(gold=gold, threshold=0.6) == []
    assert list_keys(gold=gold, threshold=None) == []


def test_raised_signals_are_flags_with_their_values() -> None:
    figures = {
        "signs": {
            "fast": {"value": 0.4, "low": 0.3, "high": 0.5, "n": 90, "usual": None, "is_raised": True},
            "alike": {"value": 12.0, "low": 12.0, "high": 12.0, "n": 40, "usual": 0.001, "is_raised": True},
            "quick": {"value": -1.25, "low": -1.5, "high": -1.0, "n": 40, "usual": None, "is_raised": False},
        }
    }
    shown = [QualitySignal(signal) for signal in describe_signals(figures)]
    fast, alike, quick = shown
    assert (alike.shown, alike.interval) == ("12", "")
    assert (quick.shown, quick.interval) == ("−1.2", "[−1.5, −1.0]")
    assert list_keys(signals=shown) == ["fast", "alike"]
    assert f"{fast.shown} {fast.interval}, n = 90" in fast.why
    assert "12, n = 40" in alike.why


def test_every_flag_has_its_number_of_false_alarms() -> None:
    shares = {"missed_errors", "false_alarms", "below_gold_threshold"}
    assert signals.FALSE_FLAGS.keys() == signals.SIGNAL_KINDS.keys() | shares
    bad, good = ShareOfCases(0.31, 0.22, 0.42, 58), ShareOfCases(0.1, 0.05, 0.2, 58)
    raised = annotator_summaries.list_flags(signals=[], missed=bad, blamed=bad, gold=good, threshold=0.8)
    assert {flag.key: flag.n_false for flag in raised} == {key: signals.FALSE_FLAGS[key] for key in shares}


def test_few_honest_raters_of_a_simulated_campaign_are_flagged() -> None:
    """The full measurement, `python -m bench.flags`, is where the numbers of false alarms come from."""
    flagged = 0
    for seed in range(4):
        project, n_raters = flags.run_campaign(seed)
        flagged += sum(map(bool, flags.list_raised_flags(project, n_raters, seed)))
    assert flagged <= 2  # of 32


@pytest.mark.parametrize(
    ("threshold", "monitoring", "state"),
    [
        (None, {}, "missing"),
        (None, {"screens": True}, "missing"),
        (0.8, {}, "unused"),
        (0.8, {"false_pauses": 4.125, "gold_a_rater": 40}, "measured"),
    ],
)
def test_gold_threshold_is_described(threshold: float | None, monitoring: dict[str, object], state: str) -> None:
    status = annotator_summaries.describe_gold_threshold(threshold, monitoring)
    assert status.state == state
    assert status.text
    if state == "measured":
        assert all(value in status.text for value in ("4.1", "40"))
