"""Passports and licenses of machine raters. `machines.passports` and `machines.licenses` change them."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from labeling.models import Guideline, Project, Rater


class PassportEnd(models.TextChoices):
    REPLACED = "replaced", _("replaced by a newer passport")
    PROMPT = "prompt_digest", _("the prompt changed")
    MODEL = "model", _("another model answers")
    GUIDELINE = "guideline", _("the guideline changed")
    DRIFT = "drift", _("agreement with people dropped")


class PassportQuerySet(models.QuerySet["MachinePassport"]):
    def valid(self) -> "PassportQuerySet":
        return self.filter(expired_at=None)


class MachinePassport(models.Model):
    """The measured figures of one machine rater, for one prompt, model and guideline."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="machine_passports", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="passports", db_index=False)
    content = models.JSONField()  # see `machines.passport_content`
    identity = models.JSONField()  # prompt digest and model; empty for machines that labeled elsewhere
    guideline = models.ForeignKey(Guideline, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    # The share of reference traces on which the machine named their first error; null without any.
    accuracy = models.FloatField(null=True, blank=True)
    epsilon = models.FloatField()  # of the alternative annotator test
    passes_test = models.BooleanField()
    issued_at = models.DateTimeField()
    issued_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    checked_at = models.DateTimeField()  # when prompt, model, guideline and new labels were last compared
    n_retests = models.PositiveIntegerField(default=0)  # traces that people and machine both labeled since the issue
    expired_at = models.DateTimeField(null=True, blank=True)
    expired_because = models.CharField(max_length=14, choices=PassportEnd, blank=True)

    objects = PassportQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["rater"], condition=Q(expired_at=None), name="a_machine_has_one_valid_passport"
            ),
            models.CheckConstraint(
                condition=Q(expired_at=None, expired_because="") | Q(expired_at__isnull=False) & ~Q(expired_because=""),
                name="an_expired_passport_says_why",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["project", "rater", "-issued_at"], name="passports_of_rater")]

    def __str__(self) -> str:
        return f"passport {self.pk} of {self.rater_id}"


class ConsensusRoute(models.Model):
    """The rule that traces on which two machines name the same first error are settled by them, where this keeps the
    promise, and that people label the others first. Its licenses do the work."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="consensus_routes", db_index=False)
    first_passport = models.ForeignKey(MachinePassport, on_delete=models.PROTECT, related_name="+", db_index=False)
    second_passport = models.ForeignKey(MachinePassport, on_delete=models.PROTECT, related_name="+", db_index=False)
    promised = models.FloatField()  # precision of what is kept
    retest_share = models.FloatField()
    puts_disagreement_first = models.BooleanField()
    strata = models.JSONField()  # the evidence about the traces on which both agree: see `machines.license_strata`
    opened_at = models.DateTimeField()
    opened_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project"], condition=Q(closed_at=None), name="a_project_has_one_open_consensus_route"
            ),
        ]

    def __str__(self) -> str:
        return f"consensus route {self.pk} of {self.project_id}"

    @property
    def subject(self) -> str:
        return f"consensus_route:{self.pk}"


class LicenseEnd(models.TextChoices):
    EXPIRED = "expired", _("the passport expired")
    RETESTS = "retests", _("re-tests show that the precision dropped")
    REVOKED = "revoked", _("revoked by a lead")


class LicenseQuerySet(models.QuerySet["MachineLicense"]):
    def active(self) -> "LicenseQuerySet":
        return self.filter(ended_at=None)


class MachineLicense(models.Model):
    """The permission of one machine to count as a label, or to settle traces alone, in one stratum of a project. With
    `route`, it only covers traces on which the second machine of the route names the same first error."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="machine_licenses", db_index=False)
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="licenses", db_index=False)
    passport = models.ForeignKey(MachinePassport, on_delete=models.PROTECT, related_name="licenses")
    route = models.ForeignKey(ConsensusRoute, null=True, on_delete=models.CASCADE, related_name="licenses")
    # The stratum: `machines.license_strata`.
    domain = models.CharField(max_length=100, blank=True)
    shortest = models.PositiveIntegerField()  # steps of a trace
    longest = models.PositiveIntegerField(null=True, blank=True)
    says_error = models.BooleanField()  # whether the machine's label names an error

    may_settle = models.BooleanField()  # otherwise it counts as one label
    promised = models.FloatField()  # precision
    retest_share = models.FloatField()
    # The evidence at the time of the grant.
    agreement = models.FloatField()  # with people, in this stratum: what re-tests are compared with
    lower_bound = models.FloatField(null=True, blank=True)
    n_people = models.PositiveIntegerField()
    n_gold = models.PositiveIntegerField()

    granted_at = models.DateTimeField()
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_because = models.CharField(max_length=8, choices=LicenseEnd, blank=True)

    objects = LicenseQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project", "domain", "shortest", "says_error", "rater"],
                condition=Q(ended_at=None),
                name="a_machine_is_licensed_once_per_stratum",
            ),
            models.CheckConstraint(
                condition=Q(retest_share__gte=0.05, retest_share__lte=1), name="a_license_is_re_tested"
            ),
            models.CheckConstraint(
                condition=Q(may_settle=False) | Q(lower_bound__isnull=False, lower_bound__gte=F("promised")),
                name="a_license_keeps_its_promise",
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None, ended_because="") | Q(ended_at__isnull=False) & ~Q(ended_because=""),
                name="an_ended_license_says_why",
            ),
        ]

    def __str__(self) -> str:
        return f"license {self.pk} of {self.rater_id}"

    @property
    def subject(self) -> str:
        return f"machine_license:{self.pk}"
