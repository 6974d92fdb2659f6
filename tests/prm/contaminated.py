"""The audit of what a PRM was trained on, to its end."""

from typing import Any

from prm import contaminating
from prm.models import PRM


def look(prm: PRM) -> dict[str, Any]:
    looking = contaminating.look(prm)
    while True:
        try:
            next(looking)
        except StopIteration as ended:
            return dict(ended.value)
