"""Live labeling: the policy that generates steps, sessions of raters with it, and every request to it.

`live.policies` changes LivePolicy; `live.sessions` changes LiveSession, LiveTurn and ratings, and logs the edits of
ratings; `live.option_requests` changes OptionRequest and creates LiveOption rows.
"""

import math
from decimal import Decimal
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from labeling.models import Guideline, Problem, Project, Rater, Submission
from machines.models import EndpointKind
from prm.models import PRM


class LiveMode(models.TextChoices):
    COMPLETIONS = "completions", _("continues the solution")
    INSTRUCTED = "instructed", _("is asked for the next step only")
    EXAMPLE = "example", _("is replaced by an example program")


class LivePolicy(models.Model):
    """One version of what generates the steps of a project: a model behind an endpoint, its prompt, its sampler and
    limits. It never changes: another setting is the next version."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="live_policies", db_index=False)
    version = models.PositiveIntegerField()

    address = models.URLField(max_length=500, blank=True)  # the example program has none
    family = models.CharField(max_length=12, choices=EndpointKind)
    mode = models.CharField(max_length=12, choices=LiveMode)
    model = models.CharField(max_length=200)
    model_digest = models.CharField(max_length=100, blank=True)  # of the weights
    tokenizer_digest = models.CharField(max_length=100, blank=True)
    key = models.BinaryField(null=True, blank=True)  # encrypted
    template = models.TextField()
    template_digest = models.CharField(max_length=64)

    n_options = models.PositiveSmallIntegerField()
    n_prefetched = models.PositiveSmallIntegerField()  # options whose next steps are generated before one is chosen
    temperature = models.FloatField()
    top_p = models.FloatField()
    top_k = models.IntegerField(null=True, blank=True)
    min_p = models.FloatField(null=True, blank=True)
    max_tokens = models.PositiveIntegerField()  # per step
    step_end = models.CharField(max_length=100)  # the text between two steps, at which a step ends
    timeout = models.FloatField()  # seconds, for one attempt

    # Limits. Null: no limit.
    sessions_per_problem = models.PositiveSmallIntegerField()
    most_steps = models.PositiveSmallIntegerField()  # of a solution
    most_session_tokens = models.BigIntegerField(null=True, blank=True)
    most_tokens = models.BigIntegerField(null=True, blank=True)  # of all sessions of the project
    most_money = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    # Money per million tokens, in the currency of the project.
    prompt_price = models.DecimalField(max_digits=10, decimal_places=4, default=0)
    completion_price = models.DecimalField(max_digits=10, decimal_places=4, default=0)

    added_at = models.DateTimeField()
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    tried_at = models.DateTimeField(null=True, blank=True)  # when a trial first returned usable options
    opened_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "version"], name="a_live_policy_version_is_added_once"),
            models.UniqueConstraint(
                fields=["project"],
                condition=Q(opened_at__isnull=False, closed_at=None),
                name="one_live_policy_is_open_in_a_project",
            ),
            models.CheckConstraint(
                condition=Q(opened_at=None) | Q(tried_at__isnull=False), name="a_live_policy_is_tried_before_it_opens"
            ),
            models.CheckConstraint(
                condition=Q(n_options__gte=1, n_prefetched__gte=0), name="a_live_policy_generates_options"
            ),
            models.CheckConstraint(condition=~Q(step_end=""), name="a_live_policy_says_where_steps_end"),
        ]

    def __str__(self) -> str:
        return f"policy {self.version} of {self.project_id}"

    @property
    def is_open(self) -> bool:
        return self.opened_at is not None and self.closed_at is None

    @property
    def is_instructed(self) -> bool:
        return self.mode == LiveMode.INSTRUCTED

    @property
    def is_example(self) -> bool:
        return self.mode == LiveMode.EXAMPLE


class LiveSessionState(models.TextChoices):
    OPEN = "open", _("in progress")
    ASIDE = "aside", _("put aside")
    ENDED = "ended", _("ended")


class LiveSession(models.Model):
    """One rater's way through one problem, or a trial of a policy by a lead."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="live_sessions", db_index=False)
    policy = models.ForeignKey(LivePolicy, on_delete=models.PROTECT, related_name="sessions")
    problem = models.ForeignKey(Problem, on_delete=models.CASCADE, related_name="live_sessions")
    # Null for a trial.
    rater = models.ForeignKey(Rater, null=True, on_delete=models.PROTECT, related_name="live_sessions", db_index=False)
    guideline = models.ForeignKey(Guideline, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    saw_reference_answer = models.BooleanField(default=False)
    seed = models.BigIntegerField()  # seeds of requests and orders of options derive from it
    state = models.CharField(max_length=8, choices=LiveSessionState, default=LiveSessionState.OPEN)
    started_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    finish_reason = models.CharField(max_length=32, blank=True)
    finish_note = models.TextField(blank=True)
    # Null for a trial, and until the session ends.
    submission = models.OneToOneField(Submission, null=True, on_delete=models.CASCADE, related_name="live_session")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rater", "problem"], name="a_rater_solves_a_problem_live_once"),
            models.UniqueConstraint(
                fields=["rater"], condition=Q(state="open"), name="a_rater_has_one_open_live_session"
            ),
            models.CheckConstraint(
                condition=Q(state="ended", ended_at__isnull=False) | ~Q(state="ended") & Q(ended_at=None),
                name="an_ended_live_session_has_an_end_time",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["project", "problem"], name="live_session_by_problem")]

    def __str__(self) -> str:
        return f"live session {self.pk}"


