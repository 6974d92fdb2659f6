"""Lets simulated raters rate the demo through the same verbs as people: claim, rate, submit, some weeks of it. What
they said is followed by consensus, further opinions and figures, as it is when the platform runs."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict

from accounts import users
from accounts.models import User
from demo import simulated_raters
from demo.generated_content import GeneratedTrace, seeded_random
from demo.simulated_raters import SimulatedRater
from labeling import assignments, gates, onboarding, queue
from labeling.gates import OnboardingGate
from labeling.models import Project, Rater, Settlement, Submission, Trace, TrainingFeedback
from labeling.models.assignment import AssignmentPurpose
from labeling.models.consensus import SettlementState
from labeling.models.project import Protocol
from labeling.projects import lifecycle
from labeling.quality import project_stats, rater_model, resolution_state, resolve
from labeling.quality.project_stats import load_project_stats
from labeling.quality.resolve import resolve_traces
from people import members
from people.models import Membership, Role

DAYS = 20  # of work that lie behind the demo
GOLD_THRESHOLD = 0.8  # of hidden gold right
_GOLD_SHARE = 0.25  # more than in real work, so that accuracies have something to stand on
_STATS_EVERY = 4  # days


def rate_traces(*, project: Project, told: Mapping[int, GeneratedTrace], readings: int, now: dt.datetime) -> None:
    """So many readings of traces by simulated raters; `told` is the truth by trace. Begun work is gone on with, done
    work is not done again."""
    if load_project_stats(project_id=project.pk) is not None:
        return
    if project.gold_bar is None:
        lifecycle.set_gold_threshold(project=project, bar=GOLD_THRESHOLD, by=None, now=now)
    first = now - dt.timedelta(days=DAYS)
    crew = [(rater, _add_rater(project, rater, first)) for rater in simulated_raters.SIMULATED_RATERS]
    for rater, row in crew:
        _pass_onboarding(project, rater, row, told, first)
    a_day = max(1, readings // DAYS)
    for number in range(_count_submitted(project), readings):
        at = first + dt.timedelta(days=DAYS) * (number / readings)
        rater, row = crew[number % len(crew)]
        _rate_next_trace(project, rater, row, told, number, at)
        if number % a_day == a_day - 1:
            _run_daily_jobs(project, at, with_figures=(number // a_day) % _STATS_EVERY == 0)
    _run_daily_jobs(project, now, with_figures=True)


def _count_submitted(project: Project) -> int:
    way_in = [AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING]
    return Submission.objects.filter(project=project).exclude(assignment__purpose__in=way_in).count()


def _add_rater(project: Project, rater: SimulatedRater, now: dt.datetime) -> Rater:
    user = User.objects.filter(username=rater.username).first() or users.create_user(
        username=rater.username, name=rater.name, now=now
    )
    if not Membership.objects.filter(project=project, user=user).exists():
        members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=now)
    return Rater.objects.select_related("user").get(project=project, user=user)


def _pass_onboarding(
    project: Project, rater: SimulatedRater, row: Rater, told: Mapping[int, GeneratedTrace], at: dt.datetime
) -> None:
    """Through whatever stands before the work, as everybody. Whoever fails the screening is let in all the same: the
    demo has somebody whose work must be looked at."""
    number = 0
    while (station := gates.next_gate(rater=row, project=project)) != OnboardingGate.WORK:
        at += dt.timedelta(minutes=5)
        number += 1
        if station in gates.GATES_WITH_TRACES:
            _rate_next_trace(project, rater, row, told, -number, at)
        else:
            _pass_gate(project, row, station, at)
        row.refresh_from_db()


def _pass_gate(project: Project, row: Rater, station: OnboardingGate, at: dt.datetime) -> None:
    """A station at which no trace is handed out."""
    user, text, guideline = row.user, project.consent_text, project.guideline
    if user is None or text is None or guideline is None:
        raise RuntimeError(f"{project.slug} asks for {station} and has nothing to show")
    if station == OnboardingGate.CONSENT:
        onboarding.give_consent(rater=row, text=text, by=user, now=at)
    elif station == OnboardingGate.GUIDELINE:
        onboarding.acknowledge_guideline(rater=row, guideline=guideline, by=user, now=at)
    elif station == OnboardingGate.LESSON:
        lesson = TrainingFeedback.objects.filter(assignment__rater=row, read_at=None).latest("given_at")
        onboarding.acknowledge_feedback(assignment_id=lesson.assignment_id, rater_id=row.pk, by=user, now=at)
    else:
        onboarding.admit_rater(rater_id=row.pk, by=None, now=at)


def _rate_next_trace(
    project: Project,
    rater: SimulatedRater,
    row: Rater,
    told: Mapping[int, GeneratedTrace],
    number: int,
    at: dt.datetime,
) -> None:
    """The next in turn takes a trace, rates it and submits. Whoever is paused, or has nothing left, leaves it."""
    chance = seeded_random("demo", project.slug, rater.number, number)
    is_gold, arm = chance.random() < _GOLD_SHARE, chance.uniform(project.gold_share, 1)
    try:
        claim = queue.claim_trace(rater_id=row.pk, now=at, opened=True, chance=0.0 if is_gold else arm)
    except queue.QueueRefusal:
        return
    said = simulated_raters.simulate_ratings(
        told[claim.trace_id], rater, chance, to_the_end=project.protocol == Protocol.EVERY_STEP
    )
    writes = [
        assignments.IncomingEdit(sequence=n + 1, seen=0, kind="rate", **asdict(one)) for n, one in enumerate(said)
    ]
    spent = dt.timedelta(milliseconds=sum(one.active_ms for one in said))
    assignments.submit(
        assignment_id=claim.assignment_id,
        rater_id=row.pk,
        client=rater.username,
        writes=writes,
        now=at + spent,
        by=row.user,
    )


def _run_nightly_jobs(project: Project, now: dt.datetime) -> None:
    """What happens at night. With the first fit everything settled before says its probability too."""
    made = rater_model.fit_raters(project_id=project.pk, now=now)
    if made is None or made.number > 1:
        return
    settled = Settlement.objects.filter(project=project, state=SettlementState.SETTLED)
    resolution_state.mark_due(trace_ids=settled.values_list("trace_id", flat=True), now=now)
    resolve_traces(project_id=project.pk, trace_ids=list(settled.values_list("trace_id", flat=True)), now=now)


def _run_daily_jobs(project: Project, at: dt.datetime, *, with_figures: bool) -> None:
    """What happens in the background on a day when the platform runs."""
    for project_id, traces in resolve.find_due_traces(now=at):
        if project_id == project.pk:
            resolve_traces(project_id=project_id, trace_ids=traces, now=at)
    if with_figures:
        _run_nightly_jobs(project, at)
        project_stats.compute_project_stats(project_id=project.pk, now=at)


def load_truths(project: Project, told: Mapping[str, GeneratedTrace]) -> dict[int, GeneratedTrace]:
    """What the generator knows, by trace; `told` is by digest."""
    rows = Trace.objects.filter(project=project, digest__in=told).values_list("pk", "digest")
    return {pk: told[digest] for pk, digest in rows}
