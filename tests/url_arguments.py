"""URL arguments, and the rows they refer to, for `tests.test_permissions`."""

from typing import Protocol

from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.mfa.webauthn.internal.auth import WebAuthn
from django.utils import timezone

from accounts import tokens
from accounts.models import User
from jobs.models import Job
from labeling import assignments, queue
from labeling.models import Option, Project, Rater, Trace
from labeling.models.gold import GoldUse
from labeling.projects import lifecycle
from labeling.quality.adjudication import decide_trace
from labeling.quality.gold import make_gold, retire_gold
from labeling.traces import import_job
from people import member_messages, members
from people.models import Membership, WorkerDevice, WorkerId
from tests import factories
from tests.labeling.quality import submitted_work


class UrlPersonas(Protocol):
    """The people who send requests, and their project."""

    @property
    def project(self) -> Project: ...
    @property
    def lead(self) -> User: ...
    @property
    def owner(self) -> User: ...
    @property
    def engineer(self) -> User: ...
    @property
    def annotator(self) -> User: ...


def project_args(cast: UrlPersonas) -> dict[str, object]:
    return {"slug": cast.project.slug}


def trace_args(cast: UrlPersonas) -> dict[str, object]:
    return {"slug": cast.project.slug, "trace": factories.make_trace(cast.project).pk}


def project_image_args(cast: UrlPersonas) -> dict[str, object]:
    return {"slug": cast.project.slug, **image_args(cast)}


def open_assignment_args(cast: UrlPersonas) -> dict[str, object]:
    return {"slug": cast.project.slug, **assignment_in_progress_args(cast)}


def assignment_in_progress_args(cast: UrlPersonas) -> dict[str, object]:
    """Create an open assignment of the annotator."""
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    return {"assignment": factories.make_assignment(rater, factories.make_trace(cast.project)).pk}


def submitted_args(cast: UrlPersonas) -> dict[str, object]:
    """Create a submitted assignment of the annotator."""
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    trace = factories.make_trace(cast.project)
    return {"assignment": factories.make_submitted(rater, trace).pk}


def message_args(cast: UrlPersonas) -> dict[str, object]:
    """Create a message from a lead to the annotator."""
    membership = members.get_membership(project=cast.project, user=cast.annotator)
    return {
        "message": member_messages.send_message(
            membership=membership, text="Welcome.", by=cast.lead, now=factories.NOW
        ).pk
    }


def question_args(cast: UrlPersonas) -> dict[str, object]:
    """Create a question of the annotator about a trace."""
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    assignment = factories.make_assignment(rater, factories.make_trace(cast.project))
    membership = members.get_membership(project=cast.project, user=cast.annotator)
    member_messages.ask_leads(
        membership=membership, trace=assignment.trace, step=0, text="Why?", by=cast.annotator, now=factories.NOW
    )
    return {"slug": cast.project.slug, "trace": assignment.trace_id, "rater": rater.pk}


def answered_question_args(cast: UrlPersonas) -> dict[str, object]:
    """Create a lead's answer to a question of the annotator."""
    trace = Trace.objects.get(pk=str(question_args(cast)["trace"]))
    membership = members.get_membership(project=cast.project, user=cast.annotator)
    answer = member_messages.send_message(
        membership=membership, trace=trace, step=0, text="Because.", by=cast.lead, now=factories.NOW
    )
    return {"message": answer.pk}


def retired_gold_args(cast: UrlPersonas) -> dict[str, object]:
    """Create hidden gold that the annotator has answered, and that was retired."""
    Project.objects.filter(pk=cast.project.pk).update(shows_retired_gold=True, correction_days=0)
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    trace = factories.make_trace(cast.project)
    gold = make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=factories.NOW)
    assignment = submitted_work.submit_trace(rater, trace, [-1], purpose="gold")
    retire_gold(gold=gold, by=None, now=factories.NOW)
    return {"assignment": assignment.pk}


def image_args(cast: UrlPersonas) -> dict[str, object]:
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    trace = factories.make_trace(cast.project)
    factories.make_assignment(rater, trace)
    option = Option.objects.get(step__trace=trace, step__position=0)
    image = factories.make_image_part(option).image
    assert image is not None
    return {"image": image.digest}


def training_args(cast: UrlPersonas) -> dict[str, object]:
    """Create a training trace that the annotator has submitted, with its feedback."""
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    trace = factories.make_trace(cast.project)
    make_gold(trace=trace, use=GoldUse.TRAINING, accepted_first_errors=[0], by=None, now=factories.NOW)
    Rater.objects.filter(pk=rater.pk).update(stage="training")
    assignment = factories.make_assignment(rater, trace, purpose="training")
    assignments.give_up(
        assignment_id=assignment.pk, rater_id=rater.pk, client="test", reason="x", by=None, now=factories.NOW
    )
    return {"assignment": assignment.pk}


