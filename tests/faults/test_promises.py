"""One rater with two devices, while the server is killed, the network fails and pages are closed: every trace ends as
the rater confirmed it on one of the devices, with each text as typed, or the rater gets a notice. Nothing else is
submitted.

`FAULT_SUBMITS=100 FAULT_SEED=7` sets how many endings are confirmed, and the random moments."""

import os
import random
import socket
from collections.abc import Callable
from contextlib import suppress
from pprint import pformat
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Error

from accounts.models import User
from events.models import Event
from labeling.models import Assignment, Judgment, Project, RatingEdit, StepReview, Submission, TraceAnswer
from labeling.projects import lifecycle, trace_questions
from labeling.projects.trace_questions import QuestionChoice, QuestionKind, TraceQuestion
from people.models import Membership
from tests import factories, servers
from tests.faults.browser_raters import FaultInjector, KillableServer, logged_in_context
from tests.faults.devices import Confirmed, Device, Shown
from tests.faults.test_browser import SEED, browser, server

__all__ = ["browser", "server"]  # fixtures
pytestmark = [pytest.mark.fault, pytest.mark.django_db(transaction=True)]
SUBMITS = int(os.environ.get("FAULT_SUBMITS", "16"))
RATINGS_PER_SUBMIT = 5
STEPS = 6
Cells = dict[str, dict[str, Any]]
EMPTY = {
    "rating": None,
    "flagged": False,
    "category": "",
    "severity": None,
    **dict.fromkeys(("comment", "reason", "written", "missing", "clauses", "answers"), ""),
}
WHOLE_TRACE = "-1.9"  # the cell of the answers to questions
POLICY = "# Policy\n\n## One\n\nThis.\n\n## Two\n\nThat.\n\n## Three\n\nElse.\n"
YES_NO = (QuestionChoice("yes", "Yes"), QuestionChoice("no", "No"))
QUESTIONS = (
    TraceQuestion("verdict", "Is it right?", choices=YES_NO, is_required=False),
    TraceQuestion("note", "What is remarkable?", QuestionKind.TEXT, is_required=False),
)


def make_work(traces: int) -> tuple[Project, User]:
    asks: dict[str, Any] = {
        "asks_error_category": True,
        "takes_several_kinds": True,
        "asks_severity": True,
        "asks_reason": True,
        "asks_corrected_step": True,
        "asks_omissions": True,
        "asks_clauses": "optional",
        "trace_questions": trace_questions.store_questions(QUESTIONS),
    }
    with transaction.atomic():
        project = factories.make_project(overlap=1, skip_limit_per_day=1000, **asks)
        lane = factories.make_lane(project)
        for _ in range(traces):
            factories.make_entry(lane, factories.make_trace(project, [f"Step {n}." for n in range(STEPS)]))
        user = factories.make_user()
        guideline = lifecycle.publish_guideline(project=project, body=POLICY, by=None, now=timezone.now())
        factories.make_rater(project, user, read_guideline=guideline)
        Membership.objects.create(project=project, user=user, role="annotator", joined_at=timezone.now())
    return project, user


