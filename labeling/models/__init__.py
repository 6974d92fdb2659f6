"""The nouns of the domain. Verbs live in queue, judging and manifest; each module here says who owns its tables."""

from labeling.models.admission import Consent, GuidelineReading, Lesson, ScreeningResult
from labeling.models.assignment import Assignment, Submission
from labeling.models.consensus import (
    Consensus,
    DailyFigures,
    Figures,
    Report,
    ReportCount,
    Settlement,
    SettlementDay,
    Tally,
)
from labeling.models.fit import Fit
from labeling.models.judgment import CorrectionRequest, Judgment, Turn, Write
from labeling.models.problem import BenchmarkProblem, Problem, Provenance, Source
from labeling.models.project import ConsentText, Guideline, Project
from labeling.models.quality import Gold, GoldAnswer, GoldRating, Manifest, ManifestRow
from labeling.models.queue import AddedSlot, Draw, Lane, QueueEntry, QueueReader
from labeling.models.rater import Rater
from labeling.models.trace import Option, Part, Step, Trace
from labeling.models.workday import WorkDay

__all__ = [
    "AddedSlot",
    "Assignment",
    "BenchmarkProblem",
    "Consensus",
    "Consent",
    "ConsentText",
    "CorrectionRequest",
    "DailyFigures",
    "Draw",
    "Figures",
    "Fit",
    "Gold",
    "GoldAnswer",
    "GoldRating",
    "Guideline",
    "GuidelineReading",
    "Judgment",
    "Lane",
    "Lesson",
    "Manifest",
    "ManifestRow",
    "Option",
    "Part",
    "Problem",
    "Project",
    "Provenance",
    "QueueEntry",
    "QueueReader",
    "Rater",
    "Report",
    "ReportCount",
    "ScreeningResult",
    "Settlement",
    "SettlementDay",
    "Source",
    "Step",
    "Submission",
    "Tally",
    "Trace",
    "Turn",
    "WorkDay",
    "Write",
]
