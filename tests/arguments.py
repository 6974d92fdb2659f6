"""What addresses of pages name, made for the walk of `tests.test_permissions` through all of them."""

from typing import Protocol

from accounts import api_tokens
from accounts.models import User
from jobs.models import Job
from labeling import judging, projects, quality
from labeling.importing import bringing
from labeling.models import Option, Part, Project, Rater
from labeling.models.quality import GoldUse
from people import members, messaging
from tests import factories
from tests.labeling.quality import scene


class Cast(Protocol):
    """Those who walk, and where."""

    @property
    def project(self) -> Project: ...
    @property
    def lead(self) -> User: ...
    @property
    def engineer(self) -> User: ...
    @property
    def annotator(self) -> User: ...


def in_project(cast: Cast) -> dict[str, object]:
    return {"slug": cast.project.slug}


def of_trace(cast: Cast) -> dict[str, object]:
    return {"slug": cast.project.slug, "trace": factories.make_trace(cast.project).pk}


def image_in_project(cast: Cast) -> dict[str, object]:
    return {"slug": cast.project.slug, **image(cast)}


def of_open_assignment(cast: Cast) -> dict[str, object]:
    return {"slug": cast.project.slug, **in_hand(cast)}


def in_hand(cast: Cast) -> dict[str, object]:
    """A trace that the annotator is at work on."""
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    return {"assignment": factories.make_assignment(rater, factories.make_trace(cast.project)).pk}


def submitted(cast: Cast) -> dict[str, object]:
    """A trace that the annotator has submitted."""
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    trace = factories.make_trace(cast.project)
    return {"assignment": factories.make_submitted(rater, trace).pk}


def written(cast: Cast) -> dict[str, object]:
    """A message that a lead wrote to the annotator."""
    theirs = members.find(project=cast.project, user=cast.annotator)
    return {"message": messaging.write(membership=theirs, text="Welcome.", by=cast.lead, now=factories.NOW).pk}


def image(cast: Cast) -> dict[str, object]:
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    trace = factories.make_trace(cast.project)
    factories.make_assignment(rater, trace)
    option = Option.objects.get(step__trace=trace, step__position=0)
    part = Part.objects.create(option=option, position=0, kind="image", media_type="image/png", data=b"png")
    return {"part": part.pk}


def trained(cast: Cast) -> dict[str, object]:
    """A training trace that the annotator has submitted: its answer is there."""
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    trace = factories.make_trace(cast.project)
    quality.make_gold(trace=trace, use=GoldUse.TRAINING, accepted_first_errors=[0], by=None, now=factories.NOW)
    Rater.objects.filter(pk=rater.pk).update(stage="training")
    assignment = factories.make_assignment(rater, trace, purpose="training")
    judging.give_up(
        assignment_id=assignment.pk, rater_id=rater.pk, client="test", reason="x", by=None, now=factories.NOW
    )
    return {"assignment": assignment.pk}


def guided(cast: Cast) -> dict[str, object]:
    projects.publish_guideline(project=cast.project, body="Be fair.", by=cast.lead, now=factories.NOW)
    return in_project(cast)


def consenting(cast: Cast) -> dict[str, object]:
    projects.publish_consent_text(project=cast.project, body="Yes?", by=cast.lead, now=factories.NOW)
    return in_project(cast)


def of_job(cast: Cast) -> dict[str, object]:
    return {"slug": cast.project.slug, "job": 1}


def named_snapshot(cast: Cast) -> dict[str, object]:
    return {"slug": cast.project.slug, "name": "night-7"}


def file_of_snapshot(cast: Cast) -> dict[str, object]:
    return {**named_snapshot(cast), "file": "README.md"}


def of_program(cast: Cast) -> dict[str, object]:
    """A token that the engineer made."""
    token, _ = api_tokens.make(user=cast.engineer, name="CI", scopes=["read"], lasts=None, now=factories.NOW)
    return {"token": token.pk}


def spent_token(cast: Cast) -> dict[str, object]:
    return {"token": "never-one"}


def contested(cast: Cast) -> dict[str, object]:
    """A trace that two readings of the project see otherwise."""
    trace = factories.make_trace(cast.project)
    for first_error in (0, None):
        rater = factories.make_rater(cast.project)
        scene.submit(rater, trace, [-1] if first_error == 0 else [1] * trace.steps.count())
    return {"slug": cast.project.slug, "trace": trace.pk}


def of_import(cast: Cast) -> dict[str, object]:
    """A job that has failed, so that nothing of it need be running."""
    job = Job.objects.create(
        kind=bringing.KIND,
        subject=f"project:{cast.project.pk}",
        arguments={"project": cast.project.pk, "source": 0, "path": "none"},
        state="failed",
        failure="x",
        asked_at=factories.NOW,
        ended_at=factories.NOW,
    )
    return {"slug": cast.project.slug, "job": job.pk}


def of_source(cast: Cast) -> dict[str, object]:
    return {"slug": cast.project.slug, "source": factories.make_source(cast.project).pk}
