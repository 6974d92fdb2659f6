"""Every reason for which a number is missing has words for people."""

import pytest

from dashboard import statistics
from stats.estimates import Reason


@pytest.mark.parametrize("reason", list(Reason))
def test_why_has_words_for_every_reason(reason: Reason) -> None:
    told = statistics.explain_missing_value(reason)
    assert told.endswith(".")
    assert told != str(reason)
