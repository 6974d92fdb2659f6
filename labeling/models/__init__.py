"""The models of the domain. Each module names the package that owns its tables; only that package writes them."""

from labeling.models.assignment import (
    Assignment,
    CorrectionRequest,
    Judgment,
    RatingEdit,
    StepReview,
    Submission,
    TraceAnswer,
)
from labeling.models.consensus import (
    AdjudicationTask,
    AgreementTally,
    Consensus,
    DailyProjectStats,
    FirstErrorReport,
    ProjectStats,
    RaterModelFit,
    ReportCount,
    Settlement,
    SettlementDay,
)
from labeling.models.gold import Gold, GoldAnswer, GoldRating
from labeling.models.licensed_label import LicensedLabel
from labeling.models.manifest import Manifest, ManifestRow
from labeling.models.pair import PairedTrace, PairReader, PairReviewer
from labeling.models.project import ConsentText, Guideline, Project, ProjectBudget
from labeling.models.queue import AddedSlot, Lane, LaneCursor, QueueEntry, RaterGroup, SteeringRule, TraceDraw
from labeling.models.rater import Consent, GuidelineAcknowledgment, Rater, ScreeningResult, TrainingFeedback, WorkDay
from labeling.models.set_aside import EarlierSettlement, SetAside
from labeling.models.suggestion import Exposure, RevealedLabel, SuggestionPlan
from labeling.models.trace import (
    BenchmarkProblem,
    Option,
    OptionPart,
    Problem,
    ProblemImage,
    Provenance,
    Source,
    Step,
    StoredImage,
    Trace,
    TraceOriginal,
    TraceTag,
)
from labeling.models.visibility import VisibilityDraw, VisibilityPlan
