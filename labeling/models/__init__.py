"""The models of the domain. Each module names the package that owns its tables; only that package writes them."""

from labeling.models.assignment import Assignment, Submission
from labeling.models.consensus import (
    AgreementTally,
    Consensus,
    DailyProjectStats,
    FirstErrorReport,
    ProjectStats,
    ReportCount,
    Settlement,
    SettlementDay,
)
from labeling.models.gold import Gold, GoldAnswer, GoldRating
from labeling.models.judgment import CorrectionRequest, Judgment, RatingEdit, StepReview
from labeling.models.manifest import Manifest, ManifestRow
from labeling.models.onboarding import Consent, GuidelineAcknowledgment, ScreeningResult, TrainingFeedback
from labeling.models.problem import BenchmarkProblem, Problem, Provenance, Source
from labeling.models.project import ConsentText, Guideline, Project
from labeling.models.queue import AddedSlot, Lane, LaneCursor, QueueEntry, TraceDraw
from labeling.models.rater import Rater
from labeling.models.rater_model import RaterModelFit
from labeling.models.trace import Option, OptionPart, Step, Trace
from labeling.models.workday import WorkDay

__all__ = [
    "AddedSlot",
    "AgreementTally",
    "Assignment",
    "BenchmarkProblem",
    "Consensus",
    "Consent",
    "ConsentText",
    "CorrectionRequest",
    "DailyProjectStats",
    "FirstErrorReport",
    "Gold",
    "GoldAnswer",
    "GoldRating",
    "Guideline",
    "GuidelineAcknowledgment",
    "Judgment",
    "Lane",
    "LaneCursor",
    "Manifest",
    "ManifestRow",
    "Option",
    "OptionPart",
    "Problem",
    "Project",
    "ProjectStats",
    "Provenance",
    "QueueEntry",
    "Rater",
    "RaterModelFit",
    "RatingEdit",
    "ReportCount",
    "ScreeningResult",
    "Settlement",
    "SettlementDay",
    "Source",
    "Step",
    "StepReview",
    "Submission",
    "Trace",
    "TraceDraw",
    "TrainingFeedback",
    "WorkDay",
]
