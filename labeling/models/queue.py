"""Lanes of traces with their entries, draws and cursors. Owned by `labeling.queue`."""

from typing import ClassVar

from django.db import models
from django.db.models import ExpressionWrapper, F, Q
from django.utils.translation import gettext_lazy as _

from labeling.models.project import Project
from labeling.models.rater import Rater
from labeling.models.trace import Trace


class SamplingSource(models.TextChoices):
    TRAINING = "training", _("training")
    SCREENING = "screening", _("screening")
    GOLD = "gold", _("gold")
    CHOSEN = "chosen", _("chosen by a person")
    TOP_UP = "top_up", _("top-up")  # returned slots
    OPINION = "opinion", _("additional label")  # slots added because raters disagreed
    RESERVE = "reserve", _("held-out")
    UNIFORM = "uniform", _("uniform")
    POLICY = "policy", _("policy")


class RaterGroupQuerySet(models.QuerySet["RaterGroup"]):
    def named(self) -> "RaterGroupQuerySet":
        """Return the groups that a lead made and has not deleted."""
        return self.filter(person=None, deleted_at=None)


class RaterGroup(models.Model):
    """Raters with a skill, who can be assigned traces. A group of one `person` has no name. The row of a deleted group
    stays, because assignments refer to its lane."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="rater_groups")
    name = models.CharField(max_length=80, blank=True)
    person = models.OneToOneField(Rater, null=True, on_delete=models.CASCADE, related_name="own_group")
    raters = models.ManyToManyField(Rater, related_name="groups")
    made_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = RaterGroupQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project", "name"],
                condition=~Q(name="") & Q(deleted_at=None),
                name="a_group_has_its_name_alone",
            ),
            models.CheckConstraint(
                condition=Q(person=None) & ~Q(name="") | Q(person__isnull=False, name=""),
                name="a_group_has_a_name_or_is_one_person",
            ),
        ]

    def __str__(self) -> str:
        return self.name or f"rater {self.person_id}"


class SteeringRule(models.Model):
    """A rule that puts a sample of new traces first: a filter, a share, and the raters who get the traces. Owned by
    `labeling.traces.steering_rules`."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="steering_rules")
    domain = models.CharField(max_length=100, blank=True)  # empty: any
    source_name = models.CharField(max_length=100, blank=True)  # a part of the file's name; empty: any
    share = models.FloatField(default=1.0)
    group = models.ForeignKey(RaterGroup, null=True, blank=True, on_delete=models.PROTECT, related_name="rules")
    made_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(share__gt=0, share__lte=1), name="a_rule_samples_a_share"),
        ]

    def __str__(self) -> str:
        return f"rule {self.pk} of {self.project_id}"


class LaneQuerySet(models.QuerySet["Lane"]):
    def open(self) -> "LaneQuerySet":
        """Return the lanes that are served. An open lane may be empty."""
        return self.filter(closed_at=None)


class Lane(models.Model):
    """One sampling source of one generation. Raters read a lane downward; a closed lane is not served."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="lanes")
    arm = models.CharField(max_length=10, choices=SamplingSource)
    generation = models.PositiveIntegerField(default=0)
    # Only these raters are served. Null: everyone. Only chosen traces are for a group.
    group = models.ForeignKey(RaterGroup, null=True, blank=True, on_delete=models.CASCADE, related_name="lanes")
    closed_at = models.DateTimeField(null=True, blank=True)

    objects = LaneQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project", "arm", "generation", "group"],
                nulls_distinct=False,
                name="an_arm_has_one_lane_a_generation_and_group",
            ),
            models.CheckConstraint(
                condition=Q(group=None) | Q(arm="chosen"), name="only_chosen_traces_are_for_a_group"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.arm} {self.generation}"


class TraceDraw(models.Model):
    """One trace drawn for labeling, with its probability given the draws before it."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="draws")
    batch = models.PositiveIntegerField()
    rank = models.PositiveIntegerField()
    trace = models.ForeignKey(Trace, on_delete=models.PROTECT, related_name="draws")
    arm = models.CharField(max_length=10, choices=SamplingSource)
    q = models.FloatField()
    score = models.FloatField(null=True, blank=True)
    prm = models.CharField(max_length=200, blank=True)  # a text, because labeling does not depend on the PRM registry
    pool_size = models.PositiveIntegerField()
    n_left = models.PositiveIntegerField()
    drawn_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "batch", "rank"], name="a_batch_has_one_draw_at_a_rank"),
            models.UniqueConstraint(fields=["project", "batch", "trace"], name="a_batch_draws_a_trace_once"),
            models.CheckConstraint(condition=Q(q__gt=0, q__lte=1), name="a_draw_has_a_probability"),
            models.CheckConstraint(
                condition=Q(n_left__lte=F("pool_size"), n_left__gte=1), name="a_draw_leaves_its_pool"
            ),
        ]

    def __str__(self) -> str:
        return f"draw {self.batch}.{self.rank}"


class QueueEntryQuerySet(models.QuerySet["QueueEntry"]):
    def open(self) -> "QueueEntryQuerySet":
        """Return the entries with slots left."""
        return self.filter(is_open=True)


class QueueEntry(models.Model):
    """A trace in a lane with its remaining slots. Narrow on purpose, because claims update it."""

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="entries", db_index=False)
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="queue_entries", db_index=False)
    draw = models.ForeignKey(TraceDraw, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    key = models.BigIntegerField()  # the highest is served first
    slots = models.SmallIntegerField()  # slots given in this lane, without returned ones
    slots_left = models.SmallIntegerField()
    # The index uses this column instead of the count. So a change from 3 to 2 or 1 slots changes no index, and the row
    # stays on its page.
    is_open = models.GeneratedField(
        expression=ExpressionWrapper(Q(slots_left__gt=0), models.BooleanField()),
        output_field=models.BooleanField(),
        db_persist=True,
    )

    objects = QueueEntryQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["trace", "lane"], name="a_trace_stands_once_in_a_lane"),
            models.CheckConstraint(condition=Q(slots_left__gte=0, slots__gte=0), name="slots_are_never_negative"),
        ]
        indexes: ClassVar = [
            models.Index("lane", F("key").desc(), F("trace").desc(), condition=Q(is_open=True), name="entry_next"),
        ]

    def __str__(self) -> str:
        return f"{self.trace_id} in {self.lane_id}"


class LaneCursor(models.Model):
    """A lane was empty for a rater from this key down. Otherwise the newest assignment of the lane gives the rater's
    position, which needs no write and leaves no dead rows."""

    rater = models.ForeignKey(Rater, on_delete=models.CASCADE, related_name="+", db_index=False)
    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="+")
    key = models.BigIntegerField()
    read_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rater", "lane"], name="a_rater_reads_a_lane_from_one_place"),
        ]

    def __str__(self) -> str:
        return f"{self.rater_id} at {self.key}"


class AddedSlot(models.Model):
    """A slot for an additional label. The row prevents a round from adding two."""

    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="added_slots", db_index=False)
    round = models.PositiveSmallIntegerField()
    added_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["trace", "round"], name="a_round_adds_one_slot_to_a_trace"),
        ]

    def __str__(self) -> str:
        return f"round {self.round} of {self.trace_id}"
