"""The URLs of settings, jobs, figures and reviews, for `tests.test_permissions`: the method, and the expected status
per user."""

from typing import Any

from jobs.models import Job
from labeling import assignments
from labeling.models import Rater, RaterGroup, SetAside, SteeringRule
from labeling.models.gold import GoldUse
from labeling.projects import lifecycle
from labeling.quality.gold import make_gold
from notices import outbox, subscriptions
from notices.models import NoticeDelivery, Webhook
from tests import factories
from tests.people.personas import Personas
from tests.url_arguments import project_args

NOW = factories.NOW


def answers_for_members(status: int, **others: int) -> dict[str, int]:
    inside = dict.fromkeys(("annotator", "viewer", "engineer", "reviewer", "lead", "owner"), status)
    return {"visitor": 302, "stranger": 404, "neighbour": 404, **inside, **others}


def answers_for_managers(status: int) -> dict[str, int]:
    return answers_for_members(403, lead=status, owner=status)


def answers_for_readers(status: int, **others: int) -> dict[str, int]:
    return answers_for_members(status, annotator=403, **others)


def answers_for_writers(status: int) -> dict[str, int]:
    return answers_for_managers(status) | {"reviewer": status}


def ended_job_args(cast: Personas) -> dict[str, object]:
    times = dict.fromkeys(("asked_at", "started_at", "ended_at"), NOW)
    subject = f"project:{cast.project.pk}"
    job = Job.objects.create(kind="x", subject=subject, state="failed", failure="x", **times)
    return {"slug": cast.project.slug, "job": job.pk}


def guideline_args(cast: Personas) -> dict[str, object]:
    made = lifecycle.publish_guideline(project=cast.project, body="Read.", by=None, now=NOW)
    return {"slug": cast.project.slug, "version": made.version}


def rule_args(cast: Personas) -> dict[str, object]:
    rule = SteeringRule.objects.create(project=cast.project, made_at=NOW)
    return {"slug": cast.project.slug, "rule": rule.pk}


def group_args(cast: Personas) -> dict[str, object]:
    group = RaterGroup.objects.create(project=cast.project, name="Geometry", made_at=NOW)
    return {"slug": cast.project.slug, "group": group.pk}


def rater_args(cast: Personas) -> dict[str, object]:
    return {"slug": cast.project.slug, "rater": Rater.objects.get(project=cast.project, user=cast.annotator).pk}


def set_aside_args(cast: Personas) -> dict[str, object]:
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    made = SetAside.objects.create(project=cast.project, rater=rater, until_at=NOW, made_at=NOW, reason="x")
    return {"slug": cast.project.slug, "set_aside_id": made.pk}


def submission_args(cast: Personas) -> dict[str, object]:
    rater = Rater.objects.get(project=cast.project, user=cast.annotator)
    assignment = factories.make_assignment(rater, factories.make_trace(cast.project))
    assignments.give_up(assignment_id=assignment.pk, rater_id=rater.pk, client="test", reason="x", by=None, now=NOW)
    return {"slug": cast.project.slug, "assignment": assignment.pk}


def gold_args(cast: Personas) -> dict[str, object]:
    trace = factories.make_trace(cast.project)
    made = make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[0], by=None, now=NOW)
    return {"slug": cast.project.slug, "gold": made.pk}


def webhook_args(cast: Personas) -> dict[str, object]:
    made, _ = subscriptions.create_webhook(
        project=cast.project, address="http://127.0.0.1:9/", kinds=["import.done"], by=cast.lead, now=NOW
    )
    return {"slug": cast.project.slug, "webhook": made.pk}


def failed_delivery_args(cast: Personas) -> dict[str, object]:
    webhook = Webhook.objects.get(pk=str(webhook_args(cast)["webhook"]))
    made = outbox.send_test(webhook=webhook, by=cast.lead, now=NOW)
    NoticeDelivery.objects.update(state="failed", next_attempt_at=None, ended_at=NOW)
    return {"slug": cast.project.slug, "delivery": made.pk}


