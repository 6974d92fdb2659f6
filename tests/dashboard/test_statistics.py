"""Every reason for a missing number has a text."""

import pytest

from dashboard import statistics
from stats.estimates import Reason


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_text(reason: Reason) -> None:
    text = statistics.explain_missing_value(reason)
    assert text
    assert text != str(reason)
