"""How far labels are to be trusted: gold and how raters meet it, and what the project makes of many ratings.

Called through this module: `quality.make_gold(...)`."""

from labeling.quality.gold import NotKnowable, make_gold
from labeling.quality.scoring import Accuracy, accuracy, score

__all__ = ["Accuracy", "NotKnowable", "accuracy", "make_gold", "score"]
