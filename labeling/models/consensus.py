"""Consensus on traces, agreement between raters, and models of their errors. Owned by `labeling.quality`."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from labeling.models.assignment import Assignment
from labeling.models.project import Guideline, Project
from labeling.models.rater import Rater
from labeling.models.trace import Problem, StepKind, Trace


def counter_field() -> "models.PositiveSmallIntegerField[int, int]":
    return models.PositiveSmallIntegerField(default=0)


class AgreementTally(models.Model):
    """Counts of options by their ratings in the two headline submissions of a trace, for its steps of one kind: the
    trace's own options, and alternatives to them in a row of their own.

    An option that only one of the two rated counts in the first three columns, one that both rated in the others. All
    headline statistics are computed from these rows. Each submit updates them in its transaction, and a nightly job
    recounts them.
    """

    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="tallies", db_index=False)
    step_kind = models.CharField(max_length=12, choices=StepKind)
    is_alternative = models.BooleanField(default=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="tallies", db_index=False)
    # Problems and assignments that an undo removes must be found here without reading all rows.
    problem = models.ForeignKey(Problem, on_delete=models.CASCADE, related_name="+")
    generation = models.PositiveIntegerField(default=0)  # the batch that drew it; 0 for none
    first = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="+")
    second = models.ForeignKey(Assignment, null=True, on_delete=models.PROTECT, related_name="+")
    first_rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="+", db_index=False)
    second_rater = models.ForeignKey(Rater, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    guideline = models.ForeignKey(Guideline, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    has_two_guidelines = models.BooleanField(default=False)
    # The first error of each submission, counted in rateable steps; `n_steps` if it found none, or the place where it
    # was cut off.
    n_steps = models.PositiveIntegerField()
    first_end = models.PositiveIntegerField()
    second_end = models.PositiveIntegerField(null=True, blank=True)
    is_first_censored = models.BooleanField()
    is_second_censored = models.BooleanField(null=True, blank=True)
    # The kind of the step with the first error of each submission; blank for none.
    first_kind = models.CharField(max_length=12, choices=StepKind, blank=True)
    second_kind = models.CharField(max_length=12, choices=StepKind, blank=True)

    negative = counter_field()
    neutral = counter_field()
    positive = counter_field()
    negative_negative = counter_field()
    negative_neutral = counter_field()
    negative_positive = counter_field()
    neutral_neutral = counter_field()
    neutral_positive = counter_field()
    positive_positive = counter_field()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["trace", "step_kind", "is_alternative"], name="a_trace_is_tallied_once_for_a_kind_of_option"
            ),
            models.CheckConstraint(
                condition=Q(second=None, second_rater=None, second_end=None, is_second_censored=None)
                | Q(second__isnull=False, second_rater__isnull=False),
                name="a_second_reading_is_known_whole",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["project"], name="tally_of_project")]

    def __str__(self) -> str:
        return f"tally of {self.trace_id}, {self.step_kind}"


class FirstErrorReport(models.Model):
    """The first error of one submission, by its latest revision. Derived from the ratings, and stored so that comparing
    submissions does not need all ratings."""

    assignment = models.OneToOneField(Assignment, primary_key=True, on_delete=models.CASCADE, related_name="report")
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="reports")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="reports", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="reports", db_index=False)
    revision = models.PositiveSmallIntegerField()
    first_error = models.PositiveIntegerField(null=True, blank=True)  # a step's position
    n_passed = models.PositiveIntegerField()  # rateable steps rated before it, or at all
    is_censored = models.BooleanField()  # cut off without an error: the rest is unknown
    has_bad_problem = models.BooleanField(default=False)  # the rater reported the problem as bad

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["project", "-assignment"], name="report_newest"),
            models.Index(fields=["project"], condition=Q(has_bad_problem=True), name="report_of_bad_problem"),
        ]

    def __str__(self) -> str:
        return f"report {self.assignment_id}"


class SettlementState(models.TextChoices):
    READING = "reading", _("being labeled")
    ASKED = "asked", _("additional label requested")
    SETTLED = "settled", _("settled by annotators")
    CONTESTED = "contested", _("contested")
    DECIDED = "decided", _("decided by a person")
    LIVE = "live", _("no common steps")
    ASSISTED = "assisted", _("settled with a machine")  # stored apart: see `LicensedLabel`


class Settlement(models.Model):
    """The state of a trace on its way to a consensus, and the reason. One row per trace, from the first submit on."""

    trace = models.OneToOneField(Trace, primary_key=True, on_delete=models.CASCADE, related_name="settlement")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="settlements", db_index=False)
    state = models.CharField(max_length=10, choices=SettlementState, default=SettlementState.READING)
    reason = models.CharField(max_length=40, blank=True)  # a key of `settlements.RESOLUTION_REASONS`
    n_readings = models.PositiveSmallIntegerField(default=0)
    n_votes = models.PositiveSmallIntegerField(default=0)  # submissions that name a first error or "no error"
    # The earliest step on which the votes differ. Adjudication starts there.
    differs_at = models.PositiveIntegerField(null=True, blank=True)
    consensus_revision = models.PositiveIntegerField(default=0)  # 0 without a consensus
    changed_at = models.DateTimeField()
    is_due = models.BooleanField(default=True)  # has a submission that is not evaluated yet
    # Failed evaluations since the last success, and the time of the next attempt.
    n_failures = models.PositiveSmallIntegerField(default=0, db_default=0)
    retry_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["project", "n_failures", "trace"], condition=Q(is_due=True), name="settlement_due"),
            models.Index(fields=["project", "state", "changed_at", "trace"], name="settlement_by_state"),
        ]

    def __str__(self) -> str:
        return f"{self.trace_id} is {self.state}"


class AdjudicationTask(models.Model):
    """A trace that a lead assigned to one person to decide, whenever it is contested. Owned by
    `labeling.quality.adjudicators`."""

    trace = models.OneToOneField(Trace, primary_key=True, on_delete=models.CASCADE, related_name="adjudication_task")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="adjudication_tasks")
    assigned_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.trace_id} for {self.reviewer_id}"


class SettlementDay(models.Model):
    """The number of traces that reached a state on a day, and of their consensus steps. Updated in the transaction that
    changes a state, so that totals of a project do not need its traces."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="settlement_days", db_index=False)
    state = models.CharField(max_length=10, choices=SettlementState)
    day = models.DateField()
    # These counts are incremented and decremented, so an error can make them negative until the next recount.
    traces = models.BigIntegerField()
    steps = models.BigIntegerField()  # up to and including the first error

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "state", "day"], name="a_state_is_counted_once_a_day"),
        ]

    def __str__(self) -> str:
        return f"{self.state} on {self.day}"


