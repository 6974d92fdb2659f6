"""Problems, and the sources of traces. Owned by `labeling.traces`; benchmark problems by `labeling.benchmarks`."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from formats import titles
from labeling.models.project import Project


class ContentType(models.TextChoices):
    PLAIN = "plain", _("plain text with math")
    MARKDOWN = "markdown", _("Markdown")


class SourcePurpose(models.TextChoices):
    """The purpose of an imported file."""

    RATE = "rate", _("labeling")
    BENCHMARK = "benchmark", _("benchmark, excluded from training")


class ImportedLabelKind(models.TextChoices):
    """The kind of ratings in a file, as chosen by the person who imports it."""

    JUDGMENTS = "judgments", _("ratings of the labelers named in the file")
    GOLD = "gold", _("gold: known answers")
    HUMAN = "human", _("ratings of people, under one name")
    MONTE_CARLO = "monte_carlo", _("Monte Carlo rollouts, under one name")
    JUDGE = "judge", _("a model as judge, under one name")
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
    labels_by = models.CharField(max_length=160, blank=True)  # the one name, if `labels_are` needs one
    report = models.JSONField(default=dict, blank=True)  # of the last import
    reported_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True)
    content_type = models.CharField(max_length=16, choices=ContentType, default=ContentType.PLAIN)
    added_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Provenance(models.Model):
    """How traces were generated. Shared by all traces that were generated in the same way."""

    class Reasoning(models.TextChoices):
        RAW = "raw", _("raw")
        SUMMARISED = "summarised", _("summarized")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    digest = models.CharField(max_length=64)
    base_model = models.CharField(max_length=200, blank=True)
    policy = models.CharField(max_length=200, blank=True)
    sampler = models.JSONField(default=dict, blank=True)
    scaffold = models.CharField(max_length=200, blank=True)
    segmenter = models.CharField(max_length=100, blank=True)
    reasoning = models.CharField(max_length=16, choices=Reasoning, blank=True)

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
