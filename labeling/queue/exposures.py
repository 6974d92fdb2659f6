"""Draw whether a rater sees a machine's labels on a trace, when the trace is given to the rater.

The arm follows from the seed of the plan, the rater and the trace, so anyone can repeat the draw. It is drawn for work
and hidden gold alike, because a rater must not be able to tell them apart; never for training, screening, and the
reserve, whose labels must be blind.
"""

import datetime as dt
import hashlib

from django.db import transaction

from labeling.models import Assignment, Exposure, SuggestionPlan
from labeling.models.assignment import AssignmentPurpose
from labeling.models.suggestion import ExposureArm


def draw_number(seed: str, rater_id: int, trace_id: int) -> float:
    """Return a number in [0, 1) that is fixed for the seed, the rater and the trace."""
    digest = hashlib.sha256(f"{seed} rater {rater_id} trace {trace_id}".encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48


def choose_arm(plan: SuggestionPlan, number: float) -> tuple[ExposureArm, float]:
    """Return the arm of a number in [0, 1), with its probability."""
    end = 0.0
    for arm, share in plan.shares.items():
        end += share
        if share > 0 and number < end:
            return arm, share
    return ExposureArm.BLIND, plan.shares[ExposureArm.BLIND]


def draw_exposure(*, plan_id: int, assignment_id: int, rater_id: int, trace_id: int, now: dt.datetime) -> None:
    """Draw the arm, unless the machine has not labeled the trace. Drawing again gives the same arm."""
    plan = SuggestionPlan.objects.get(pk=plan_id)
    labeled = Assignment.objects.counted().filter(trace=trace_id, rater=plan.machine_id, purpose=AssignmentPurpose.WORK)
    shown = labeled.order_by("-pk").values_list("pk", "submitted_revision").first()
    if shown is None:
        return
    arm, probability = choose_arm(plan, draw_number(plan.seed, rater_id, trace_id))
    drawn = {"plan": plan, "arm": arm, "probability": probability, "drawn_at": now}
    with transaction.atomic():
        Exposure.objects.update_or_create(
            assignment_id=assignment_id, defaults={**drawn, "shown_id": shown[0], "shown_revision": shown[1]}
        )
        Assignment.objects.filter(pk=assignment_id).update(is_assisted=arm != ExposureArm.BLIND)