class ReportCount(models.Model):
    """Totals of one rater's reports, and of the comparison of these reports with the consensus. Updated in the same way
    as settlement days."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="report_counts", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="+", db_index=False)
    readings = models.BigIntegerField()
    steps = models.BigIntegerField()
    # The reports that were compared with a person's decision or with the votes of the other raters, and the results.
    # Only reports on resolved traces that were not cut off are compared.
    compared = models.BigIntegerField()
    same = models.BigIntegerField()
    missed = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "rater"], name="reports_of_a_rater_are_counted_once"),
        ]

    def __str__(self) -> str:
        return f"reports of {self.rater_id}"


class FitBasis(models.TextChoices):
    """The kind of raters whose submissions a model was fitted to."""

    BLIND = "blind", _("people who saw no score")
    ASSISTED = "assisted", _("also machines, and people who saw scores")


MIN_CHECKED_GOLD = 30  # groups of answers to gold
MIN_COMPARED_GOLD = 30  # for the comparison: gold traces that votes settle
_MAX_OVERCONFIDENCE = 1.64  # standard deviations, which a calibrated model exceeds in 5 % of cases


class RaterModelFit(models.Model):
    """The error rates of the raters of a project by first-error Dawid–Skene, fitted to all submissions up to then and
    validated on hidden gold.

    Never changed: a consensus refers to the fit of its probability. Blind and assisted submissions have separate fits.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="fits", db_index=False)
    basis = models.CharField(max_length=8, choices=FitBasis, default=FitBasis.BLIND)
    number = models.PositiveIntegerField()
    made_at = models.DateTimeField()
    n_traces = models.PositiveIntegerField()
    n_readings = models.PositiveIntegerField()
    # The rates [false alarm, detection, late detection] of each rater by id, and of all others under "others". A
    # negative id is a rater who saw scores: one person counts as two raters, a blind one and an assisted one.
    rates = models.JSONField()
    hazards = models.JSONField()  # by domain and position: {"domains": {name: […]}, "all": […]}

    n_gold = models.PositiveIntegerField()  # hidden gold traces that enough raters labeled
    # Groups of answers to hidden gold, each of as many as a work trace gets: their number; on how many the most likely
    # place was right; and how many right ones the probabilities promised, with the standard deviation of that number.
    n_checked = models.PositiveIntegerField(default=0)
    checked_right = models.PositiveIntegerField(default=0)
    checked_expected = models.FloatField(default=0.0)
    checked_deviation = models.FloatField(default=0.0)
    # Of the gold with enough labels, the traces that votes would settle; and how often the votes and the model were
    # right on them.
    n_compared = models.PositiveIntegerField(default=0)
    votes_right = models.PositiveIntegerField(default=0)
    model_right = models.PositiveIntegerField(default=0)
    temperature = models.FloatField(default=1.0)
    temperature_reason = models.CharField(max_length=100, blank=True)  # why the temperature is 1
    # The mean gap on gold between the probability and the share of right places, before and after the temperature is
    # applied.
    gap_before = models.FloatField(null=True, blank=True)
    gap_after = models.FloatField(null=True, blank=True)
    # The lowest accepted probability, the number of gold traces that reach it, and a lower bound of the share of right
    # ones among them.
    threshold = models.FloatField(null=True, blank=True)
    threshold_reason = models.CharField(max_length=100, blank=True)  # why the threshold is null
    n_accepted = models.PositiveIntegerField(default=0)
    lower_bound = models.FloatField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "basis", "number"], name="a_fit_has_one_number_in_its_project"),
        ]

    def __str__(self) -> str:
        return f"fit {self.number} of {self.project_id}"

    @property
    def is_calibrated(self) -> bool:
        """Whether the model is right on hidden gold as often as its probabilities promise."""
        promised = self.checked_expected - _MAX_OVERCONFIDENCE * self.checked_deviation
        return self.n_checked >= MIN_CHECKED_GOLD and self.checked_right >= promised

    @property
    def settles_traces(self) -> bool:
        """Whether the model settles traces: it is calibrated, and gold does not show that votes settle better."""
        are_votes_better = self.n_compared >= MIN_COMPARED_GOLD and self.votes_right > self.model_right
        return self.is_calibrated and not are_votes_better


