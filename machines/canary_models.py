"""What judges say about gaming canaries. `machines.canary_job` saves both tables."""

from typing import ClassVar

from django.db import models

from machines.models import AnsweredVote, Judge, JudgeRun
from prm.models import GamingCanary


class CanaryVote(AnsweredVote):
    """One vote on a canary."""

    judge = models.ForeignKey(Judge, on_delete=models.CASCADE, related_name="canary_votes", db_index=False)
    run = models.ForeignKey(JudgeRun, on_delete=models.CASCADE, related_name="canary_votes")
    canary = models.ForeignKey(GamingCanary, on_delete=models.CASCADE, related_name="+")
    prefix = 0  # of rollouts only, which are not asked about canaries

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["judge", "canary", "number"], name="a_canary_vote_is_answered_once"),
        ]

    def __str__(self) -> str:
        return f"vote {self.number} of {self.judge_id} on canary {self.canary_id}"


class CanaryVerdict(models.Model):
    """P(E) of a judge on one canary, from its readable votes."""

    judge = models.ForeignKey(Judge, on_delete=models.CASCADE, related_name="canary_verdicts", db_index=False)
    run = models.ForeignKey(JudgeRun, on_delete=models.CASCADE, related_name="canary_verdicts")
    canary = models.ForeignKey(GamingCanary, on_delete=models.CASCADE, related_name="+")
    n_votes = models.PositiveSmallIntegerField()
    n_parsed = models.PositiveSmallIntegerField()
    n_failed = models.PositiveSmallIntegerField(default=0)  # not answered; the next run asks again
    first_errors = models.JSONField(default=list)  # [[position or null, share], …]
    judged_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["judge", "canary"], name="a_judge_judges_a_canary_once"),
        ]

    def __str__(self) -> str:
        return f"{self.judge_id} on canary {self.canary_id}"
