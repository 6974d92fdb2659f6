"""Sources, problems, traces, their steps, and the options of a step. Owned by `labeling.traces`; texts never change.
`labeling.benchmarks` owns benchmark problems."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from formats import images, titles
from labeling.models.project import Project


class SourcePurpose(models.TextChoices):
    """The purpose of an imported file."""

    RATE = "rate", _("labeling")
    BENCHMARK = "benchmark", _("benchmark, excluded from training")


class ImportedLabelKind(models.TextChoices):
    """The kind of ratings in a file, as chosen by the person who imports it."""

    JUDGMENTS = "judgments", _("ratings by the labelers named in the file")
    GOLD = "gold", _("gold: known answers")
    HUMAN = "human", _("ratings by people, stored under one name")
    MONTE_CARLO = "monte_carlo", _("Monte Carlo rollouts, stored under one name")
    JUDGE = "judge", _("ratings by a judge model, stored under one name")
    NONE = "none", _("ignored")


class Source(models.Model):
    """One imported file, for tracing a label back to its origin."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="sources")
    name = models.CharField(max_length=500)
    format = models.CharField(max_length=40)
    sha256 = models.CharField(max_length=64, blank=True)
    licence = models.CharField(max_length=200, blank=True)
    statement = models.TextField(blank=True)  # a description of the origin of the file
    purpose = models.CharField(max_length=10, choices=SourcePurpose, default=SourcePurpose.RATE)
    labels_are = models.CharField(max_length=12, choices=ImportedLabelKind, default=ImportedLabelKind.JUDGMENTS)
    labels_by = models.CharField(max_length=160, blank=True)  # the rater or machine, if `labels_are` needs one
    report = models.JSONField(default=dict, blank=True)  # of the last import
    reported_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True)
    added_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Provenance(models.Model):
    """How traces were generated. Shared by all traces that were generated in the same way."""

    class Reasoning(models.TextChoices):
        RAW = "raw", _("raw")
        SUMMARISED = "summarised", _("summarized")
        PARTLY_HIDDEN = "partly_hidden", _("partly hidden")
        NONE = "none", _("none")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    digest = models.CharField(max_length=64)
    base_model = models.CharField(max_length=200, blank=True)
    policy = models.CharField(max_length=200, blank=True)
    sampler = models.JSONField(default=dict, blank=True)
    scaffold = models.CharField(max_length=200, blank=True)
    segmenter = models.CharField(max_length=100, blank=True)
    reasoning = models.CharField(max_length=16, choices=Reasoning, blank=True)
    reasoning_by = models.CharField(max_length=200, blank=True)  # who summarized or hid it

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "digest"], name="traces_made_alike_share_their_provenance"),
        ]

    def __str__(self) -> str:
        return self.policy or self.base_model or self.digest[:8]


class Problem(models.Model):
    """A problem given to a model. Files distinguish null from absent, so the columns do too."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="problems", db_index=False)
    digest = models.CharField(max_length=64)
    normal_digest = models.CharField(max_length=64)
    ref = models.CharField(max_length=200, blank=True)
    domain = models.CharField(max_length=100, blank=True)
    text = models.TextField()
    reference_answer = models.TextField(null=True, blank=True)
    reference_solution = models.TextField(null=True, blank=True)
    has_reference_answer = models.BooleanField(default=True)
    has_reference_solution = models.BooleanField(default=False)
    is_reserve = models.BooleanField(default=False)
    source = models.ForeignKey(Source, null=True, on_delete=models.PROTECT, related_name="problems")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "digest"], name="a_problem_stands_once_in_a_project"),
            models.CheckConstraint(
                condition=Q(has_reference_answer=True) | Q(reference_answer=None), name="an_absent_answer_is_null"
            ),
            models.CheckConstraint(
                condition=Q(has_reference_solution=True) | Q(reference_solution=None), name="an_absent_solution_is_null"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["normal_digest"], name="problem_by_normal_text")]

    def __str__(self) -> str:
        return self.title

    @property
    def title(self) -> str:
        """One readable line for lists: formulas in plain characters."""
        return titles.make_title(self.text)


class StoredImage(models.Model):
    """An image of a project: a PNG without metadata. It is in the database, so that backups, restores and several
    machines need nothing else. Owned by `labeling.traces.stored_images`."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    digest = models.CharField(max_length=64)  # of the pixels
    original_sha256 = models.CharField(max_length=64)  # of the file that it was first made of
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "digest"], name="a_project_stores_an_image_once"),
        ]

    def __str__(self) -> str:
        return self.digest[:12]


