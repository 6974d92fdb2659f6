"""Whether a screening set tells those who read from those who only press a key. Reads only.

Everybody meets the whole set, so that what somebody gets right who calls every step of it positive is known beforehand:
the traces that may be without an error. Where that reaches the mark, the set lets everybody in; at the rate at which
errors occur it often does, and a set that is half wrong never does.
"""

from collections import Counter
from typing import NamedTuple

from labeling.admission import screening
from labeling.admission.candidates import MOST_GOLD
from labeling.agreement import strata
from labeling.models import Gold, Project
from labeling.models.quality import GoldUse


class Mix(NamedTuple):
    """What a screening set is made of, and what is right of it without reading."""

    n_traces: int
    n_sound: int  # traces in which "no error" is right
    n_needed: int

    @property
    def lets_everybody_in(self) -> bool:
        return self.n_sound >= self.n_needed


def of_screening(project: Project) -> Mix | None:
    """None where the project has no screening set."""
    golds = Gold.objects.active().filter(trace__project=project, use=GoldUse.SCREENING)
    accepted = list(golds.values_list("accepted_first_errors", flat=True))
    if not accepted:
        return None
    sound = sum(None in places for places in accepted)
    return Mix(len(accepted), sound, screening.needed(len(accepted), project.screening_pass_share))


def places_of_hidden(project: Project) -> Counter[str]:
    """How much hidden gold has its first error where, of what was made last."""
    golds = Gold.objects.active().filter(trace__project=project).order_by("-pk")
    rows = golds.values_list("use", "accepted_first_errors", "trace__n_steps")[:MOST_GOLD]
    return Counter(strata.place_of(accepted, n_steps) for use, accepted, n_steps in rows if use == GoldUse.HIDDEN)
