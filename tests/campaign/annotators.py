"""Annotators of a simulated campaign who work over HTTP: the same traces, raters and results as in `bench.settling`."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from bench.protection import SimulatedProject, SimulatedRater
from jobs import runner
from jobs.models import Job
from labeling.gold_sets import make_served_gold
from labeling.models import Project, Rater, RaterModelFit, SetAside, Trace
from labeling.models.consensus import FitBasis
from labeling.models.gold import GoldUse
from labeling.quality import project_stats, rater_model, resolve, set_aside
from people.models import Membership
from tests import factories

# As autovacuum does outside of tests: after which refreshes, and the tables that grow.
_ANALYZED_AT = (2, 8)
_TABLES = ("assignment", "submission", "settlement", "firsterrorreport", "stepreview", "judgment", "goldanswer", "step")
_ANALYZE = "ANALYZE " + ", ".join(f"labeling_{table}" for table in _TABLES)


class Campaign:
    """A simulated project on the platform, all settings at their defaults. `course` records what happened: ("label",
    rater, trace), ("settle",), ("set aside", rater) and ("fit",)."""

    def __init__(
        self, folder: Path, simulated: SimulatedProject, people: Sequence[SimulatedRater], *, slug: str
    ) -> None:
        self.folder, self.simulated = folder, simulated
        self.dice = random.Random(simulated.answer_seed)
        self.course: list[tuple[Any, ...]] = []
        self.n_refreshed = 0
        file = folder / f"{slug}.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in map(make_record, *self._list_lengths())))
        call_command("import_traces", str(file), "--project", slug, "--by", factories.make_user().username)
        self.project = Project.objects.get(slug=slug)
        traces = Trace.objects.filter(project=self.project).select_related("problem")
        self.numbers = {trace.pk: read_number(trace.problem.text) for trace in traces}
        for trace in sorted(traces, key=lambda each: self.numbers[each.pk])[-simulated.n_gold :]:
            answer = self.find_answer(self.numbers[trace.pk])
            make_served_gold(
                trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[answer], by=None, now=timezone.now()
            )
        self.people = [Annotator(self, number, rater) for number, rater in enumerate(people)]

    def _list_lengths(self) -> tuple[Sequence[int], Sequence[int]]:
        return range(len(self.simulated.lengths)), self.simulated.lengths.tolist()

    def find_answer(self, number: int) -> int | None:
        truth = int(self.simulated.truth[number])
        return None if truth == self.simulated.lengths[number] else truth

    def refresh(self, *, with_stats: bool) -> None:
        """Do what the worker does every few seconds, jobs included, and perhaps what it does every few minutes."""
        now = timezone.now()
        self._settle()
        self.n_refreshed += 1
        if self.n_refreshed in _ANALYZED_AT:
            with connection.cursor() as cursor:
                cursor.execute(_ANALYZE)
        if with_stats:
            project_stats.mark_stats_stale(project_id=self.project.pk, now=now)
            project_stats.refresh_project_stats(project_id=self.project.pk, now=now)
        self.run_jobs()

    def run_jobs(self) -> None:
        """Set labels aside and fit the raters, if requested."""
        for job in Job.objects.unfinished().filter(kind=set_aside.KIND).order_by("pk"):
            self._settle()
            assert runner.run_job(job.pk, set_aside.chunks) == "done"
            row = SetAside.objects.get(pk=job.arguments["set_aside"])
            self.course.append(("set aside", [each.rater.pk for each in self.people].index(row.rater_id)))
        for job in Job.objects.unfinished().filter(kind=rater_model.KIND):
            fits = RaterModelFit.objects.filter(project=self.project, basis=FitBasis.BLIND)
            before = fits.count()
            assert runner.run_job(job.pk, rater_model.chunks) == "done"
            self.course += [("fit",)] * (fits.count() - before)
            self._settle()

    def _settle(self) -> None:
        resolve.resolve_due_traces(now=timezone.now())
        self.course.append(("settle",))


def make_record(number: int, n_steps: int) -> dict[str, object]:
    steps = [f"Step {step} of {number} follows from what was given." for step in range(n_steps)]
    return {"problem": f"Problem {number}: what is {number} squared?", "steps": steps}


def read_number(problem: str) -> int:
    return int(problem.split()[1].rstrip(":"))


class Annotator:
    """Works like the page: while a trace is open, the next one is held, and a submit opens it and fetches another."""

    def __init__(self, campaign: Campaign, number: int, simulated: SimulatedRater) -> None:
        self.campaign, self.number, self.simulated, self.n_submitted = campaign, number, simulated, 0
        self.shown: dict[str, Any] | None = None
        self.held: dict[str, Any] | None = None
        self.rater: Rater = factories.make_rater(campaign.project)
        self.client = join(campaign.project, self.rater.user, "annotator")

    def work(self) -> bool:
        """Label one trace. Return False if there is none."""
        if self.shown is None:
            self.shown = self._claim(opened=True, shown=[])
            if self.shown is None:
                return False
            self.held = self._claim(opened=False, shown=[self.shown["assignment"]])
        trace, opens = self.shown, self.held and self.held["assignment"]
        own = [trace["assignment"], *([opens] if opens else [])]
        message = {"client": "c1", "writes": self._rate(trace), "opens": opens, "next": {"shown": own}}
        sent = self._post(f"{trace['assignment']}/submit", message)
        assert sent.status_code == 200, sent.content
        answer = sent.json()
        self.shown, self.held = self.held if answer.get("opened") else None, answer["next"]
        self.n_submitted += 1
        return True

    def _rate(self, trace: dict[str, Any]) -> list[dict[str, Any]]:
        number, n_steps = read_number(trace["problem"]["text"]), len(trace["steps"])
        end = self.campaign.simulated.draw_result(self.number, self.simulated, number)
        self.campaign.course.append(("label", self.number, number))
        ratings = [*[1] * end, *[-1] * (end < n_steps)]
        same = {"seen": 0, "kind": "rate", "option": 0, "active_ms": self.campaign.dice.randint(3000, 9000)}
        return [same | {"sequence": step + 1, "step": step, "rating": rating} for step, rating in enumerate(ratings)]

    def _claim(self, *, opened: bool, shown: Sequence[int]) -> dict[str, Any] | None:
        sent = self._post(f"{self.campaign.project.slug}/claim", {"opened": opened, "shown": shown})
        assert sent.status_code in (200, 409), sent.content
        return dict(sent.json()) if sent.status_code == 200 else None

    def _post(self, path: str, content: object) -> Any:
        return self.client.post(f"/work/{path}", json.dumps(content), content_type="application/json")


def join(project: Project, user: Any, role: str) -> Client:
    """Make a user a member, and return a client that is logged in."""
    Membership.objects.create(project=project, user=user, role=role, joined_at=timezone.now())
    client = Client()
    client.force_login(user)
    return client


def set_labels_aside(lead: Client, person: Annotator) -> None:
    address = reverse("dashboard:set_labels_aside", args=[person.campaign.project.slug, person.rater.pk])
    sent = lead.post(address, {"scope": "all", "reason": "paused by the evidence", "confirmed": "1"})
    assert sent.status_code == 302, sent.content
