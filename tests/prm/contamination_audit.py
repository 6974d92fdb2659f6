"""The audit of what a PRM was trained on, to its end."""

from typing import Any

from prm import contamination_check
from prm.models import PRM


def run_audit(prm: PRM) -> dict[str, Any]:
    looking = contamination_check.audit_training_set(prm)
    while True:
        try:
            next(looking)
        except StopIteration as ended:
            return dict(ended.value)
