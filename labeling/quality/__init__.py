"""How far labels are to be trusted: gold and how raters meet it, and what the project makes of many ratings.

Called through this module: `quality.make_gold(...)`."""

from labeling.quality.adjudication import CannotDecide, contested, decide, send_back
from labeling.quality.arrivals import start_anew as count_arrivals_anew
from labeling.quality.figures import Shown, course
from labeling.quality.figures import count_again as count_figures_again
from labeling.quality.figures import read as figures_of
from labeling.quality.fits import current as fit_of
from labeling.quality.gold import (
    WORN_OUT_AFTER,
    NotKnowable,
    correct_gold,
    forget,
    make_gold,
    move_gold,
    promote,
    retire_gold,
)
from labeling.quality.scoring import Accuracy, accuracy, score
from labeling.quality.serving import arrange_hidden, hand_out
from labeling.quality.settlements import look_again, look_at, mark_brought_in
from labeling.quality.settling import settle
from labeling.quality.tallies import count, recount
from labeling.quality.watching import measure_bar, meet_gold
from labeling.quality.withdrawing import withdraw
from labeling.quality.workdays import since as work_since

__all__ = [
    "WORN_OUT_AFTER",
    "Accuracy",
    "CannotDecide",
    "NotKnowable",
    "Shown",
    "accuracy",
    "arrange_hidden",
    "contested",
    "correct_gold",
    "count",
    "count_arrivals_anew",
    "count_figures_again",
    "course",
    "decide",
    "figures_of",
    "fit_of",
    "forget",
    "hand_out",
    "look_again",
    "look_at",
    "make_gold",
    "mark_brought_in",
    "measure_bar",
    "meet_gold",
    "move_gold",
    "promote",
    "recount",
    "retire_gold",
    "score",
    "send_back",
    "settle",
    "withdraw",
    "work_since",
]