class TwoDevices:
    """A person who alternates between two devices, or two tabs of one browser, and the faults in the meantime."""

    def __init__(
        self, server: KillableServer, contexts: list[BrowserContext], slug: str, chance: random.Random
    ) -> None:
        self.server, self.chance = server, chance
        self.faults = FaultInjector(server, chance, every=40)
        self.faults.contexts = contexts
        self.devices: list[Device] = []
        for number, context in enumerate(contexts):
            self.devices.append(Device(number, context, slug, chance, self.end_faults))
        self.device = self.devices[0]

    def end_faults(self) -> None:
        self.faults.end_faults()
        servers.wait_until(self._is_answering, what="the web server")
        for device in self.devices:
            with suppress(Error):  # the page is being loaded
                device.page.evaluate("dispatchEvent(new Event('online'))")

    def _is_answering(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.server.port), timeout=1):
            return True
        return False

    def confirmed(self) -> list[Confirmed]:
        return [each for device in self.devices for each in device.confirmed]

    def ratings(self) -> int:
        return sum(device.ratings for device in self.devices)

    def act(self) -> None:
        self.faults()
        if self.chance.random() < 0.12:
            self.device = self.chance.choice(self.devices)
        device = self.device
        shown = device.shown()
        device.note_return()
        if shown["assignment"] is None or shown["isDead"]:
            self._go_on(device, shown)
        else:
            self._choose(device, shown)

    def _go_on(self, device: Device, shown: Shown) -> None:
        if shown["isDead"]:
            device.click("[data-notice=submitted] button", nth=0 if self.chance.random() < 0.2 else -1)
            device.wait_for(lambda now: not now["isDead"], within=2_000)
        elif not device.wait_for(lambda now: bool(now["assignment"]), within=1_000):
            self.end_faults()
            if not device.wait_for(lambda now: bool(now["assignment"]), within=8_000):
                device.open()  # such as the history, after a correction

    def _choose(self, device: Device, shown: Shown) -> None:
        chance = self.chance.random()
        steps: list[tuple[float, Callable[[], Any]]] = [
            (0.015, device.close),
            (0.015, device.open),
            (0.04, device.comment),
            (0.03, device.cite),
            (0.03, device.answer_question),
            (0.04, device.undo),
            (0.03, lambda: device.press("k")),
            (0.01, lambda: device.press("u")),
            (0.01, device.edit),
            (0.01, lambda: device.confirm(self.chance.choice(["skip", "give_up"]))),
        ]
        if shown["boxes"]:
            closes = self.chance.random() < 0.3
            steps.append((0.1, lambda: device.choose(self.chance.choice(shown["boxes"]))))
            steps.append((0.2, lambda: device.explain(self.chance.choice(shown["boxes"]), closes=closes)))
        if shown["canSubmit"]:
            steps.append((0.7, lambda: self._submit(device)))
        for share, step in steps:
            if chance < share:
                step()
                return
            chance -= share
        device.rate()

    def _submit(self, device: Device) -> None:
        device.confirm(closes=self.chance.random() < 0.15)
        if self.chance.random() < 0.15:
            device.undo()


@pytest.mark.parametrize("is_one_browser", [False, True], ids=["two_browsers", "two_tabs"])
def test_each_trace_ends_as_the_person_confirmed(
    is_one_browser: bool, server: KillableServer, browser: Browser
) -> None:
    project, user = make_work(SUBMITS * 2 + 20)
    contexts = [logged_in_context(browser, server, user) for _ in range(1 if is_one_browser else 2)]
    person = TwoDevices(server, contexts * (2 if is_one_browser else 1), project.slug, random.Random(SEED + 2))
    while len(person.confirmed()) < SUBMITS or person.ratings() < SUBMITS * RATINGS_PER_SUBMIT:
        person.act()
    person.end_faults()
    last = [device.settle() for device in person.devices]
    assert (person.faults.kills, person.faults.cuts) > (0, 0)
    for device in person.devices:
        device.note_return()
    lost_drafts = [lost for device in person.devices for lost in device.lost_drafts]
    wrong = (lost_drafts, find_unkept_promises(person), find_unmeant_submissions(person))
    assert not any(wrong), pformat(wrong, width=160)
    for shown in last:
        if shown["assignment"] and not shown["isDead"]:
            stored = without_hidden_texts(stored_cells(shown["assignment"]))
            assert meaningful(shown["cells"]) == stored, shown["assignment"]


def find_unkept_promises(person: TwoDevices) -> list[Any]:
    """Find the endings that were confirmed and did not happen, without a notice."""
    unkept = []
    for device in person.devices:
        for each in device.confirmed:
            assignment = each.shown["assignment"]
            told = len(device.told(assignment)) > each.told_before
            if each.was_left and not each.was_undone and not told and not is_kept(each):
                stored = (submitted_cells(assignment), history(assignment), device.log_of(assignment))
                unkept.append((each, *stored))
    return unkept


