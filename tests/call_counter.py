"""Count the calls of a real function during a run."""

import cProfile
from collections.abc import Callable
from types import FunctionType
from typing import Any


def count_calls(function: Callable[..., Any], run: Callable[[], object]) -> int:
    assert isinstance(function, FunctionType)
    profile = cProfile.Profile()
    profile.runcall(run)
    return sum(each.callcount for each in profile.getstats() if each.code is function.__code__)