class ProblemImage(models.Model):
    """An image of a problem, in the order of the placeholders in its text."""

    problem = models.ForeignKey(Problem, on_delete=models.CASCADE, related_name="images", db_index=False)
    position = models.PositiveSmallIntegerField()
    image = models.ForeignKey(StoredImage, on_delete=models.PROTECT, related_name="+")
    description = models.CharField(max_length=1000, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["problem", "position"], name="a_problem_has_one_image_at_a_position"),
        ]

    def __str__(self) -> str:
        return self.description or f"image {self.position}"


class BenchmarkProblem(models.Model):
    """A problem of an imported benchmark. No project trains on it."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="benchmark_problems", db_index=False)
    normal_digest = models.CharField(max_length=64)
    listed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["source", "normal_digest"], name="a_list_names_a_problem_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["normal_digest"], name="benchmark_by_normal_text")]

    def __str__(self) -> str:
        return self.normal_digest[:8]


class TraceKind(models.TextChoices):
    PREGENERATED = "pregenerated", _("generated before labeling")
    LIVE = "live", _("generated while labeling")


class OutcomeSource(models.TextChoices):
    FILE = "file", _("the file")
    GRADER = "grader", _("a grader")
    HUMAN = "human", _("a person")


class TraceQuerySet(models.QuerySet["Trace"]):
    def available(self) -> "TraceQuerySet":
        """Return the traces that have not been withdrawn."""
        return self.filter(withdrawn_at=None)

    def withdrawn(self) -> "TraceQuerySet":
        return self.exclude(withdrawn_at=None)


class Trace(models.Model):
    """One model's path to an answer, cut into steps, with its origin."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="traces", db_index=False)
    problem = models.ForeignKey(Problem, on_delete=models.CASCADE, related_name="traces")
    digest = models.CharField(max_length=64)
    kind = models.CharField(max_length=16, choices=TraceKind, default=TraceKind.PREGENERATED)
    # The trace's own steps. A file can have ratings of steps after its end; they have later positions.
    n_steps = models.PositiveIntegerField()
    ref = models.CharField(max_length=200, blank=True)  # the name of the trace in the file
    answer = models.TextField(null=True, blank=True)
    verifier_score = models.FloatField(null=True, blank=True)

    # The outcome: whether the final answer is right, and who decided it.
    is_right = models.BooleanField(null=True, blank=True)
    outcome_by = models.CharField(max_length=16, choices=OutcomeSource, blank=True)
    outcome_grader = models.CharField(max_length=200, blank=True)
    metadata = models.JSONField(default=dict, blank=True)  # fields of the file that its format does not define

    provenance = models.ForeignKey(
        Provenance, null=True, on_delete=models.PROTECT, related_name="traces", db_index=False
    )
    source = models.ForeignKey(Source, null=True, on_delete=models.PROTECT, related_name="traces")
    source_line = models.PositiveIntegerField(null=True, blank=True)
    added_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawn_reason = models.CharField(max_length=200, blank=True)

    objects = TraceQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "digest"], name="a_trace_stands_once_in_a_project"),
            models.CheckConstraint(
                condition=Q(is_right=None) | ~Q(outcome_by=""), name="a_known_outcome_says_who_found_it"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["project", "-id"], name="trace_by_arrival"),
            models.Index(fields=["project"], condition=Q(withdrawn_at__isnull=False), name="trace_withdrawn"),
            models.Index(fields=["project", "ref"], condition=~Q(ref=""), name="trace_by_ref"),
        ]

    def __str__(self) -> str:
        return f"trace {self.pk}"


