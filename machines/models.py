"""Judges, their runs, and their votes. Monte Carlo raters and PRMs that label are judges of their own kinds.

`machines.judges` changes Judge and MachineBudget. `machines.runs` creates and ends runs; `machines.judge_job` saves
votes, judged traces and the counts of runs.
"""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from labeling.models import Guideline, Project, Rater, Submission, Trace
from machines.rollouts import RolloutOptions
from prm.models import PRM


class JudgeContractKind(models.TextChoices):
    CRITIC = "critic", _("first error")
    STEP_LABELS = "step_labels", _("a label and a reason per step")
    AGENT_RUBRIC = "agent_rubric", _("a label per message of an agent")
    POLICY = "policy", _("the policy clause that each step breaks")
    YES_NO = "yes_no", _("yes or no per step, with its probability")
    ROLLOUTS = "rollouts", _("the answers of rollouts")
    PRM = "prm", _("the scores of a PRM")


class MachineKind(models.TextChoices):
    """What a machine rater is. In exports, labels of machines from files can be of these kinds too."""

    JUDGE = "judge", _("judge")
    MONTE_CARLO = "monte_carlo", _("Monte Carlo")
    PRM = "prm", _("PRM")


_KIND_OF_CONTRACT = {
    **dict.fromkeys(JudgeContractKind, MachineKind.JUDGE),
    JudgeContractKind.ROLLOUTS: MachineKind.MONTE_CARLO,
    JudgeContractKind.PRM: MachineKind.PRM,
}
# The contracts of language models that are asked about a trace.
JUDGE_CONTRACTS = [contract for contract, kind in _KIND_OF_CONTRACT.items() if kind == MachineKind.JUDGE]


class EndpointKind(models.TextChoices):
    VLLM = "vllm", "vLLM"
    SGLANG = "sglang", "SGLang"
    LLAMA_CPP = "llama_cpp", "llama.cpp"
    OPENAI = "openai", "OpenAI"
    HOSTED = "hosted", _("another hosted model")


