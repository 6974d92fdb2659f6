"""Onboarding: consent, guideline, training and screening, before a rater gets work.

Only this package changes consents, guideline acknowledgments, training feedback and screening results, and the
onboarding columns of a rater. `labeling.gates` computes the next gate. Other packages call it as
`onboarding.give_consent(...)`.
"""

from labeling.onboarding.agreements import VersionSuperseded, acknowledge_guideline, give_consent
from labeling.onboarding.gold_sets import (
    SetProgress,
    load_set_progress,
    make_served_gold,
    position_in_set,
    serve_gold_set,
)
from labeling.onboarding.progress import advance_rater, claim_trace, handle_submission
from labeling.onboarding.screening import admit_rater, allow_another_attempt, begin_next_attempt, pass_mark
from labeling.onboarding.screening_set import (
    ScreeningMix,
    ScreeningProposal,
    ScreeningSetChange,
    count_hidden_gold_places,
    load_screening_mix,
    propose_screening_set,
    replace_screening_set,
)
from labeling.onboarding.training import acknowledge_feedback, require_retraining

__all__ = [
    "ScreeningMix",
    "ScreeningProposal",
    "ScreeningSetChange",
    "SetProgress",
    "VersionSuperseded",
    "acknowledge_feedback",
    "acknowledge_guideline",
    "admit_rater",
    "advance_rater",
    "allow_another_attempt",
    "begin_next_attempt",
    "claim_trace",
    "count_hidden_gold_places",
    "give_consent",
    "handle_submission",
    "load_screening_mix",
    "load_set_progress",
    "make_served_gold",
    "pass_mark",
    "position_in_set",
    "propose_screening_set",
    "replace_screening_set",
    "require_retraining",
    "serve_gold_set",
]