class TraceOriginal(models.Model):
    """The record of a trace without labels, if its format cannot be written from the steps. A table of its own, because
    only exports read it. Owned by `labeling.traces`."""

    trace = models.OneToOneField(Trace, on_delete=models.CASCADE, primary_key=True, related_name="original")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    format = models.CharField(max_length=40)
    content = models.BinaryField()  # JSON, packed

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(format=""), name="an_original_record_has_a_format"),
        ]

    def __str__(self) -> str:
        return f"original of trace {self.trace_id}"


class TraceTag(models.Model):
    """A word that a person put on a trace. Owned by `labeling.traces.tags`."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="tags", db_index=False)
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="tags", db_index=False)
    name = models.CharField(max_length=40)
    made_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["trace", "name"], name="a_trace_has_a_tag_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["project", "name", "-trace"], name="tag_by_name")]

    def __str__(self) -> str:
        return self.name


class StepKind(models.TextChoices):
    SYSTEM = "system", _("system")
    USER = "user", _("user")
    REASONING = "reasoning", _("reasoning")
    ACTION = "action", _("action")
    OBSERVATION = "observation", _("observation")
    ANSWER = "answer", _("answer")


class Step(models.Model):
    """One position on the path; rateable or context."""

    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="steps", db_index=False)
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=12, choices=StepKind, default=StepKind.REASONING)
    is_rateable = models.BooleanField(default=True)
    agent = models.CharField(max_length=200, blank=True)  # the subagent, as a path of names: "research/browse"
    # The raw text between this step and the previous one: steps and separators reproduce the text exactly.
    separator = models.TextField(blank=True)
    source_position = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["trace", "position"], name="a_trace_has_one_step_at_a_position"),
        ]

    def __str__(self) -> str:
        return f"step {self.position}"


class OptionOrigin(models.TextChoices):
    MODEL = "model", _("a model")
    HUMAN = "human", _("a person")


class Option(models.Model):
    """One alternative text of a step, identified by its position. Duplicates are kept."""

    step = models.ForeignKey(Step, on_delete=models.CASCADE, related_name="options", db_index=False)
    position = models.PositiveSmallIntegerField()
    origin = models.CharField(max_length=8, choices=OptionOrigin, default=OptionOrigin.MODEL)
    text = models.TextField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["step", "position"], name="a_step_has_one_option_at_a_position"),
        ]

    def __str__(self) -> str:
        return self.text[:60]


class PartKind(models.TextChoices):
    TEXT = "text", _("text")
    CALL = "call", _("tool call")
    RESULT = "result", _("tool result")
    DIFF = "diff", _("diff")
    IMAGE = "image", _("image")


class OptionPartQuerySet(models.QuerySet["OptionPart"]):
    def with_images(self) -> "OptionPartQuerySet":
        """Add size and digest of images, without their content."""
        return self.select_related("image").defer("image__data").order_by("position")


class OptionPart(models.Model):
    """A part of an option that is not plain text only. An option without parts is its text."""

    option = models.ForeignKey(Option, on_delete=models.CASCADE, related_name="parts", db_index=False)
    position = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=8, choices=PartKind)
    text = models.TextField(blank=True)
    name = models.CharField(max_length=200, blank=True)  # of the tool or the file
    call_ref = models.CharField(max_length=200, blank=True)  # joins a result to its call
    media_type = models.CharField(max_length=100, blank=True)
    # The text of an image is a placeholder with its description.
    image = models.ForeignKey("StoredImage", null=True, blank=True, on_delete=models.PROTECT, db_index=False)

    objects = OptionPartQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["option", "position"], name="an_option_has_one_part_at_a_position"),
            models.CheckConstraint(
                condition=Q(kind="image", image__isnull=False) | (~Q(kind="image") & Q(image=None)),
                name="image_parts_have_an_image",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["image"], condition=Q(image__isnull=False), name="part_by_image"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def description(self) -> str:
        """The description of an image."""
        return images.read_description(self.text)