class Judge(models.Model):
    """One version of a machine rater: a model behind an endpoint, with its prompt and its sampler, or a PRM with its
    threshold. It never changes."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="judges", db_index=False)
    rater = models.OneToOneField(Rater, on_delete=models.PROTECT, related_name="judge")
    name = models.CharField(max_length=60)
    version = models.PositiveIntegerField()

    address = models.URLField(max_length=500)
    family = models.CharField(max_length=12, choices=EndpointKind)
    model = models.CharField(max_length=200)
    model_digest = models.CharField(max_length=100, blank=True)
    key = models.BinaryField(null=True, blank=True)  # encrypted

    contract = models.CharField(max_length=12, choices=JudgeContractKind)
    prompt = models.TextField()
    prompt_version = models.PositiveIntegerField()  # 1 is the built-in one
    prompt_digest = models.CharField(max_length=64)

    n_votes = models.PositiveSmallIntegerField(default=1)  # of rollouts: for each prefix
    temperature = models.FloatField(default=0.0)
    top_p = models.FloatField(default=1.0)
    max_tokens = models.PositiveIntegerField(default=8192)
    timeout = models.FloatField(default=120.0)  # seconds, for one attempt
    n_concurrent = models.PositiveSmallIntegerField(default=8)
    # Money per million tokens, in the currency of the project.
    prompt_price = models.DecimalField(max_digits=10, decimal_places=4, default=0)
    completion_price = models.DecimalField(max_digits=10, decimal_places=4, default=0)

    rollouts = models.JSONField(default=dict)  # `machines.rollouts.RolloutOptions`
    prm = models.ForeignKey(PRM, null=True, on_delete=models.PROTECT, related_name="raters", db_index=False)
    threshold = models.FloatField(null=True, blank=True)  # of a PRM: P(wrong) from which a step is wrong

    added_at = models.DateTimeField()
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    tried_at = models.DateTimeField(null=True, blank=True)  # when a trial answered its traces

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name", "version"], name="a_judge_version_is_added_once"),
            models.CheckConstraint(condition=Q(n_votes__gte=1), name="a_judge_votes_at_least_once"),
            models.CheckConstraint(
                condition=Q(n_votes=1) | Q(temperature__gt=0), name="several_votes_have_a_temperature"
            ),
            models.CheckConstraint(condition=Q(n_concurrent__gte=1), name="a_judge_is_asked_by_some_thread"),
            models.CheckConstraint(
                condition=Q(contract="prm", prm__isnull=False, threshold__isnull=False)
                | ~Q(contract="prm") & Q(prm=None, threshold=None),
                name="only_a_prm_that_labels_has_a_threshold",
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def kind(self) -> MachineKind:
        return _KIND_OF_CONTRACT[JudgeContractKind(self.contract)]

    @property
    def rollout_options(self) -> RolloutOptions:
        return RolloutOptions(**self.rollouts)

    @property
    def is_prompt_edited(self) -> bool:
        return self.prompt_version > 1

    @property
    def may_run(self) -> bool:
        """An edited prompt is tried first."""
        return not self.is_prompt_edited or self.tried_at is not None


class JudgeRunState(models.TextChoices):
    OPEN = "open", _("running")
    PAUSED = "paused", _("paused")
    DONE = "done", _("done")
    CANCELLED = "cancelled", _("canceled")


class RunPause(models.TextChoices):
    ENDPOINT_DOWN = "endpoint_down", _("the endpoint is not responding")
    RATE_LIMIT = "rate_limit", _("the endpoint asked Stepmark to wait")
    CONFIGURATION = "configuration", _("the endpoint rejects this judge’s requests")
    RUN_CAP = "run_cap", _("the run’s cost cap has been reached")
    PROJECT_CAP = "project_cap", _("the project’s cost cap has been reached")


class RunScope(models.TextChoices):
    ALL = "all", _("all traces")
    LABELED = "labeled", _("traces labeled by people")
    GOLD = "gold", _("gold")
    CANARIES = "canaries", _("gaming canaries, without labels")


class JudgeRunQuerySet(models.QuerySet["JudgeRun"]):
    def unfinished(self) -> "JudgeRunQuerySet":
        return self.filter(state__in=[JudgeRunState.OPEN, JudgeRunState.PAUSED])


class JudgeRun(models.Model):
    """One pass of a judge over a set of traces. Its counts and costs include only the requests of this run."""

    judge = models.ForeignKey(Judge, on_delete=models.CASCADE, related_name="runs")
    scope = models.CharField(max_length=8, choices=RunScope, default=RunScope.ALL)
    is_trial = models.BooleanField(default=False)  # a few traces, without submissions
    last_trace = models.BigIntegerField()  # later traces belong to the next run
    most_traces = models.PositiveIntegerField(null=True, blank=True)
    most_tokens = models.BigIntegerField(null=True, blank=True)
    most_money = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)

    state = models.CharField(max_length=10, choices=JudgeRunState, default=JudgeRunState.OPEN)
    pause = models.CharField(max_length=14, choices=RunPause, blank=True)
    pause_line = models.CharField(max_length=500, blank=True)
    resumes_at = models.DateTimeField(null=True, blank=True)  # by itself; null: a person resumes it
    n_pauses = models.PositiveSmallIntegerField(default=0)  # since the last answer
    job = models.BigIntegerField(null=True, blank=True)  # the latest; jobs may be deleted

    n_traces = models.PositiveIntegerField(default=0)
    n_judged = models.PositiveIntegerField(default=0)  # traces with all votes
    n_labeled = models.PositiveIntegerField(default=0)  # of them, those with a readable vote
    n_votes = models.PositiveIntegerField(default=0)
    n_unread = models.PositiveIntegerField(default=0)  # answered, but not readable
    n_failed = models.PositiveIntegerField(default=0)  # refused, or not answered
    n_repeated = models.PositiveIntegerField(default=0)  # attempts after the first one
    prompt_tokens = models.BigIntegerField(default=0)
    completion_tokens = models.BigIntegerField(default=0)
    money = models.DecimalField(max_digits=16, decimal_places=8, default=0)
    # Of the requests that are under way: what they can cost at most.
    reserved_tokens = models.BigIntegerField(default=0)
    reserved_money = models.DecimalField(max_digits=16, decimal_places=8, default=0)

    asked_at = models.DateTimeField()
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = JudgeRunQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["judge"], condition=Q(state__in=["open", "paused"]), name="a_judge_has_one_unfinished_run"
            ),
            models.CheckConstraint(
                condition=Q(state="paused") & ~Q(pause="") | ~Q(state="paused") & Q(pause="", resumes_at=None),
                name="a_paused_run_says_why",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["open", "paused"], ended_at=None)
                | Q(state__in=["done", "cancelled"], ended_at__isnull=False),
                name="an_ended_run_has_an_end_time",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["resumes_at"], condition=Q(resumes_at__isnull=False), name="judge_run_to_resume"),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} of {self.judge_id}"

    @property
    def subject(self) -> str:
        return f"judge_run:{self.pk}"

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def is_unfinished(self) -> bool:
        return self.state in (JudgeRunState.OPEN, JudgeRunState.PAUSED)


class VoteState(models.TextChoices):
    """As `machines.replies.ReplyState`."""

    PARSED = "parsed", _("readable")
    EMPTY = "empty", _("empty")
    TRUNCATED = "truncated", _("cut off at the token limit")
    UNPARSED = "unparsed", _("no readable answer")
    OUT_OF_RANGE = "out_of_range", _("names a step that cannot be labeled")
    REFUSED = "refused", _("refused by the endpoint")
    UNCHECKED = "unchecked", _("not checked yet, because the answer checker did not respond")
    FAILED = "failed", _("not answered")


class AnsweredVote(models.Model):
    """One answer of a judge, as received. Unless it failed, it is not asked for again."""

    number = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=12, choices=VoteState)
    first_error = models.PositiveIntegerField(null=True, blank=True)
    answer = models.BinaryField(null=True, blank=True)  # compressed, as received
    finish_reason = models.CharField(max_length=40, blank=True)
    served_model = models.CharField(max_length=200, blank=True)  # as the endpoint names it
    status = models.PositiveSmallIntegerField(null=True, blank=True)  # of a refused request
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    is_usage_estimated = models.BooleanField(default=False)
    money = models.DecimalField(max_digits=14, decimal_places=8, default=0)
    milliseconds = models.PositiveIntegerField(default=0)
    n_attempts = models.PositiveSmallIntegerField(default=1)
    answered_at = models.DateTimeField()

    class Meta:
        abstract = True


class JudgeVote(AnsweredVote):
    """One vote on a trace, or one rollout."""

    judge = models.ForeignKey(Judge, on_delete=models.CASCADE, related_name="votes", db_index=False)
    run = models.ForeignKey(JudgeRun, on_delete=models.CASCADE, related_name="votes")
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="+")
    prefix = models.PositiveIntegerField(default=0)  # of a rollout: the number of steps that it continues
    is_right = models.BooleanField(null=True, blank=True)  # of a rollout

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["judge", "trace", "prefix", "number"], name="a_vote_is_answered_once"),
            models.CheckConstraint(
                condition=Q(state="parsed") | Q(first_error=None, is_right=None), name="only_read_votes_have_a_result"
            ),
        ]

    def __str__(self) -> str:
        return f"vote {self.number} of {self.judge_id} on {self.trace_id}"


class JudgedTrace(models.Model):
    """The outcome of a judge on one trace: P(E) over its readable votes, and the submission that has its labels."""

    judge = models.ForeignKey(Judge, on_delete=models.CASCADE, related_name="judged_traces", db_index=False)
    run = models.ForeignKey(JudgeRun, on_delete=models.CASCADE, related_name="judged_traces")
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="+")
    # Null if no vote is readable.
    submission = models.OneToOneField(Submission, null=True, on_delete=models.CASCADE, related_name="judged_trace")
    guideline = models.ForeignKey(Guideline, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    is_blind = models.BooleanField(default=True)  # the judge saw no label and no reference answer
    n_votes = models.PositiveSmallIntegerField()
    n_parsed = models.PositiveSmallIntegerField()
    n_failed = models.PositiveSmallIntegerField(default=0)  # not answered; the next run asks again
    first_error = models.PositiveIntegerField(null=True, blank=True)
    first_errors = models.JSONField(default=list)  # [[position or null, share], …]
    values = models.JSONField(default=list)  # of rollouts: [[steps of the prefix, right answers, readable answers], …]
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    money = models.DecimalField(max_digits=14, decimal_places=8, default=0)
    judged_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["judge", "trace"], name="a_judge_judges_a_trace_once"),
            models.CheckConstraint(
                condition=Q(submission=None) | Q(n_parsed__gte=1), name="a_submission_needs_a_readable_vote"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.judge_id} on {self.trace_id}"


class MachineBudget(models.Model):
    """The limit on the total cost of the machines of a project."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="machine_budget")
    most_tokens = models.BigIntegerField(null=True, blank=True)
    most_money = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"budget of {self.project_id}"


from machines.canary_models import CanaryVerdict as CanaryVerdict  # noqa: E402  Django looks for models here
from machines.canary_models import CanaryVote as CanaryVote  # noqa: E402  as above
from machines.passport_models import ConsensusRoute as ConsensusRoute  # noqa: E402  as above
from machines.passport_models import MachineLicense as MachineLicense  # noqa: E402  as above
from machines.passport_models import MachinePassport as MachinePassport  # noqa: E402  as above
