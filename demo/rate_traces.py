"""Let simulated raters label the demo for some weeks with the same calls as people: claim, rate, submit. Consensus,
additional labels and statistics follow, as on a running platform."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from accounts import users
from accounts.models import User
from demo import simulated_raters
from demo.generated_content import GeneratedTrace, seeded_random
from demo.simulated_raters import SimulatedRater, SimulatedRating
from labeling import assignments, gates, onboarding, queue
from labeling.gates import OnboardingGate
from labeling.models import Project, Rater, Settlement, Submission, Trace, TrainingFeedback
from labeling.models.assignment import AssignmentPurpose
from labeling.models.consensus import SettlementState
from labeling.models.project import EVERY_STEP_PROTOCOLS
from labeling.models.rater import RaterKind
from labeling.models.trace import StepKind
from labeling.models.visibility import VisibilityCondition, VisibilityDraw
from labeling.projects import lifecycle, taxonomies, visibility
from labeling.quality import new_submissions, project_stats, rater_model, resolve, settlements
from labeling.quality.project_stats import load_project_stats
from labeling.quality.resolve import resolve_traces
from people import members
from people.models import Membership, Role

DAYS = 20  # of simulated work before today
GOLD_THRESHOLD = 0.8  # accuracy on hidden gold
_GOLD_SHARE = 0.25  # higher than in real work, so that accuracies rest on enough labels
_STATS_EVERY = 4  # runs of the daily jobs
_LEAST_PER_DAY = 12  # submissions between two runs of the daily jobs, so that small projects are made fast


def rate_traces(
    *, project: Project, truths: Mapping[int, GeneratedTrace], submissions: int, n_raters: int, now: dt.datetime
) -> None:
    """Let simulated raters submit that many traces; `truths` maps trace ids to generated traces. An interrupted run
    continues, and a finished one is not repeated."""
    if load_project_stats(project_id=project.pk) is not None:
        return
    if project.gold_bar is None:
        lifecycle.set_gold_threshold(project=project, bar=GOLD_THRESHOLD, by=None, now=now)
    first = now - dt.timedelta(days=DAYS)
    crew = [(rater, ensure_rater(project, rater, first)) for rater in simulated_raters.SIMULATED_RATERS[:n_raters]]
    for rater, row in crew:
        pass_onboarding(project, rater, row, truths, first)
    per_day = max(_LEAST_PER_DAY, submissions // DAYS)
    for number in range(_count_submitted(project), submissions):
        at = first + dt.timedelta(days=DAYS) * (number / submissions)
        rater, row = crew[number % len(crew)]
        _rate_next_trace(project, rater, row, truths, number, at)
        if number % per_day == per_day - 1:
            _run_daily_jobs(project, at, with_figures=(number // per_day) % _STATS_EVERY == 0)
    _run_daily_jobs(project, now, with_figures=True)


def _count_submitted(project: Project) -> int:
    onboarding_purposes = [AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING]
    rows = Submission.objects.filter(project=project, assignment__rater__kind=RaterKind.MEMBER)
    return rows.exclude(assignment__purpose__in=onboarding_purposes).count()


def ensure_rater(project: Project, rater: SimulatedRater, now: dt.datetime) -> Rater:
    """Return the membership of a simulated rater, who is added if necessary."""
    user = User.objects.filter(username=rater.username).first() or users.create_user(
        username=rater.username, name=rater.name, now=now
    )
    if not Membership.objects.filter(project=project, user=user).exists():
        members.add_member(project=project, user=user, role=Role.ANNOTATOR, now=now)
    return Rater.objects.select_related("user").get(project=project, user=user)


def pass_onboarding(
    project: Project, rater: SimulatedRater, row: Rater, truths: Mapping[int, GeneratedTrace], at: dt.datetime
) -> None:
    """Complete onboarding like any annotator. A rater who fails screening is admitted anyway, so that the demo has one
    whose work needs attention."""
    number = 0
    while (gate := gates.next_gate(rater=row, project=project)) != OnboardingGate.WORK:
        at += dt.timedelta(minutes=5)
        number += 1
        if gate in gates.GATES_WITH_TRACES:
            _rate_next_trace(project, rater, row, truths, -number, at)
        else:
            _pass_gate(project, row, gate, at)
        row.refresh_from_db()


def _pass_gate(project: Project, row: Rater, gate: OnboardingGate, at: dt.datetime) -> None:
    """Complete an onboarding step that assigns no trace."""
    user, text, guideline = row.user, project.consent_text, project.guideline
    if user is None or text is None or guideline is None:
        raise RuntimeError(f"{project.slug} requires {gate} but has no text or guideline for it")
    if gate == OnboardingGate.CONSENT:
        onboarding.give_consent(rater=row, text=text, by=user, now=at)
    elif gate == OnboardingGate.GUIDELINE:
        onboarding.acknowledge_guideline(rater=row, guideline=guideline, by=user, now=at)
    elif gate == OnboardingGate.LESSON:
        feedback = TrainingFeedback.objects.filter(assignment__rater=row, read_at=None).latest("given_at")
        onboarding.acknowledge_feedback(assignment_id=feedback.assignment_id, rater_id=row.pk, by=user, now=at)
    else:
        onboarding.admit_rater(rater_id=row.pk, by=None, now=at)


def _rate_next_trace(
    project: Project,
    rater: SimulatedRater,
    row: Rater,
    truths: Mapping[int, GeneratedTrace],
    number: int,
    at: dt.datetime,
) -> None:
    """Claim a trace, rate it and submit. Do nothing if the rater is paused or the queue is empty for them."""
    chance = seeded_random("demo", project.slug, rater.number, number)
    is_gold, arm = chance.random() < _GOLD_SHARE, chance.uniform(project.gold_share, 1)
    try:
        claim = queue.claim_trace(rater_id=row.pk, now=at, opened=True, chance=0.0 if is_gold else arm)
    except queue.QueueRefusal:
        return
    visible = _find_condition(claim.assignment_id)
    ratings = simulated_raters.simulate_ratings(
        truths[claim.trace_id],
        rater,
        chance,
        to_the_end=project.protocol in EVERY_STEP_PROTOCOLS,
        hidden_kinds=[kind for kind in StepKind.values if visibility.is_hidden(visible, kind)],
    )
    clauses = _load_citations(project)
    writes = [
        assignments.IncomingEdit(sequence=n + 1, seen=0, kind="rate", citations=clauses.get(clause), **fields)
        for n, (clause, fields) in enumerate(_split_clause(rating) for rating in ratings)
    ]
    answers: dict[str, str] = {}
    if project.trace_questions:
        answers = simulated_raters.simulate_answers(truths[claim.trace_id], chance, visible=visible)
    writes += [
        assignments.IncomingEdit(sequence=len(writes) + n, seen=0, kind="answer", step=0, question=question, text=value)
        for n, (question, value) in enumerate(answers.items(), start=1)
    ]
    spent = dt.timedelta(milliseconds=sum(rating.active_ms for rating in ratings))
    assignments.submit(
        assignment_id=claim.assignment_id,
        rater_id=row.pk,
        client=rater.username,
        writes=writes,
        now=at + spent,
        by=row.user,
    )


def _find_condition(assignment_id: int) -> str:
    """Return what the rater sees of the trace."""
    draws = VisibilityDraw.objects.filter(assignment=assignment_id)
    return draws.values_list("condition", flat=True).first() or VisibilityCondition.BOTH


def _split_clause(rating: SimulatedRating) -> tuple[str, dict[str, Any]]:
    fields = asdict(rating)
    return fields.pop("clause"), fields


def _load_citations(project: Project) -> dict[str, list[assignments.Citation]]:
    """Return the citation of each clause of the guideline by its number."""
    guideline = project.guideline
    clauses = taxonomies.load_taxonomy(project).clauses
    version = str(guideline.version) if guideline else ""
    return {clause.code: [assignments.Citation(clause.code, clause.digest, version)] for clause in clauses}


def _run_nightly_jobs(project: Project, now: dt.datetime) -> None:
    """Fit the rater model. After the first fit, resolve settled traces again, so that they get a probability too."""
    fit = rater_model.fit_raters(project_id=project.pk, now=now)
    if fit is None or fit.number > 1:
        return
    settled = Settlement.objects.filter(project=project, state=SettlementState.SETTLED)
    settlements.mark_due(trace_ids=settled.values_list("trace_id", flat=True), now=now)
    resolve_traces(project_id=project.pk, trace_ids=list(settled.values_list("trace_id", flat=True)), now=now)


def _run_daily_jobs(project: Project, at: dt.datetime, *, with_figures: bool) -> None:
    """Run the background work of one day."""
    new_submissions.process_new_submissions(now=at, limit=1_000_000)
    for project_id, traces in resolve.find_due_traces(now=at):
        if project_id == project.pk:
            resolve_traces(project_id=project_id, trace_ids=traces, now=at)
    if with_figures:
        _run_nightly_jobs(project, at)
        project_stats.compute_project_stats(project_id=project.pk, now=at)


def load_truths(project: Project, truths: Mapping[str, GeneratedTrace]) -> dict[int, GeneratedTrace]:
    """Return the generated traces by trace id; `truths` maps digests to them."""
    rows = Trace.objects.filter(project=project, digest__in=truths).values_list("pk", "digest")
    return {pk: truths[digest] for pk, digest in rows}
