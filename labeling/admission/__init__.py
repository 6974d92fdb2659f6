"""The way into the work: agree, read the guideline, train, be screened. Alone writes consents, readings, lessons and
screening results, and how far a rater has come. Which station comes next is told by `labeling.stations`.

Called through this module: `admission.consent(...)`."""

from labeling.admission.agreeing import HasChanged, consent, read_guideline
from labeling.admission.drawing import Proposal, Taken, propose, take
from labeling.admission.mixing import Mix, of_screening, places_of_hidden
from labeling.admission.retraining import train_again
from labeling.admission.screening import admit, allow_attempt, needed, try_again
from labeling.admission.sets import Progress, make_gold, place, progress, put_up
from labeling.admission.settling import claim, settle, submitted
from labeling.admission.training import read_lesson

__all__ = [
    "HasChanged",
    "Mix",
    "Progress",
    "Proposal",
    "Taken",
    "admit",
    "allow_attempt",
    "claim",
    "consent",
    "make_gold",
    "needed",
    "of_screening",
    "place",
    "places_of_hidden",
    "progress",
    "propose",
    "put_up",
    "read_guideline",
    "read_lesson",
    "settle",
    "submitted",
    "take",
    "train_again",
    "try_again",
]
