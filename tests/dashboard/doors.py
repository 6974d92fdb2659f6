"""The addresses of settings, jobs, figures and reviews, for the walk of `tests.test_permissions`: how each is asked,
and by whom."""

from typing import Any

from jobs.models import Job
from labeling import judging, projects, quality
from labeling.models import Rater
from labeling.models.quality import GoldUse
from tests import factories
from tests.arguments import in_project
from tests.people.cast import Cast

NOW = factories.NOW


def members(status: int, **others: int) -> dict[str, int]:
    inside = dict.fromkeys(("annotator", "engineer", "reviewer", "lead", "owner"), status)
    return {"visitor": 302, "stranger": 404, "neighbour": 404, **inside, **others}


def managers(status: int) -> dict[str, int]:
    return members(403, lead=status, owner=status)


def readers(status: int, **others: int) -> dict[str, int]:
    return members(status, annotator=403, **others)


def of_ended_job(cast: Cast) -> dict[str, object]:
    times = dict.fromkeys(("asked_at", "started_at", "ended_at"), NOW)
    subject = f"project:{cast.project.pk}"
    job = Job.objects.create(kind="x", subject=subject, state="failed", failure="x", **times)
    return {"slug": cast.project.slug, "job": job.pk}


def of_guideline(cast: Cast) -> dict[str, object]:
    made = projects.publish_guideline(project=cast.project, body="Read.", by=None, now=NOW)
    return {"slug": cast.project.slug, "version": made.version}


def of_rater(cast: Cast) -> dict[str, object]:
    return {"slug": cast.project.slug, "rater": Rater.objects.get(project=cast.project, user=cast.annotator).pk}


def of_submission(cast: Cast) -> dict[str, object]:
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    assignment = factories.make_assignment(rater, factories.make_trace(cast.project))
    judging.give_up(assignment_id=assignment.pk, rater_id=rater.pk, client="test", reason="x", by=None, now=NOW)
    return {"slug": cast.project.slug, "assignment": assignment.pk}


def of_gold(cast: Cast) -> dict[str, object]:
    trace = factories.make_trace(cast.project)
    made = quality.make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
    return {"slug": cast.project.slug, "gold": made.pk}


DOORS: dict[str, tuple[Any, ...]] = {
    "dashboard:settings": ("get", managers(200), in_project),
    "dashboard:reading": ("post", managers(422), in_project),
    "dashboard:guideline": ("get", managers(200), in_project),
    "dashboard:consent": ("post", managers(302), in_project, {"body": "Yes?"}),
    "dashboard:guideline_version": ("get", readers(200), of_guideline),
    "dashboard:life": ("get", managers(200), in_project),
    "dashboard:clone": ("post", members(403, owner=302), in_project, {"name": "Sums 2", "slug": "sums-2"}),
    "dashboard:pause_project": ("post", managers(302), in_project),
    "dashboard:resume_project": ("post", managers(302), in_project),
    "dashboard:close_project": ("post", members(403, owner=302), in_project),
    "dashboard:archive_project": ("post", members(403, owner=302), in_project),
    "dashboard:jobs": ("get", readers(200), in_project),
    "dashboard:retry_job": ("post", readers(302, reviewer=403), of_ended_job),
    "dashboard:cancel_job": ("post", readers(302, reviewer=403), of_ended_job),
    "dashboard:overview": ("get", readers(200), in_project),
    "dashboard:annotators": ("get", managers(200), in_project),
    "dashboard:annotator": ("get", managers(200), of_rater),
    "dashboard:pause_rater": ("post", managers(302), of_rater, {"reason": "See me."}),
    "dashboard:resume_rater": ("post", managers(302), of_rater),
    "dashboard:train_again": ("post", managers(302), of_rater),
    "dashboard:messages": ("get", managers(200), in_project),
    "dashboard:write_to_all": ("post", managers(302), in_project, {"text": "Welcome."}),
    "dashboard:thread": ("get", managers(200), of_rater),
    "dashboard:write_message": ("post", managers(302), of_rater, {"text": "Welcome."}),
    "dashboard:see_answers": ("post", managers(302), of_rater),
    "dashboard:agreement": ("get", readers(200), in_project),
    "dashboard:gold": ("get", readers(200, engineer=403), in_project),
    "dashboard:screening_set": ("get", readers(200, engineer=403), in_project),
    "dashboard:take_screening_set": ("post", readers(422, engineer=403), in_project),
    "dashboard:gold_one": ("get", readers(200, engineer=403), of_gold),
    "dashboard:correct_gold": ("post", readers(302, engineer=403), of_gold, {"accepted_first_errors": ["none"]}),
    "dashboard:retire_gold": ("post", readers(302, engineer=403), of_gold),
    "dashboard:review": ("get", readers(200), of_submission),
    "dashboard:ask_correction": ("post", readers(302, engineer=403), of_submission, {"note": "Step 2?"}),
}
