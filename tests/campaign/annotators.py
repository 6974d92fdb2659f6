"""Annotators of known quality who work over HTTP, on a project whose answers the test knows."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs import runner
from jobs.models import Job
from labeling.gold_sets import make_served_gold
from labeling.models import Project, Rater, Trace
from labeling.models.gold import GoldUse
from labeling.quality import project_stats, rater_model, resolve, set_aside
from people.models import Membership
from tests import factories

ERROR_SHARE = 0.67
# The result of a trace, from its first error (None without one) and its number of steps.
Judge = Callable[[int | None, int], int | None]


class Campaign:
    """A project with imported traces and hidden gold, all settings at their defaults."""

    def __init__(self, folder: Path, *, traces: int, gold: int, seed: int, slug: str = "olymp") -> None:
        self.dice, self.folder = random.Random(seed), folder
        self.answers: dict[str, int | None] = {}
        records = [self._make_record(number) for number in range(traces + gold)]
        file = folder / "traces.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
        call_command("import_traces", str(file), "--project", slug, "--by", factories.make_user().username)
        self.project = Project.objects.get(slug=slug)
        for trace in Trace.objects.filter(project=self.project).select_related("problem").order_by("pk")[:gold]:
            answer = self.answers[trace.problem.text]
            make_served_gold(
                trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[answer], by=None, now=timezone.now()
            )

    def _make_record(self, number: int) -> dict[str, object]:
        problem, n_steps = f"Problem number {number}: what is {number} squared?", self.dice.randint(3, 10)
        has_error = self.dice.random() < ERROR_SHARE
        self.answers[problem] = self.dice.randrange(n_steps) if has_error else None
        steps = [f"Step {step} of {number} follows from what was given." for step in range(n_steps)]
        return {"problem": problem, "steps": steps}

    def hire(self, judge: Judge) -> "Annotator":
        return Annotator(self, judge)

    def refresh(self) -> None:
        """Do what the worker does every few seconds, jobs included."""
        now = timezone.now()
        resolve.resolve_due_traces(now=now)
        project_stats.mark_stats_stale(project_id=self.project.pk, now=now)
        project_stats.refresh_project_stats(project_id=self.project.pk, now=now)
        for module in (set_aside, rater_model):
            for job in Job.objects.unfinished().filter(kind=module.KIND):
                runner.run_job(job.pk, module.chunks)
        resolve.resolve_due_traces(now=now)


class Annotator:
    def __init__(self, campaign: Campaign, judge: Judge) -> None:
        self.campaign, self.judge, self.n_submitted = campaign, judge, 0
        self.rater: Rater = factories.make_rater(campaign.project)
        assert self.rater.user is not None
        Membership.objects.create(
            project=campaign.project, user=self.rater.user, role="annotator", joined_at=timezone.now()
        )
        self.client = Client()
        self.client.force_login(self.rater.user)

    def work(self) -> int:
        """Label one trace. Return the status of the claim."""
        claim = self._post(f"{self.campaign.project.slug}/claim", {"opened": True})
        if claim.status_code != 200:
            return int(claim.status_code)
        trace = claim.json()
        n_steps = len(trace["steps"])
        end = self.judge(self.campaign.answers[trace["problem"]["text"]], n_steps)
        ratings = [1] * n_steps if end is None else [*[1] * end, -1]
        writes = [
            {
                "sequence": step + 1,
                "seen": 0,
                "kind": "rate",
                "step": step,
                "option": 0,
                "rating": rating,
                "active_ms": self.campaign.dice.randint(3000, 9000),
            }
            for step, rating in enumerate(ratings)
        ]
        sent = self._post(f"{trace['assignment']}/submit", {"client": "c1", "writes": writes})
        assert sent.status_code == 200, sent.content
        self.n_submitted += 1
        return 200

    def _post(self, path: str, content: object) -> Any:
        return self.client.post(f"/work/{path}", json.dumps(content), content_type="application/json")


def all_positive(_answer: int | None, _n_steps: int) -> int | None:
    return None


def finds(share: float, dice: random.Random) -> Judge:
    """Return an annotator who finds this share of the errors, and never reports an error elsewhere."""
    return lambda answer, _n_steps: answer if dice.random() < share else None


def honest(accuracy: float, dice: random.Random) -> Judge:
    """Return an annotator with this share of right results. For half of the missed errors they report no error at
    all."""

    def judge(answer: int | None, n_steps: int) -> int | None:
        if dice.random() < accuracy:
            return answer
        if answer is not None and dice.random() < 0.5:
            return None
        return dice.choice([step for step in range(n_steps) if step != answer])

    return judge


def draw_honest(campaign: Campaign, n: int) -> Sequence[Judge]:
    return [honest(campaign.dice.uniform(0.65, 0.95), campaign.dice) for _ in range(n)]


def hire_lead(campaign: Campaign) -> Client:
    lead = factories.make_user()
    Membership.objects.create(project=campaign.project, user=lead, role="lead", joined_at=timezone.now())
    client = Client()
    client.force_login(lead)
    return client


def set_labels_aside(lead: Client, person: Annotator) -> None:
    address = reverse("dashboard:set_labels_aside", args=[person.campaign.project.slug, person.rater.pk])
    sent = lead.post(address, {"scope": "all", "reason": "paused by the evidence", "confirmed": "1"})
    assert sent.status_code == 302, sent.content
