"""Lets simulated raters rate the demo through the same verbs as people: claim, rate, submit, some weeks of it. What
they said is followed by consensus, further opinions and figures, as it is when the platform runs."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict

from accounts import users
from accounts.models import User
from demo import simulated
from demo.simulated import SimulatedRater
from demo.told import ToldTrace, dice
from labeling import admission, judging, projects, quality, queue, stations
from labeling.models import Lesson, Project, Rater, Settlement, Submission, Trace
from labeling.models.assignment import Purpose
from labeling.models.consensus import SettlementState
from labeling.models.project import Protocol
from labeling.quality import figures, fits, settlements, settling
from labeling.stations import Station
from people import members
from people.models import Membership, Role

DAYS = 20  # of work that lie behind the demo
BAR = 0.8  # of hidden gold right
_GOLD_SHARE = 0.25  # more than in real work, so that accuracies have something to stand on
_FIGURES_EVERY = 4  # days


def rate(*, project: Project, told: Mapping[int, ToldTrace], readings: int, now: dt.datetime) -> None:
    """So many readings of traces by simulated raters; `told` is the truth by trace. Begun work is gone on with, done
    work is not done again."""
    if quality.figures_of(project_id=project.pk) is not None:
        return
    if project.gold_bar is None:
        projects.set_gold_bar(project=project, bar=BAR, by=None, now=now)
    first = now - dt.timedelta(days=DAYS)
    crew = [(rater, _join(project, rater, first)) for rater in simulated.RATERS]
    for rater, row in crew:
        _walk_in(project, rater, row, told, first)
    a_day = max(1, readings // DAYS)
    for number in range(_done(project), readings):
        at = first + dt.timedelta(days=DAYS) * (number / readings)
        rater, row = crew[number % len(crew)]
        _read_one(project, rater, row, told, number, at)
        if number % a_day == a_day - 1:
            _look_after(project, at, with_figures=(number // a_day) % _FIGURES_EVERY == 0)
    _look_after(project, now, with_figures=True)


def _done(project: Project) -> int:
    way_in = [Purpose.TRAINING, Purpose.SCREENING]
    return Submission.objects.filter(project=project).exclude(assignment__purpose__in=way_in).count()


def _join(project: Project, rater: SimulatedRater, now: dt.datetime) -> Rater:
    user = User.objects.filter(username=rater.username).first() or users.create(
        username=rater.username, name=rater.name, now=now
    )
    if not Membership.objects.filter(project=project, user=user).exists():
        members.join(project=project, user=user, role=Role.ANNOTATOR, now=now)
    return Rater.objects.select_related("user").get(project=project, user=user)


def _walk_in(
    project: Project, rater: SimulatedRater, row: Rater, told: Mapping[int, ToldTrace], at: dt.datetime
) -> None:
    """Through whatever stands before the work, as everybody. Whoever fails the screening is let in all the same: the
    demo has somebody whose work must be looked at."""
    number = 0
    while (station := stations.next_of(rater=row, project=project)) != Station.WORK:
        at += dt.timedelta(minutes=5)
        number += 1
        if station in stations.WITH_TRACES:
            _read_one(project, rater, row, told, -number, at)
        else:
            _pass(project, row, station, at)
        row.refresh_from_db()


def _pass(project: Project, row: Rater, station: Station, at: dt.datetime) -> None:
    """A station at which no trace is handed out."""
    user, text, guideline = row.user, project.consent_text, project.guideline
    if user is None or text is None or guideline is None:
        raise RuntimeError(f"{project.slug} asks for {station} and has nothing to show")
    if station == Station.CONSENT:
        admission.consent(rater=row, text=text, by=user, now=at)
    elif station == Station.GUIDELINE:
        admission.read_guideline(rater=row, guideline=guideline, by=user, now=at)
    elif station == Station.LESSON:
        lesson = Lesson.objects.filter(assignment__rater=row, read_at=None).latest("given_at")
        admission.read_lesson(assignment_id=lesson.assignment_id, rater_id=row.pk, by=user, now=at)
    else:
        admission.admit(rater_id=row.pk, by=None, now=at)


def _read_one(
    project: Project,
    rater: SimulatedRater,
    row: Rater,
    told: Mapping[int, ToldTrace],
    number: int,
    at: dt.datetime,
) -> None:
    """The next in turn takes a trace, rates it and submits. Whoever is paused, or has nothing left, leaves it."""
    chance = dice("demo", project.slug, rater.number, number)
    is_gold, arm = chance.random() < _GOLD_SHARE, chance.uniform(project.gold_share, 1)
    try:
        claim = queue.claim(rater_id=row.pk, now=at, opened=True, chance=0.0 if is_gold else arm)
    except queue.QueueRefusal:
        return
    said = simulated.ratings(told[claim.trace_id], rater, chance, to_the_end=project.protocol == Protocol.EVERY_STEP)
    writes = [judging.WriteIn(sequence=n + 1, seen=0, kind="rate", **asdict(one)) for n, one in enumerate(said)]
    spent = dt.timedelta(milliseconds=sum(one.active_ms for one in said))
    judging.submit(
        assignment_id=claim.assignment_id,
        rater_id=row.pk,
        client=rater.username,
        writes=writes,
        now=at + spent,
        by=row.user,
    )


def _learn(project: Project, now: dt.datetime) -> None:
    """What happens at night. With the first fit everything settled before says its probability too."""
    made = fits.learn(project_id=project.pk, now=now)
    if made is None or made.number > 1:
        return
    settled = Settlement.objects.filter(project=project, state=SettlementState.SETTLED)
    settlements.look_at(trace_ids=settled.values_list("trace_id", flat=True), now=now)
    quality.settle(project_id=project.pk, trace_ids=list(settled.values_list("trace_id", flat=True)), now=now)


def _look_after(project: Project, at: dt.datetime, *, with_figures: bool) -> None:
    """What happens in the background on a day when the platform runs."""
    for project_id, traces in settling.due(now=at):
        if project_id == project.pk:
            quality.settle(project_id=project_id, trace_ids=traces, now=at)
    if with_figures:
        _learn(project, at)
        figures.compute(project_id=project.pk, now=at)


def truths(project: Project, told: Mapping[str, ToldTrace]) -> dict[int, ToldTrace]:
    """What the generator knows, by trace; `told` is by digest."""
    rows = Trace.objects.filter(project=project, digest__in=told).values_list("pk", "digest")
    return {pk: told[digest] for pk, digest in rows}
