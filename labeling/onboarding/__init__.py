"""The way into the work: agree, read the guideline, train, be screened. Alone writes consents, readings, lessons and
screening results, and how far a rater has come. Which station comes next is told by `labeling.gates`.

Called through this module: `admission.consent(...)`."""

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
    "VersionSuperseded",
    "ScreeningMix",
    "SetProgress",
    "ScreeningProposal",
    "ScreeningSetChange",
    "admit_rater",
    "allow_another_attempt",
    "claim_trace",
    "give_consent",
    "make_served_gold",
    "pass_mark",
    "load_screening_mix",
    "position_in_set",
    "count_hidden_gold_places",
    "load_set_progress",
    "propose_screening_set",
    "serve_gold_set",
    "acknowledge_guideline",
    "acknowledge_feedback",
    "advance_rater",
    "handle_submission",
    "replace_screening_set",
    "require_retraining",
    "begin_next_attempt",
]