DASHBOARD_URL_CASES: dict[str, tuple[Any, ...]] = {
    "dashboard:settings": ("get", answers_for_readers(200), project_args),
    "dashboard:edit_overlap": ("post", answers_for_managers(422), project_args),
    "dashboard:guideline": ("get", answers_for_readers(200), project_args),
    "dashboard:rating_rules": ("get", answers_for_readers(200), project_args),
    "dashboard:trace_questions": ("get", answers_for_readers(200), project_args),
    "dashboard:notices": ("get", answers_for_managers(200), project_args),
    "dashboard:choose_mail": ("post", answers_for_managers(302), project_args, {"mail": "import.done"}),
    "dashboard:create_webhook": ("post", answers_for_managers(422), project_args),
    "dashboard:test_webhook": ("post", answers_for_managers(302), webhook_args),
    "dashboard:delete_webhook": ("post", answers_for_managers(302), webhook_args),
    "dashboard:send_notice_again": ("post", answers_for_managers(302), failed_delivery_args),
    "dashboard:save_consent_text": ("post", answers_for_managers(302), project_args, {"body": "Yes?"}),
    "dashboard:guideline_version": ("get", answers_for_readers(200), guideline_args),
    "dashboard:lifecycle": ("get", answers_for_managers(200), project_args),
    "dashboard:create_project_clone": (
        "post",
        answers_for_members(403, lead=302, owner=302),
        project_args,
        {"name": "Sums 2", "slug": "sums-2"},
    ),
    "dashboard:pause_project": ("post", answers_for_managers(302), project_args),
    "dashboard:resume_project": ("post", answers_for_managers(302), project_args),
    "dashboard:close_project": ("post", answers_for_members(403, owner=302), project_args),
    "dashboard:archive_project": ("post", answers_for_members(403, owner=302), project_args),
    "dashboard:jobs": ("get", answers_for_readers(200), project_args),
    "dashboard:retry_job": ("post", answers_for_readers(302, reviewer=403, viewer=403), ended_job_args),
    "dashboard:cancel_job": ("post", answers_for_readers(302, reviewer=403, viewer=403), ended_job_args),
    "dashboard:overview": ("get", answers_for_readers(200), project_args),
    "dashboard:annotators": ("get", answers_for_readers(200), project_args),
    "dashboard:annotator": ("get", answers_for_readers(200), rater_args),
    "dashboard:change_traces": ("post", answers_for_readers(302), project_args, {"action": "export"}),
    "dashboard:groups": ("get", answers_for_managers(200), project_args),
    "dashboard:save_group": ("post", answers_for_managers(302), project_args, {"name": "Geometry"}),
    "dashboard:delete_group": ("post", answers_for_managers(302), group_args),
    "dashboard:make_steering_rule": ("post", answers_for_managers(302), project_args, {"percent": "10"}),
    "dashboard:stop_steering_rule": ("post", answers_for_managers(302), rule_args),
    "dashboard:pay": ("get", answers_for_managers(200), project_args),
    "dashboard:set_budget": ("post", answers_for_managers(302), project_args, {"amount": ""}),
    "dashboard:pause_annotator": ("post", answers_for_managers(302), rater_args, {"reason": "See me."}),
    "dashboard:resume_annotator": ("post", answers_for_managers(302), rater_args),
    "dashboard:retrain_annotator": ("post", answers_for_managers(302), rater_args),
    "dashboard:set_labels_aside": ("get", answers_for_managers(200), rater_args),
    "dashboard:undo_set_aside": ("post", answers_for_managers(302), set_aside_args),
    "dashboard:messages": ("get", answers_for_writers(200), project_args),
    "dashboard:send_message_to_all": ("post", answers_for_writers(302), project_args, {"text": "Welcome."}),
    "dashboard:thread": ("get", answers_for_writers(200), rater_args),
    "dashboard:send_message": ("post", answers_for_writers(302), rater_args, {"text": "Welcome."}),
    "dashboard:mark_answers_seen": ("post", answers_for_writers(302), rater_args),
    "dashboard:agreement": ("get", answers_for_readers(200), project_args),
    "dashboard:clauses": ("get", answers_for_readers(200), project_args),
    "dashboard:gold": ("get", answers_for_readers(200, engineer=403, viewer=403), project_args),
    "dashboard:screening_set": ("get", answers_for_readers(200, engineer=403, viewer=403), project_args),
    "dashboard:adopt_screening_set": ("post", answers_for_readers(422, engineer=403, viewer=403), project_args),
    "dashboard:gold_trace": ("get", answers_for_readers(200, engineer=403, viewer=403), gold_args),
    "dashboard:correct_gold_trace": (
        "post",
        answers_for_readers(302, engineer=403, viewer=403),
        gold_args,
        {"accepted_first_errors": ["none"]},
    ),
    "dashboard:retire_gold_trace": ("post", answers_for_readers(302, engineer=403, viewer=403), gold_args),
    "dashboard:submission": ("get", answers_for_readers(200), submission_args),
    "dashboard:create_correction_request": (
        "post",
        answers_for_readers(302, engineer=403, viewer=403),
        submission_args,
        {"note": "Step 2?"},
    ),
}