class ConsensusSource(models.TextChoices):
    RATERS = "raters", _("the raters")
    PERSON = "person", _("a person")


class Consensus(models.Model):
    """One revision of the consensus on a trace: its first error. Never changed.

    `labels` are derived from the first error: [step, option, rating, confidence, raters at risk] each. Steps after the
    first error have no labels.
    """

    trace = models.ForeignKey(Trace, on_delete=models.PROTECT, related_name="consensus", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="consensus", db_index=False)
    revision = models.PositiveIntegerField()
    first_error = models.PositiveIntegerField(null=True, blank=True)  # a step's position; null for no error
    source = models.CharField(max_length=8, choices=ConsensusSource)
    confidence = models.FloatField(null=True, blank=True)  # share of votes; null for a decision by a person
    n_votes = models.PositiveSmallIntegerField(default=0)
    # The posterior of the rater model from submissions of people who saw no score: P(first error) of each step, 0 for
    # context, then of no error; and the probability of `first_error`. Null without a model.
    posterior = models.JSONField(null=True, blank=True)
    probability = models.FloatField(null=True, blank=True)
    fit = models.ForeignKey(
        RaterModelFit, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    # The same with submissions of machines and of people who saw scores, by a model of its own. It does not affect the
    # fields above. The votes are first errors, null for none; empty if only people who saw no score labeled the trace.
    assisted_votes = models.JSONField(default=list)
    assisted_posterior = models.JSONField(null=True, blank=True)
    assisted_fit = models.ForeignKey(
        RaterModelFit, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    labels = models.JSONField(default=list)
    note = models.TextField(blank=True)
    made_at = models.DateTimeField()
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["trace", "revision"], name="a_consensus_revision_is_made_once"),
            models.CheckConstraint(
                condition=Q(source="person", confidence=None) | Q(source="raters", confidence__isnull=False),
                name="only_raters_have_a_share_of_votes",
            ),
            models.CheckConstraint(
                condition=Q(fit=None, posterior=None, probability=None)
                | Q(fit__isnull=False, posterior__isnull=False, probability__gte=0, probability__lte=1),
                name="a_probability_names_its_fit",
            ),
            models.CheckConstraint(
                condition=Q(assisted_fit=None, assisted_posterior=None)
                | Q(assisted_fit__isnull=False, assisted_posterior__isnull=False),
                name="an_assisted_posterior_names_its_fit",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["project", "-made_at", "-id"], name="consensus_newest")]

    def __str__(self) -> str:
        return f"consensus {self.trace_id}.{self.revision}"


class ProjectStats(models.Model):
    """The statistics of a project on the dashboard, computed in the background after a submit."""

    project = models.OneToOneField(Project, primary_key=True, on_delete=models.CASCADE, related_name="figures")
    content = models.JSONField(default=dict)
    computed_at = models.DateTimeField(null=True, blank=True)
    took_ms = models.PositiveIntegerField(default=0)
    is_stale = models.BooleanField(default=True)
    is_awaited = models.BooleanField(default=False)  # someone looks at them
    began_at = models.DateTimeField(null=True, blank=True)  # of the running computation; None if there is none
    recounted_at = models.DateTimeField(null=True, blank=True)
    # Corrections by the last recount: the number of traces with wrong tallies, and of other wrong counts.
    drifted_traces = models.PositiveIntegerField(default=0)
    drifted_counts = models.PositiveIntegerField(default=0)
    # Traces up to `last_trace` are counted, including withdrawn ones: see `labeling.quality.project_stats`.
    n_traces = models.PositiveIntegerField(default=0)
    last_trace = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"statistics of {self.project_id}"


class DailyProjectStats(models.Model):
    """The headline statistics at the end of a day, for charts over time."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="daily_figures", db_index=False)
    day = models.DateField()
    content = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "day"], name="a_day_has_its_figures_once")]

    def __str__(self) -> str:
        return f"{self.project_id} on {self.day}"
