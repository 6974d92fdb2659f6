"""Fixtures of the tests of quality."""

import pytest

from labeling import raters


@pytest.fixture(autouse=True)
def _pauses_take_effect_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raters, "MAX_TRACES_BEFORE_PAUSE", 0)