class OptionRequestState(models.TextChoices):
    WAITING = "waiting", _("waiting")
    ASKED = "asked", _("asked")
    ANSWERED = "answered", _("answered")
    FAILED = "failed", _("not answered")
    REFUSED = "refused", _("refused")
    CAPPED = "capped", _("not asked, because a limit is reached")


class OptionRequest(models.Model):
    """One request for the options of a step, with all that is needed to send it again.

    `path` identifies the node of the tree of solutions: the id of each option, and the text of each step that the rater
    wrote, from the beginning. The prompt follows from policy, problem and path; its digest proves it.
    """

    session = models.ForeignKey(LiveSession, on_delete=models.CASCADE, related_name="requests", db_index=False)
    path = models.JSONField(default=list)
    position = models.PositiveIntegerField()  # the number of steps before these options
    has_human_steps = models.BooleanField(default=False)
    is_prefetched = models.BooleanField(default=False)  # asked before its step was chosen
    prompt_digest = models.CharField(max_length=64)
    seed = models.BigIntegerField()
    sent = models.JSONField(default=dict)  # all fields of the request except the prompt
    # The current PRM when the request was made, and whether raters saw its scores. No page shows them.
    prm = models.ForeignKey(PRM, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    has_shown_scores = models.BooleanField(default=False)

    state = models.CharField(max_length=10, choices=OptionRequestState, default=OptionRequestState.WAITING)
    made_at = models.DateTimeField()
    asked_at = models.DateTimeField(null=True, blank=True)
    lease_ends_at = models.DateTimeField(null=True, blank=True)  # of the process that asks
    answered_at = models.DateTimeField(null=True, blank=True)
    n_tries = models.PositiveIntegerField(default=0)  # times that a process asked
    problem = models.CharField(max_length=500, blank=True)  # why there is no answer

    server_version = models.CharField(max_length=100, blank=True)
    served_model = models.CharField(max_length=200, blank=True)
    fingerprint = models.CharField(max_length=100, blank=True)  # of the server's configuration, as it sends it
    n_returned = models.PositiveSmallIntegerField(default=0)
    dropped = models.JSONField(default=dict)  # number of options that were dropped, by reason
    answer = models.BinaryField(null=True, blank=True)  # compressed, as received
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    is_usage_estimated = models.BooleanField(default=False)
    money = models.DecimalField(max_digits=14, decimal_places=8, default=Decimal(0))
    milliseconds = models.PositiveIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "prompt_digest"], name="a_live_session_asks_a_prompt_once"),
            models.CheckConstraint(
                condition=~Q(state="answered") | Q(answered_at__isnull=False), name="answered_options_have_a_time"
            ),
        ]

    def __str__(self) -> str:
        return f"request {self.pk} of live session {self.session_id}"

    @property
    def is_pending(self) -> bool:
        return self.state in (OptionRequestState.WAITING, OptionRequestState.ASKED)

    @property
    def reference(self) -> str:
        """The id that the server gets."""
        return f"stepmark-{self.session_id}-{self.prompt_digest[:16]}"


