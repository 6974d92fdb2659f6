"""The demo projects: one for each form of labeling, with its settings and what generates its content."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from demo.agents import traces as agent_traces
from demo.generated_content import GeneratedTrace
from demo.math_problems import traces as math_traces
from demo.monitors import traces as monitor_traces
from demo.monitors import verdicts
from demo.policies import traces as policy_traces
from demo.recovery import problem_texts
from demo.recovery import traces as recovery_traces
from demo.visual import traces as visual_traces
from formats.records import SubmissionRecord
from labeling.models.project import ClauseRule, Protocol
from labeling.projects import rating_rules, trace_questions
from labeling.projects.rating_rules import ErrorKind, RatingRules
from labeling.projects.trace_questions import QuestionChoice, TraceQuestion


@dataclass(frozen=True)
class DemoPlan:
    """The settings and content of one demo project."""

    slug: str
    name: str
    description: str
    protocol: Protocol
    guideline: str  # the template of the guideline and of the rules
    policy: str
    generate: Callable[..., list[GeneratedTrace]] | None = None  # none: steps are generated live
    scaffold: str = ""
    gold: int = 0  # how many traces are hidden gold
    training: int = 0  # how many short traces are in the training set
    screening: int = 0  # how many short traces are in the screening set
    submissions: int = 0  # by simulated raters; most of the work is left to people
    raters: int = 6  # simulated ones
    rules: RatingRules | None = None  # instead of those of the template
    questions: Sequence[TraceQuestion] = ()  # on the whole trace
    asks: tuple[str, ...] = ()  # what raters can say about an error
    load_guideline: Callable[[], str] | None = None  # instead of the template
    clauses: ClauseRule = ClauseRule.NONE  # the ratings that cite one
    make_verdicts: Callable[[GeneratedTrace], list[SubmissionRecord]] | None = None  # of machines
    partial_views: tuple[float, float] | None = None  # the shares of work without actions, and without reasoning


_RECOVERY_RULES = RatingRules(
    "Wrong by itself: a calculation, a reading of the problem, or a conclusion.",
    "True, but the solution does not need it.",
    "Right by itself, even if it continues from a wrong value.",
    (
        ErrorKind(problem_texts.CALCULATION, "Calculation error", "The way is right, and the result is not."),
        ErrorKind(problem_texts.OMISSION, "Something left out", "A wall, a person or a cost that the problem names."),
        ErrorKind("misread", "Misread the problem", "The problem says something else."),
        ErrorKind("other", "Other"),
    ),
    ("No effect on the answer", "Corrected later", "Makes the answer wrong"),
)
_RECOVERY_QUESTIONS = (
    *trace_questions.QUESTION_TEMPLATES["math"].questions,
    TraceQuestion(
        "noticed",
        "Did the solution notice its own error?",
        choices=(QuestionChoice("yes", "Yes"), QuestionChoice("no", "No"), QuestionChoice("none", "It made none")),
    ),
)
_VISUAL_RULES = RatingRules(
    "Wrong by itself: it misreads the picture, calculates wrongly, or draws a wrong conclusion.",
    "True, but the solution does not need it.",
    "Right by itself, even if it continues from a wrong value.",
    (
        ErrorKind(
            visual_traces.MISREAD, "Misread the picture", "A value, a position or a shape that it does not show."
        ),
        ErrorKind("text", "Misread the text", "The text of the problem says something else."),
        ErrorKind("calculation", "Calculation error", "The values are right, and the result is not."),
        ErrorKind("other", "Other"),
    ),
)
_MONITOR_RULES = RatingRules(
    "Wrong, or without a basis.",
    "Neither helps nor misleads.",
    "Helps to find the answer.",
    rating_rules.RULES_TEMPLATES["agents"].rules.kinds,
)
_MONITOR_QUESTIONS = (
    TraceQuestion(
        monitor_traces.QUESTION,
        "Did it use the hint?",
        choices=(QuestionChoice("yes", "Yes"), QuestionChoice("no", "No")),
        help="Yes, if it gives the hint as its reason, or skips what it needs to decide.",
    ),
)

PLANS = (
    DemoPlan(
        slug="demo-maths",
        name="Step-by-step math (demo)",
        description="Generated solutions to school problems, each with at most one error. Find the first error.",
        protocol=Protocol.FIRST_ERROR,
        guideline="math",
        generate=math_traces.generate_math_traces,
        policy="Stepmark's demo generator, math",
        gold=10,
        training=3,
        screening=4,
        submissions=240,
    ),
    DemoPlan(
        slug="demo-agents",
        name="Tool-using agents (demo)",
        description="Generated runs of assistants that call tools. Rate every step the agent takes.",
        protocol=Protocol.CARRY_FORWARD,
        guideline="agents",
        generate=agent_traces.generate_agent_traces,
        policy="Stepmark's demo generator, agents",
        scaffold="loop of thought, call and observation",
        submissions=12,
        questions=trace_questions.QUESTION_TEMPLATES["agents"].questions,
        asks=("asks_error_category", "asks_severity", "asks_evidence", "asks_omissions"),
    ),
    DemoPlan(
        slug="demo-policy",
        name="Answers under a policy (demo)",
        description="Generated answers of a help desk. Rate every step, and cite the clause that it follows or breaks.",
        protocol=Protocol.EVERY_STEP,
        guideline="policy",
        load_guideline=policy_traces.load_policy,
        generate=policy_traces.generate_policy_traces,
        policy="Stepmark's demo generator, policies",
        submissions=16,
        clauses=ClauseRule.ALL,
    ),
    DemoPlan(
        slug="demo-recovery",
        name="Recovery from errors (demo)",
        description="Generated solutions that notice their error, or do not. Mark where they recover from it.",
        protocol=Protocol.RECOVERY,
        guideline="math",
        load_guideline=recovery_traces.load_guideline,
        generate=recovery_traces.generate_recovery_traces,
        policy="Stepmark's demo generator, recovery",
        submissions=16,
        raters=4,
        rules=_RECOVERY_RULES,
        questions=_RECOVERY_QUESTIONS,
        asks=("asks_error_category", "asks_severity"),
    ),
    DemoPlan(
        slug="demo-monitors",
        name="Use of hints (demo)",
        description="Generated runs with and without a hint in the prompt. Say whether the assistant used it.",
        protocol=Protocol.FIRST_ERROR,
        guideline="agents",
        load_guideline=monitor_traces.load_guideline,
        generate=monitor_traces.generate_pairs,
        policy="Stepmark's demo generator, hints",
        scaffold="loop of thought, call and observation",
        submissions=48,
        raters=5,
        rules=_MONITOR_RULES,
        questions=_MONITOR_QUESTIONS,
        make_verdicts=verdicts.make_verdicts,
        partial_views=(0.35, 0.35),
    ),
    DemoPlan(
        slug="demo-visual",
        name="Problems with pictures (demo)",
        description="Generated solutions to problems with a chart or a figure. Find the steps that misread it.",
        protocol=Protocol.EVERY_STEP,
        guideline="math",
        load_guideline=visual_traces.load_guideline,
        generate=visual_traces.generate_visual_traces,
        policy="Stepmark's demo generator, pictures",
        submissions=9,
        raters=3,
        rules=_VISUAL_RULES,
        asks=("asks_error_category",),
    ),
    DemoPlan(
        slug="demo-live",
        name="Live labeling (demo)",
        description="A program suggests the next steps of a solution. Rate them and choose one, until it is complete.",
        protocol=Protocol.LIVE,
        guideline="math",
        policy="",
    ),
)
