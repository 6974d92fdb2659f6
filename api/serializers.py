"""Serializers shared by several views."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from formats import catalog
from jobs.models import Job, JobState
from labeling.models import Project
from labeling.models.gold import GoldUse
from labeling.models.problem import SourcePurpose
from labeling.traces import labelers


class ProjectSerializer(serializers.ModelSerializer[Project]):
    class Meta:
        model = Project
        fields = ("slug", "name", "description", "protocol", "state", "overlap", "created_at")


class JobSerializer(serializers.Serializer[Job]):
    """A background job: its progress and result."""

    id = serializers.IntegerField()
    state = serializers.ChoiceField(choices=JobState.choices)
    done = serializers.IntegerField(help_text="Out of `total`; the unit depends on the job: records, files or scores.")
    total = serializers.IntegerField(allow_null=True)
    remaining_seconds = serializers.SerializerMethodField()
    failure = serializers.CharField(help_text="Why the job failed and what to do; otherwise empty.")
    result = serializers.DictField(help_text="The result so far; for an import, its report.")
    asked_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_remaining_seconds(self, job: Job) -> float | None:
        """Estimated from the pace so far; null if unknown."""
        return job.remaining_seconds(self.context["now"])


class ImportChoices(serializers.Serializer[Any]):
    """Import options, the same as those of `manage.py import_traces`."""

    name = serializers.CharField(
        default="traces.jsonl", max_length=200, help_text="File name; “.gz” and “.zst” are decompressed."
    )
    format = serializers.ChoiceField(default="auto", choices=["auto", *catalog.INPUT_FORMATS])
    segmenter = serializers.CharField(default="", allow_blank=True, max_length=60)
    labels = serializers.ChoiceField(default="judgments", choices=list(labelers.LABELS_KINDS))
    labels_by = serializers.CharField(default="", allow_blank=True, max_length=160)
    gold_use = serializers.ChoiceField(default=GoldUse.HIDDEN.value, choices=GoldUse.choices)
    purpose = serializers.ChoiceField(default=SourcePurpose.RATE.value, choices=SourcePurpose.choices)
    private = serializers.ChoiceField(default="count", choices=["count", "mask", "refuse"])
    licence = serializers.CharField(default="", allow_blank=True, max_length=200)
    statement = serializers.CharField(default="", allow_blank=True, max_length=2000, help_text="Where it comes from.")
    is_lenient = serializers.BooleanField(default=False, help_text="Skip bad lines instead of refusing the file.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse unknown options: a misspelled one would be ignored and import the file differently."""
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError({name: [_("Unknown option.")] for name in unknown})
        return attrs
