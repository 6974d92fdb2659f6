"""The nouns of this room; each module here says who owns its tables."""

from prm.models.generation import Generation, LoopRules
from prm.models.prm import PRM, PRMUsage, Score

__all__ = ["PRM", "Generation", "LoopRules", "PRMUsage", "Score"]