def guideline_args(cast: UrlPersonas) -> dict[str, object]:
    lifecycle.publish_guideline(project=cast.project, body="Be fair.", by=cast.lead, now=factories.NOW)
    return project_args(cast)


def consent_args(cast: UrlPersonas) -> dict[str, object]:
    lifecycle.publish_consent_text(project=cast.project, body="Yes?", by=cast.lead, now=factories.NOW)
    return project_args(cast)


def job_args(cast: UrlPersonas) -> dict[str, object]:
    return {"slug": cast.project.slug, "job": 1}


def snapshot_args(cast: UrlPersonas) -> dict[str, object]:
    return {"slug": cast.project.slug, "name": "night-7"}


def snapshot_file_args(cast: UrlPersonas) -> dict[str, object]:
    return {**snapshot_args(cast), "file": "README.md"}


def api_token_args(cast: UrlPersonas) -> dict[str, object]:
    """Create an API token of the engineer."""
    token, _ = tokens.create_api_token(user=cast.engineer, name="CI", scopes=["read"], lasts=None, now=factories.NOW)
    return {"token": token.pk}


def authenticator_app_args(cast: UrlPersonas) -> dict[str, object]:
    """Give the lead an authenticator app."""
    TOTP.activate(cast.lead, generate_totp_secret())
    return {}


def passkey_args(cast: UrlPersonas) -> dict[str, object]:
    """Give the lead a passkey."""
    return {"pk": WebAuthn.add(cast.lead, "Key", {}).instance.pk}


def member_with_app_args(cast: UrlPersonas) -> dict[str, object]:
    """Give a member an authenticator app."""
    TOTP.activate(cast.annotator, generate_totp_secret())
    membership = members.get_membership(project=cast.project, user=cast.annotator)
    return {"slug": cast.project.slug, "member": membership.pk}


def spent_token_args(cast: UrlPersonas) -> dict[str, object]:
    return {"token": "never-one"}


def contested_trace_args(cast: UrlPersonas) -> dict[str, object]:
    """Create a trace with two conflicting submissions."""
    trace = factories.make_trace(cast.project)
    for first_error in (0, None):
        rater = factories.make_rater(cast.project)
        submitted_work.submit_trace(rater, trace, [-1] if first_error == 0 else [1] * trace.steps.count())
    return {"slug": cast.project.slug, "trace": trace.pk}


def decided_trace_args(cast: UrlPersonas) -> dict[str, object]:
    arguments = contested_trace_args(cast)
    trace = Trace.objects.get(pk=str(arguments["trace"]))
    queue.enqueue(project_id=trace.project_id, arm="uniform", trace_ids=[trace.pk], slots=2, now=factories.NOW)
    decide_trace(trace_id=trace.pk, first_error=None, by=cast.owner, now=factories.NOW)
    return arguments


def import_args(cast: UrlPersonas) -> dict[str, object]:
    """Create a failed import job, so that no worker is needed."""
    job = Job.objects.create(
        kind=import_job.KIND,
        subject=f"project:{cast.project.pk}",
        arguments={"project": cast.project.pk, "source": 0, "path": "none"},
        state="failed",
        failure="x",
        asked_at=factories.NOW,
        ended_at=factories.NOW,
    )
    return {"slug": cast.project.slug, "job": job.pk}


def source_args(cast: UrlPersonas) -> dict[str, object]:
    return {"slug": cast.project.slug, "source": factories.make_source(cast.project).pk}


def waiting_device_args(cast: UrlPersonas) -> dict[str, object]:
    worker = WorkerId.objects.create(
        project=cast.project,
        user=cast.annotator,
        worker="5f3a",
        first_came_at=factories.NOW,
        last_came_at=factories.NOW,
    )
    member = Membership.objects.get(project=cast.project, user=cast.annotator)
    device = WorkerDevice.objects.create(worker=worker, digest="d", came_at=factories.NOW)
    return {"slug": cast.project.slug, "member": member.pk, "device": device.pk}


def project_token_args(cast: UrlPersonas) -> dict[str, object]:
    token, _ = tokens.create_api_token(
        user=cast.engineer, name="CI", scopes=["read"], lasts=None, now=timezone.now(), project_id=cast.project.pk
    )
    return {"slug": cast.project.slug, "token": token.pk}
