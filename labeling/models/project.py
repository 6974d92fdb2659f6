"""Projects, their guidelines and consent texts. Owned by `labeling.projects.lifecycle`."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _


class Protocol(models.TextChoices):
    FIRST_ERROR = "first_error", _("up to the first error")
    EVERY_STEP = "every_step", _("every step")
    CARRY_FORWARD = "carry_forward", _("every step, errors carried forward")
    RECOVERY = "recovery", _("every step, with recovery from errors")
    LIVE = "live", _("live")


# The protocols that ask for a rating of every step. They differ in what a rating means after the first error.
EVERY_STEP_PROTOCOLS = (Protocol.EVERY_STEP, Protocol.CARRY_FORWARD, Protocol.RECOVERY)


class ClauseRule(models.TextChoices):
    """Which ratings must cite a clause of the guideline. Without a rule, raters cite none."""

    NONE = "", _("no rating")
    OPTIONAL = "optional", _("any rating, optional")
    NEGATIVES = "negatives", _("any rating, required on negative ones")
    ALL = "all", _("every rating, required")


class ProjectState(models.TextChoices):
    OPEN = "open", _("open")
    PAUSED = "paused", _("paused")
    CLOSED = "closed", _("closed")
    ARCHIVED = "archived", _("archived")


def share_field(default: float) -> "models.FloatField[float, float]":
    return models.FloatField(default=default)


class Project(models.Model):
    """One labeling project: guideline, protocol, overlap, gold, and selection policy."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    protocol = models.CharField(max_length=16, choices=Protocol, default=Protocol.FIRST_ERROR)
    state = models.CharField(max_length=16, choices=ProjectState, default=ProjectState.OPEN)
    guideline = models.ForeignKey(
        "labeling.Guideline", null=True, blank=True, on_delete=models.PROTECT, related_name="current_in"
    )
    # Raters must agree to it first. None: no consent is needed.
    consent_text = models.ForeignKey(
        "labeling.ConsentText", null=True, blank=True, on_delete=models.PROTECT, related_name="current_in"
    )
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    overlap = models.PositiveSmallIntegerField(default=2)
    overlap_limit = models.PositiveSmallIntegerField(default=5)
    lease_seconds = models.PositiveIntegerField(default=1800)
    skip_limit_per_day = models.PositiveSmallIntegerField(default=20)
    correction_days = models.PositiveSmallIntegerField(default=7)
    # Limits for each rater. `open_limit` counts traces assigned at the same time, prefetched ones included;
    # `traces_per_day` counts traces of work and hidden gold since midnight UTC, without returned ones. Null: no limit.
    open_limit = models.PositiveSmallIntegerField(default=3)
    traces_per_day = models.PositiveIntegerField(null=True, blank=True)

    gold_share = share_field(0.10)
    proven_gold_share = share_field(0.05)  # of trusted raters; never above `gold_share`
    reserve_share = share_field(0.05)
    uniform_share = share_field(0.20)
    reserve_problem_share = share_field(0.10)
    screening_pass_share = share_field(0.75)
    # The share of hidden gold that a rater must get right; null until the project has enough data.
    gold_bar = models.FloatField(null=True, blank=True)
    # Pause raters whose work is worthless by overwhelming evidence, before there is a gold threshold.
    uses_protection = models.BooleanField(default=True)
    # Settle traces by probability, so that 90 % are right, as soon as hidden gold determines the threshold for it.
    uses_probability = models.BooleanField(default=False)
    screening_attempts = models.PositiveSmallIntegerField(default=1)

    # The parts of a trace that raters see, and the fields that they must fill in. The assignment records what they
    # could see when it was opened.
    shows_reference_answer = models.BooleanField(default=False)
    shows_final_verdict = models.BooleanField(default=False)
    reveals_one_step_at_a_time = models.BooleanField(default=False)
    asks_error_category = models.BooleanField(default=False)
    needs_error_category = models.BooleanField(default=False)  # has an effect if the project asks for it
    takes_several_kinds = models.BooleanField(default=False)  # of error, for one step
    asks_severity = models.BooleanField(default=False)
    asks_reason = models.BooleanField(default=False)
    asks_corrected_step = models.BooleanField(default=False)
    asks_evidence = models.BooleanField(default=False)  # quotes of a negative step
    asks_omissions = models.BooleanField(default=False)  # what is missing after a step
    asks_clauses = models.CharField(max_length=12, choices=ClauseRule, blank=True, default=ClauseRule.NONE)

    # The short rules and kinds of errors on the work page; empty until a lead or the first import chooses them.
    rating_rules = models.JSONField(default=dict, blank=True)

    # Questions on the whole trace, which raters answer after the steps: `labeling.projects.trace_questions`.
    trace_questions = models.JSONField(default=list, blank=True)

    # Whether raters see their weekly results on hidden gold, without the traces.
    shows_weekly_gold = models.BooleanField(default=False)
    # Whether raters see the answer to hidden gold after it was retired.
    shows_retired_gold = models.BooleanField(default=False)

    # Raters from a crowd platform: the URL parameters of the invitation with their ids, and the completion URLs and
    # codes. Empty ones are not shown.
    takes_worker_ids = models.BooleanField(default=False)
    worker_parameter = models.CharField(max_length=40, default="PROLIFIC_PID")
    study_parameter = models.CharField(max_length=40, default="STUDY_ID")
    session_parameter = models.CharField(max_length=40, default="SESSION_ID")
    # If it is named, the link must have this parameter with a signature of the IDs (`people.crowd_workers`).
    signature_parameter = models.CharField(max_length=40, blank=True)
    completion_traces = models.PositiveIntegerField(default=1)  # the traces to submit; given-up ones do not count
    completion_url = models.URLField(max_length=500, blank=True)
    completion_code = models.CharField(max_length=100, blank=True)
    screened_out_url = models.URLField(max_length=500, blank=True)
    screened_out_code = models.CharField(max_length=100, blank=True)
    no_consent_url = models.URLField(max_length=500, blank=True)
    no_consent_code = models.CharField(max_length=100, blank=True)
    failed_checks_url = models.URLField(max_length=500, blank=True)
    failed_checks_code = models.CharField(max_length=100, blank=True)

    # The pay for an hour of active time. Null: pay and cost are not shown.
    pay_per_hour = models.DecimalField(max_digits=8, decimal_places=2, null=True, blank=True)
    currency = models.CharField(max_length=3, default="EUR")
    # Earlier rates in order, each as [first day (UTC) with the next rate, rate]. Work is paid at the rate of its day.
    past_pay_rates = models.JSONField(default=list, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(completion_traces__gte=1), name="a_study_asks_for_work"),
            models.CheckConstraint(condition=Q(open_limit__gte=1), name="a_rater_may_have_a_trace"),
            models.CheckConstraint(
                condition=Q(traces_per_day=None) | Q(traces_per_day__gte=1), name="a_rater_may_have_a_trace_a_day"
            ),
            models.CheckConstraint(
                condition=Q(overlap__gte=1, overlap_limit__gte=F("overlap")), name="overlap_is_within_its_limit"
            ),
            models.CheckConstraint(
                condition=Q(gold_bar=None) | Q(gold_bar__gte=0.2, gold_bar__lte=0.99),
                name="the_gold_bar_leaves_room_on_both_sides",
            ),
            models.CheckConstraint(
                condition=Q(pay_per_hour=None) | Q(pay_per_hour__gte=0), name="pay_is_never_negative"
            ),
            models.CheckConstraint(condition=Q(lease_seconds__gte=60), name="a_lease_lasts_a_minute_at_least"),
            *(
                models.CheckConstraint(condition=Q(**{f"{name}__gte": 0, f"{name}__lte": 1}), name=f"{name}_is_a_share")
                for name in (
                    "gold_share",
                    "proven_gold_share",
                    "reserve_share",
                    "uniform_share",
                    "reserve_problem_share",
                    "screening_pass_share",
                )
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def offers_completion(self) -> bool:
        """Whether raters from a crowd platform get a link or a code when they have finished."""
        return bool(self.completion_url or self.completion_code)


class ProjectBudget(models.Model):
    """The cap on the pay of a project, with the amount spent. Without a row there is no cap. The table is narrow,
    because every submission of such a project updates its row. Owned by `labeling.projects.budgets`."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, primary_key=True, related_name="budget")
    amount = models.DecimalField(max_digits=12, decimal_places=2)
    spent = models.DecimalField(max_digits=18, decimal_places=6, default=0)  # pay of all submissions
    trace_cost = models.DecimalField(max_digits=12, decimal_places=6, default=0)  # usual pay, reserved for open traces
    warned_at = models.DateTimeField(null=True, blank=True)  # at 80 %
    reached_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="a_budget_is_an_amount"),
        ]

    def __str__(self) -> str:
        return f"budget of {self.project_id}"


class Guideline(models.Model):
    """One published version of the guideline. Never changed: an update is the next version."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="guidelines")
    version = models.PositiveIntegerField()
    body = models.TextField()
    changes = models.TextField(blank=True)  # since the previous version
    taxonomy = models.JSONField(default=dict, blank=True)  # of this version: `labeling.projects.taxonomies`
    published_at = models.DateTimeField()
    published_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "version"], name="a_guideline_version_is_published_once"),
        ]

    def __str__(self) -> str:
        return f"{self.project_id} guideline {self.version}"


class ConsentText(models.Model):
    """One published version of the consent text. Never changed: an update is the next version."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="consent_texts")
    version = models.PositiveIntegerField()
    body = models.TextField()
    published_at = models.DateTimeField()
    published_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "version"], name="a_consent_text_version_is_published_once"),
        ]

    def __str__(self) -> str:
        return f"{self.project_id} consent {self.version}"
