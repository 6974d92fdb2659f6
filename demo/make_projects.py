"""Create the demo: projects with guidelines, three people, and generated traces in the queue. It is idempotent, so an
interrupted run can be repeated."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from accounts import users
from accounts.models import User
from demo import explanations, live_sessions, rate_traces, records
from demo.generated_content import GeneratedTrace
from demo.plans import PLANS, DemoPlan
from labeling import gold_sets
from labeling.models import Option, Project, Source, Trace
from labeling.models.gold import GoldUse
from labeling.models.project import Protocol
from labeling.projects import guidelines, lifecycle, rating_rules, trace_questions, visibility
from labeling.quality.gold import arrange_hidden_gold, enqueue_gold, make_gold
from labeling.traces import load
from people import members
from people.models import Membership, Role

SEED = "stepmark"
RESERVE_SHARE = 0.25  # of claims, until the held-out set is labeled; high, so that the first gate has enough labels
OVERLAP_LIMIT = 3  # labels before a trace is contested; low, so that there are traces to adjudicate
PAY_PER_HOUR = Decimal("19.20")
SHORT_TRACE_STEPS = 8


@dataclass(frozen=True)
class DemoProjects:
    lead: User
    annotator: User
    engineer: User
    projects: Sequence[Project]


def make_demo(
    *, now: dt.datetime, by: User | None = None, with_submissions: bool = True, plans: Sequence[DemoPlan] = PLANS
) -> DemoProjects:
    """Create the missing parts of the demo on behalf of `by`, or of the demo's lead. Submissions by simulated raters
    fill the dashboard; most traces are left to people."""
    lead = _ensure_person("lead", "Demo lead", now)
    annotator = _ensure_person("annotator", "Demo annotator", now)
    engineer = _ensure_person("engineer", "Demo engineer", now)
    began = now - dt.timedelta(days=rate_traces.DAYS + 1)  # before the first submission of a simulated rater
    projects = []
    for plan in plans:
        project = _ensure_project(plan, by or lead, began)
        truths = _import_traces(project, plan, by or lead, began)
        if plan.protocol == Protocol.LIVE:
            live_sessions.open_project(project=project, seed=SEED, by=by or lead, now=began)
        # Add members after the training set exists, so that they begin with it.
        for person, role in ((lead, Role.LEAD), (annotator, Role.ANNOTATOR), (engineer, Role.ENGINEER)):
            _ensure_member(project, person, role, began)
        if with_submissions and plan.protocol == Protocol.LIVE:
            live_sessions.solve_problems(project=project, now=began)
        elif with_submissions:
            rate_traces.rate_traces(
                project=project,
                truths=rate_traces.load_truths(project, truths),
                submissions=plan.submissions,
                n_raters=plan.raters,
                now=now,
            )
        projects.append(project)
    return DemoProjects(lead, annotator, engineer, projects)


def _ensure_person(username: str, name: str, now: dt.datetime) -> User:
    """Return the demo user. They have no password and log in with a link that the operator creates."""
    return User.objects.filter(username=username).first() or users.create_user(username=username, name=name, now=now)


def _ensure_project(plan: DemoPlan, by: User, now: dt.datetime) -> Project:
    project = Project.objects.filter(slug=plan.slug).first() or members.create_owned_project(
        name=plan.name,
        slug=plan.slug,
        by=by,
        now=now,
        description=plan.description,
        protocol=plan.protocol,
        rating_rules=rating_rules.store_rules(plan.rules or rating_rules.RULES_TEMPLATES[plan.guideline].rules),
        trace_questions=trace_questions.store_questions(plan.questions),
        **dict.fromkeys(plan.asks, True),
        asks_clauses=plan.clauses,
        overlap_limit=OVERLAP_LIMIT,
        reserve_share=RESERVE_SHARE,
        pay_per_hour=PAY_PER_HOUR,
        screening_attempts=2,
    )
    if project.guideline_id is None:
        body = plan.load_guideline() if plan.load_guideline else guidelines.load_guideline_template(plan.guideline)
        lifecycle.publish_guideline(project=project, body=body, by=by, now=now)
        lifecycle.publish_consent_text(project=project, body=guidelines.load_consent_template(), by=by, now=now)
    if plan.partial_views and visibility.find_plan(project.pk) is None:
        reasoning, actions = plan.partial_views
        visibility.start_visibility(
            project=project, reasoning_share=reasoning, actions_share=actions, by=by, now=now, seed=SEED
        )
    return project


def _ensure_member(project: Project, person: User, role: Role, now: dt.datetime) -> None:
    """Add the person unless they are a member already: the lead who created the project stays its owner."""
    if not Membership.objects.filter(project=project, user=person).exists():
        members.add_member(project=project, user=person, role=role, now=now)


def _import_traces(project: Project, plan: DemoPlan, by: User, now: dt.datetime) -> dict[str, GeneratedTrace]:
    """Import the generated traces and return them by digest. Some become gold; the others are enqueued."""
    if plan.generate is None:
        return {}
    generated = plan.generate(seed=SEED)
    made = [records.build_record(trace, policy=plan.policy, scaffold=plan.scaffold) for trace in generated]
    uses = _gold_uses(generated, plan)
    source = _ensure_source(project, plan, now)
    known = [record for number, record in enumerate(made) if number in uses]
    load.load_records(project=project, source=source, records=known, now=now, enqueues=False)
    load.load_records(
        project=project, source=source, records=[each for n, each in enumerate(made) if n not in uses], now=now
    )
    if plan.make_verdicts:  # with labels, they would not be enqueued above
        for record, truth in zip(made, generated, strict=True):
            record.submissions = plan.make_verdicts(truth)
        load.load_records(project=project, source=source, records=made, now=now, enqueues=False)
    traces = {number: project.traces.get(digest=records.record_digest(made[number])) for number in uses}
    for number, use in uses.items():
        _make_gold(traces[number], generated[number], use, by, now)
    hidden = [traces[number].pk for number, use in uses.items() if use is GoldUse.HIDDEN]
    if uses:
        enqueue_gold(project_id=project.pk, use=GoldUse.HIDDEN, trace_ids=hidden, now=now)
        arrange_hidden_gold(project_id=project.pk, now=now)
        gold_sets.serve_gold_set(project=project, use=GoldUse.TRAINING, now=now)
        gold_sets.serve_gold_set(project=project, use=GoldUse.SCREENING, now=now)
    return {records.record_digest(record): truth for record, truth in zip(made, generated, strict=True)}


def _gold_uses(generated: Sequence[GeneratedTrace], plan: DemoPlan) -> dict[int, GoldUse]:
    """Return the use of each gold trace by its index. The first traces are hidden gold; short ones after them are for
    training and screening, so that onboarding is quick."""
    uses = dict.fromkeys(range(plan.gold), GoldUse.HIDDEN)
    short = [number for number in range(plan.gold, len(generated)) if len(generated[number].steps) <= SHORT_TRACE_STEPS]
    uses |= dict.fromkeys(short[: plan.training], GoldUse.TRAINING)
    return uses | dict.fromkeys(short[plan.training :][: plan.screening], GoldUse.SCREENING)


def _ensure_source(project: Project, plan: DemoPlan, now: dt.datetime) -> Source:
    return load.ensure_source(
        project=project,
        name=f"{plan.slug}, generated",
        format="generated",
        licence="CC0-1.0",
        statement="Generated by a program that is part of Stepmark; neither a model nor a person wrote these texts.",
        now=now,
    )


def _make_gold(trace: Trace, truth: GeneratedTrace, use: GoldUse, by: User, now: dt.datetime) -> None:
    """Make a trace gold with the generator's own truth: its one error, and the ratings of all options up to it."""
    if trace.gold.exists():
        return
    rated = {
        row: option
        for row in Option.objects.filter(step__trace=trace).select_related("step")
        if (option := truth.steps[row.step.position].options[row.position]).rating is not None
    }
    make_gold(
        trace=trace,
        use=use,
        accepted_first_errors=[truth.first_error],
        ratings={row.pk: option.rating for row, option in rated.items() if option.rating is not None},
        explanations={
            row.pk: explanations.explain_option(truth, option, is_own=not row.position) for row, option in rated.items()
        },
        explanation="" if truth.first_error is not None else explanations.SOUND,
        by=by,
        now=now,
    )