class StepEnding(models.TextChoices):
    STEP = "step", _("a step")
    SOLUTION = "solution", _("the end of the solution")
    TRUNCATED = "truncated", _("cut off at the token limit")


class LiveOption(models.Model):
    """One generated option, by its index in the answer, with the rating of the session's rater."""

    request = models.ForeignKey(OptionRequest, on_delete=models.CASCADE, related_name="options", db_index=False)
    index = models.PositiveSmallIntegerField()
    text = models.TextField()
    ending = models.CharField(max_length=10, choices=StepEnding)
    finish_reason = models.CharField(max_length=40, blank=True)
    stop_reason = models.CharField(max_length=100, blank=True)  # JSON
    same_as = models.PositiveSmallIntegerField(null=True, blank=True)  # the first index with this text
    token_ids = models.JSONField(null=True, blank=True)
    sum_logprob = models.FloatField(null=True, blank=True)
    n_logprobs = models.PositiveIntegerField(default=0)
    rating = models.SmallIntegerField(null=True, blank=True)
    flagged = models.BooleanField(default=False)
    rated_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["request", "index"], name="an_answer_has_one_option_at_an_index"),
            models.CheckConstraint(
                condition=Q(rating=None) | Q(rating__in=[-1, 0, 1]), name="a_live_rating_is_on_the_scale"
            ),
            models.CheckConstraint(
                condition=Q(same_as=None) | Q(same_as__lt=models.F("index")), name="a_duplicate_follows_its_original"
            ),
        ]

    def __str__(self) -> str:
        return self.text[:60]

    @property
    def is_whole(self) -> bool:
        return self.ending != StepEnding.TRUNCATED

    @property
    def ends_solution(self) -> bool:
        return self.ending == StepEnding.SOLUTION

    @property
    def mean_logprob(self) -> float | None:
        if self.sum_logprob is None or not self.n_logprobs or not math.isfinite(self.sum_logprob):
            return None
        return self.sum_logprob / self.n_logprobs


class LiveRatingEdit(models.Model):
    """One change of an option's rating. Append-only: the rating of an option is that of its last applied edit."""

    option = models.ForeignKey(LiveOption, on_delete=models.CASCADE, related_name="edits")
    rating = models.SmallIntegerField(null=True, blank=True)  # null: undone
    flagged = models.BooleanField(default=False)
    arrived_at = models.DateTimeField()
    was_applied = models.BooleanField()  # false: the step had been decided

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(rating=None) | Q(rating__in=[-1, 0, 1]), name="a_live_edit_is_on_the_scale"
            ),
        ]

    def __str__(self) -> str:
        return f"edit {self.pk} of live option {self.option_id}"


class LiveTurn(models.Model):
    """One step of a session: the options that the rater saw, and what they chose or wrote."""

    session = models.ForeignKey(LiveSession, on_delete=models.CASCADE, related_name="turns", db_index=False)
    position = models.PositiveIntegerField()
    request = models.ForeignKey(OptionRequest, on_delete=models.PROTECT, related_name="turns")
    shown = models.JSONField(null=True, blank=True)  # indexes in the order shown; null: no options were shown
    shown_at = models.DateTimeField(null=True, blank=True)
    order_seed = models.BigIntegerField()
    chosen = models.ForeignKey(LiveOption, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    written_text = models.TextField(null=True, blank=True)
    is_final = models.BooleanField(default=False)  # the step ends the solution
    draft = models.TextField(blank=True)  # of the rater's own step
    active_ms = models.PositiveIntegerField(default=0)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "position"], name="a_live_session_has_one_turn_at_a_position"),
            models.CheckConstraint(
                condition=Q(ended_at=None, chosen=None, written_text=None)
                | Q(ended_at__isnull=False, chosen__isnull=False, written_text=None)
                | Q(ended_at__isnull=False, chosen=None, written_text__isnull=False),
                name="a_live_turn_ends_with_one_step",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.position} of {self.session_id}"
