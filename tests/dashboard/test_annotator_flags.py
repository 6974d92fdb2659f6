"""What is said about a rater who should be looked at."""

from dashboard import annotator_flags
from labeling.quality import signals


def test_flags_say_why_with_n_and_interval() -> None:
    much, little = annotator_flags.ShareOfCases(0.31, 0.22, 0.42, 58), annotator_flags.ShareOfCases(0.05, 0.02, 0.1, 58)
    (flag,) = annotator_flags.list_flags(
        signs=[], missed=much, blamed=little, gold=annotator_flags.ShareOfCases(None, None, None, 0), bar=0.8
    )
    assert flag.name == "over-credit"
    assert ".31 [.22, .42] of 58" in flag.why
    low = annotator_flags.ShareOfCases(0.4, 0.22, 0.61, 20)
    assert [
        each.name for each in annotator_flags.list_flags(signs=[], missed=little, blamed=little, gold=low, bar=0.8)
    ] == ["below the gold bar"]
    assert not annotator_flags.list_flags(signs=[], missed=little, blamed=little, gold=low, bar=0.6)


def test_signs_of_a_rater_are_told_in_words() -> None:
    told = {
        "signs": {
            "fast": {"value": 0.4, "low": 0.3, "high": 0.5, "n": 90, "usual": None, "is_raised": True},
            "alike": {"value": 12.0, "low": 12.0, "high": 12.0, "n": 40, "usual": 0.001, "is_raised": True},
            "quick": {"value": -1.25, "low": -1.5, "high": -1.0, "n": 40, "usual": None, "is_raised": False},
        }
    }
    signs = [annotator_flags.QualitySignal(each) for each in signals.describe_signals(told)]
    assert [(each.shown, each.interval) for each in signs] == [
        (".40", "[.30, .50]"),
        ("12", ""),
        ("−1.2", "[−1.5, −1.0]"),
    ]
    none = annotator_flags.ShareOfCases(None, None, None, 0)
    flags = annotator_flags.list_flags(signs=signs, missed=none, blamed=none, gold=none, bar=None)
    assert [each.name for each in flags] == [str(signals.SIGNAL_KINDS[kind].name) for kind in ("fast", "alike")]
    assert flags[0].why.endswith("Here: .40 [.30, .50], n = 90.")
    assert flags[1].why.endswith("Here: 12, n = 40.")