def is_kept(each: Confirmed) -> bool:
    assignment = each.shown["assignment"]
    if each.verb == "skip":
        return Event.objects.filter(subject=f"assignment:{assignment}", what="assignment.skipped").exists()
    return (each.verb, until_end(each.shown["cells"])) in submitted_cells(assignment)


def find_unmeant_submissions(person: TwoDevices) -> list[Any]:
    """Find the submissions that no one confirmed."""
    meant = [each for each in person.confirmed() if each.verb != "skip" and (each.is_correction or not each.was_undone)]
    unmeant = []
    for assignment in Assignment.objects.filter(submissions__isnull=False).distinct().values_list("pk", flat=True):
        promised = [
            (each.verb, until_end(each.shown["cells"])) for each in meant if each.shown["assignment"] == assignment
        ]
        unmeant += [
            (assignment, each, promised, history(assignment))
            for each in submitted_cells(assignment)
            if each not in promised
        ]
    return unmeant


def history(assignment: int) -> list[Any]:
    """Return the edits of an assignment, for the message of a failed test."""
    edits = RatingEdit.objects.filter(assignment=assignment).order_by("version", "sequence")
    return list(
        edits.values_list("client", "seen", "version", "revision", "kind", "step", "rating", "text", "was_late")
    )


def submitted_cells(assignment: int) -> list[tuple[str, Cells]]:
    """Return the ending, the ratings and the texts of each submission of an assignment."""
    made = Submission.objects.filter(assignment=assignment).order_by("revision")
    return [
        ("give_up" if each.finish_reason == "give_up" else "submit", stored_cells(assignment, each.revision))
        for each in made
    ]


def stored_cells(assignment: int, revision: int | None = None) -> Cells:
    revision = revision or Assignment.objects.get(pk=assignment).revision
    reviews = StepReview.objects.filter(assignment=assignment, revision=revision)
    cells: Cells = {}
    for position, comment, written, missing in reviews.values_list(
        "step__position", "comment", "written_text", "missing"
    ):
        cells[f"{position}.0"] = {**EMPTY, "comment": comment, "written": written or "", "missing": missing}
    answers = TraceAnswer.objects.filter(assignment=assignment, revision=revision).exclude(value="")
    given = sorted(answers.values_list("question", "value"))
    cells[WHOLE_TRACE] = {**EMPTY, "answers": " ".join(map("=".join, given))}
    judgments = Judgment.objects.filter(turn__in=reviews).select_related("turn__step", "option")
    for each in judgments:
        cells.setdefault(f"{each.turn.step.position}.{each.option.position}", {**EMPTY}).update(
            rating=each.rating,
            flagged=each.flagged,
            category=each.category,
            severity=each.severity,
            reason=each.reason,
            clauses=" ".join(citation["clause"] for citation in each.citations or ()),
        )
    return meaningful(cells)


def meaningful(cells: Cells) -> Cells:
    return {stop: cell for stop, cell in cells.items() if cell != EMPTY}


def until_end(cells: Cells) -> Cells:
    """Leave out the steps after the first negative one, which are not submitted."""
    negative = [int(stop.split(".")[0]) for stop, cell in cells.items() if stop.endswith(".0") and cell["rating"] == -1]
    end = min(negative, default=STEPS)
    return meaningful({stop: cell for stop, cell in cells.items() if int(stop.split(".")[0]) <= end})


def without_hidden_texts(cells: Cells) -> Cells:
    """Leave out corrected steps that are kept as drafts, because the step is not negative now."""
    return meaningful({stop: cell if cell["rating"] == -1 else {**cell, "written": ""} for stop, cell in cells.items()})
