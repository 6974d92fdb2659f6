"""Make a PRM current by a person's decision, with or against the gate.

A version that is unevaluated, unreachable or rejected requires a reason; an undecided one requires a confirmation.
Either is logged as the event `prm.gate_overridden`, which the PRM's page and the cards of later snapshots show.
"""

import datetime as dt
import enum
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from events.models import Event
from outbound.sealed_secrets import SecretUnreadable
from prm import registry, scores
from prm.backends.base import BackendError, ScorerInput, validate_scores
from prm.backends.remote import RetryPolicy
from prm.evaluation.gate import Verdict
from prm.models import PRM, Generation
from prm.models.prm import BackendKind
from prm.registry import NotRegistrable

OVERRIDDEN = "prm.gate_overridden"
_PROBE = ScorerInput("What is 1 + 1?", ["1 + 1 = 2."])
_PROBE_POLICY = RetryPolicy(timeout=5.0, tries=1)  # a person waits for the answer


class Concern(enum.StrEnum):
    """A reason not to make a PRM current."""

    UNEVALUATED = "unevaluated"
    UNREACHABLE = "unreachable"
    REJECTED = "rejected"
    UNDECIDED = "undecided"


class PromotionRefused(Exception):
    """The PRM has concerns, and a confirmation or a reason is missing."""

    def __init__(self, concerns: Sequence[Concern]) -> None:
        super().__init__(
            _(
                "This PRM is %(concerns)s. Confirm the promotion. A reason is also required, unless the "
                "PRM is only undecided."
            )
            % {"concerns": ", ".join(concerns)}
        )
        self.concerns = list(concerns)


def needs_reason(concerns: Sequence[Concern]) -> bool:
    return any(each is not Concern.UNDECIDED for each in concerns)


def find_concerns(prm: PRM) -> list[Concern]:
    """Return the reasons not to make a PRM current. Calls its scorer."""
    concerns = [Concern.UNEVALUATED] if not prm.evaluation.get("counts", {}).get("traces") else []
    if not _is_reachable(prm):
        concerns.append(Concern.UNREACHABLE)
    judged = Generation.objects.filter(candidate=prm).exclude(verdict="").order_by("-number")
    verdict = judged.values_list("verdict", flat=True).first()
    if verdict in {Verdict.REJECTED, Verdict.UNDECIDED} and Concern.UNEVALUATED not in concerns:
        concerns.append(Concern(verdict))
    return concerns


def _is_reachable(prm: PRM) -> bool:
    if prm.backend == BackendKind.PUSHED:
        return scores.traces_scored_by(prm).exists()
    try:
        backend = registry.load_backend(prm, limit=_PROBE_POLICY)
        validate_scores(backend.score([_PROBE]), [_PROBE], prm.semantics)
    except (BackendError, NotRegistrable, SecretUnreadable, ValueError):
        return False
    return True


def promote_prm(*, prm: PRM, by: User | None, now: dt.datetime, is_confirmed: bool = False, reason: str = "") -> None:
    """Make this PRM current. Raise PromotionRefused if its concerns are not confirmed or not answered by a reason."""
    if registry.current_prm(prm.project_id) == prm:
        return
    concerns, reason = find_concerns(prm), reason.strip()
    if concerns and (not is_confirmed or (needs_reason(concerns) and not reason)):
        raise PromotionRefused(concerns)
    with transaction.atomic():
        registry.make_current(prm=prm, by=by, now=now, why="chosen by hand")
        if concerns:
            audit_log.log_event(
                what=OVERRIDDEN,
                by=by,
                now=now,
                project=prm.project_id,
                subject=f"prm:{prm.pk}",
                detail={"prm": prm.label, "concerns": [each.value for each in concerns], "reason": reason},
            )


def list_overrides(
    *, project_id: int, until: dt.datetime | None = None, prm: PRM | None = None
) -> list[dict[str, Any]]:
    """Return the overridden gates of a project or of one PRM, oldest first: PRM, time, concerns, reason."""
    events = Event.objects.filter(project=project_id, what=OVERRIDDEN)
    if until is not None:
        events = events.filter(at__lte=until)
    if prm is not None:
        events = events.filter(subject=f"prm:{prm.pk}")
    return [{**event.detail, "at": event.at} for event in events.order_by("pk")]
