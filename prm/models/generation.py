"""Generations (rounds of training, scoring and selection) and their settings.

`prm.generations` changes them.
"""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from labeling.models import Manifest, Project
from prm.evaluation import gate
from prm.models.prm import PRM
from prm.selection import acquisitions


class Stage(models.TextChoices):
    SNAPSHOT = "snapshot", _("snapshot")
    TRAIN = "train", _("train")
    EVALUATE = "evaluate", _("evaluate")
    SCORE = "score", _("score")
    SELECT = "select", _("select")
    DONE = "done", _("done")
    STOPPED = "stopped", _("stopped")


class GateVerdict(models.TextChoices):
    """`prm.evaluation.gate.Verdict`, for people."""

    ACCEPTED = "accepted", _("accepted")
    REJECTED = "rejected", _("rejected")
    UNDECIDED = "undecided", _("undecided")


MAX_GATE_MARGIN = 0.2
RUNNING = (Stage.SNAPSHOT, Stage.TRAIN, Stage.EVALUATE, Stage.SCORE, Stage.SELECT)


class Generation(models.Model):
    """One round. The figures of its gate are copied here, so that they stay when the PRM is evaluated again."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="generations", db_index=False)
    number = models.PositiveIntegerField()
    stage = models.CharField(max_length=8, choices=Stage, default=Stage.SNAPSHOT)
    started_at = models.DateTimeField()
    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    was_started_by_rule = models.BooleanField(default=False)
    ended_at = models.DateTimeField(null=True, blank=True)

    manifest = models.ForeignKey(Manifest, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    candidate = models.ForeignKey(PRM, null=True, on_delete=models.SET_NULL, related_name="generations", db_index=False)
    scored_with = models.ForeignKey(PRM, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False)
    n_submissions = models.PositiveIntegerField(default=0)
    n_traces = models.PositiveIntegerField(default=0)  # labeled, outside the held-out set
    verdict = models.CharField(max_length=9, choices=GateVerdict, blank=True)  # the gate's decision
    gate = models.JSONField(default=dict)  # reason, comparison with the current PRM, alarms, figures
    shards_left = models.PositiveIntegerField(default=0)

    batch = models.PositiveIntegerField(null=True, blank=True)
    acquisition = models.CharField(max_length=200, blank=True)  # of this batch
    n_policy = models.PositiveIntegerField(default=0)
    n_uniform = models.PositiveIntegerField(default=0)
    reading = models.JSONField(default=dict)  # the assumed cost: seconds per trace, step, word
    payoff = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "number"], name="a_generation_has_its_number_alone"),
            models.UniqueConstraint(
                fields=["project"],
                condition=Q(stage__in=["snapshot", "train", "evaluate", "score", "select"]),
                name="one_generation_runs_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(stage__in=["done", "stopped"], ended_at__isnull=False)
                | ~Q(stage__in=["done", "stopped"]) & Q(ended_at=None),
                name="a_generation_that_ended_has_an_end",
            ),
        ]

    def __str__(self) -> str:
        return f"generation {self.number} of {self.project_id}"

    @property
    def is_running(self) -> bool:
        return self.stage in RUNNING

    @property
    def subject(self) -> str:
        """The subject of its jobs."""
        return f"generation:{self.pk}"


class LoopRules(models.Model):
    """The settings by which a project's batches are drawn and generations start automatically."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="loop_rules", primary_key=True)
    acquisition = models.CharField(max_length=200, default=acquisitions.DEFAULT)
    temperature = models.FloatField(default=0.1)
    batch_size = models.PositiveIntegerField(default=500)
    domain_quota = models.FloatField(default=1.0)
    has_one_per_problem = models.BooleanField(default=True)
    gate_margin = models.FloatField(default=gate.DEFAULT_MARGIN)  # how much worse a new PRM may be
    every_n_submissions = models.PositiveIntegerField(null=True, blank=True)  # null: never automatically
    fell_back_at = models.DateTimeField(null=True, blank=True)  # random draws since then, for lack of gain

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(temperature__gt=0, domain_quota__gt=0, domain_quota__lte=1, batch_size__gte=1),
                name="loop_rules_can_be_drawn_by",
            ),
            models.CheckConstraint(
                condition=Q(gate_margin__gt=0, gate_margin__lte=MAX_GATE_MARGIN),
                name="a_gate_margin_is_a_small_difference",
            ),
        ]

    def __str__(self) -> str:
        return f"rules of {self.project_id}"
