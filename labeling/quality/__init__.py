"""How far labels are to be trusted: gold and how raters meet it, and what the project makes of many ratings.

Called through this module: `quality.make_gold(...)`."""

from labeling.quality.gold import NotKnowable, forget, make_gold
from labeling.quality.scoring import Accuracy, accuracy, score
from labeling.quality.settling import settle
from labeling.quality.tallies import count, recount

__all__ = ["Accuracy", "NotKnowable", "accuracy", "count", "forget", "make_gold", "recount", "score", "settle"]
