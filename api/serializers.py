"""What programs read and write, field by field."""

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
    """Work behind the scenes: how far it is, and how it ended."""

    id = serializers.IntegerField()
    state = serializers.ChoiceField(choices=JobState.choices)
    done = serializers.IntegerField(help_text="Of `total`, in what the work counts: records, files, scores.")
    total = serializers.IntegerField(allow_null=True)
    remaining_seconds = serializers.SerializerMethodField()
    failure = serializers.CharField(help_text="Why it failed, and what to do; empty unless it did.")
    result = serializers.DictField(help_text="What came of it so far: of an import, its report.")
    asked_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_remaining_seconds(self, job: Job) -> float | None:
        """At the pace so far; null where there is none to go by."""
        return job.remaining_seconds(self.context["now"])


class ImportChoices(serializers.Serializer[Any]):
    """How a file is to be read, and what is said of it: the words of `manage.py import_traces`."""

    name = serializers.CharField(default="traces.jsonl", max_length=200, help_text="Its name; “.gz” and “.zst” count.")
    format = serializers.ChoiceField(default="auto", choices=["auto", *catalog.INPUT_FORMATS])
    segmenter = serializers.CharField(default="", allow_blank=True, max_length=60)
    labels = serializers.ChoiceField(default="judgments", choices=list(labelers.LABELS_KINDS))
    labels_by = serializers.CharField(default="", allow_blank=True, max_length=160)
    gold_use = serializers.ChoiceField(default=GoldUse.HIDDEN.value, choices=GoldUse.choices)
    purpose = serializers.ChoiceField(default=SourcePurpose.RATE.value, choices=SourcePurpose.choices)
    private = serializers.ChoiceField(default="count", choices=["count", "mask", "refuse"])
    licence = serializers.CharField(default="", allow_blank=True, max_length=200)
    statement = serializers.CharField(default="", allow_blank=True, max_length=2000, help_text="Where it comes from.")
    is_lenient = serializers.BooleanField(default=False, help_text="Leave bad lines out, instead of taking nothing.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A slip of the pen would bring the file in otherwise than it was meant."""
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError({name: [_("There is no such choice.")] for name in unknown})
        return attrs
