"""The models of this package. Each module names the modules that change its tables."""

from prm.models.arena import Arena, ArenaCheck, ArenaEdit
from prm.models.canary import CanaryScore, CanarySet, GamingCanary
from prm.models.generation import Generation, LoopRules
from prm.models.prm import PRM, FileEvaluation, PRMUsage, Score

__all__ = [
    "PRM",
    "Arena",
    "ArenaCheck",
    "ArenaEdit",
    "CanaryScore",
    "CanarySet",
    "FileEvaluation",
    "GamingCanary",
    "Generation",
    "LoopRules",
    "PRMUsage",
    "Score",
]
