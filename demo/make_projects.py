"""Makes the demo: two projects, their guidelines, three people, generated traces in the queue. Doing it again adds
nothing, so that a start that broke off in the middle can simply be repeated."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from accounts import users
from accounts.models import User
from demo import explanations, rate_traces, records
from demo.agents import traces as agent_traces
from demo.generated_content import GeneratedTrace
from demo.math_problems import traces as maths_traces
from labeling import onboarding
from labeling.models import Option, Project, Source, Trace
from labeling.models.gold import GoldUse
from labeling.models.project import Protocol
from labeling.projects import guidelines, lifecycle
from labeling.quality.gold import arrange_hidden_gold, enqueue_gold, make_gold
from labeling.traces import load, sources
from people import members
from people import owned_projects as projects_of_people
from people.models import Membership, Role

SEED = "stepmark"
RESERVE_SHARE = (
    0.25  # of claims, until it is labelled: more than usual, so that the first gate has something to judge on
)
OVERLAP_LIMIT = 3  # then it is contested: lower than usual, so that there is something to decide
PAY_PER_HOUR = Decimal("19.20")
SHORT_TRACE_STEPS = 8  # steps


@dataclass(frozen=True)
class DemoPlan:
    """One demo project before it is made."""

    slug: str
    name: str
    description: str
    protocol: Protocol
    guideline: str
    generate: Callable[..., list[GeneratedTrace]]
    policy: str
    scaffold: str = ""
    gold: int = 0  # how many traces are hidden among the work with their truth known
    training: int = 0  # how many short ones everybody rates first, with explained answers
    screening: int = 0  # how many short ones decide who works
    readings: int = 0  # how many simulated raters have done; most of the work is left to people


@dataclass(frozen=True)
class DemoProjects:
    lead: User
    annotator: User
    engineer: User
    projects: Sequence[Project]


PLANS = (
    DemoPlan(
        slug="demo-maths",
        name="Step-by-step maths (demo)",
        description="Generated solutions of school problems, each with at most one error. Find the first.",
        protocol=Protocol.FIRST_ERROR,
        guideline="math",
        generate=maths_traces.generate_math_traces,
        policy="Stepmark's demo generator, maths",
        gold=10,
        training=3,
        screening=4,
        readings=240,
    ),
    DemoPlan(
        slug="demo-agents",
        name="Agents that use tools (demo)",
        description="Generated runs of assistants that call tools. Rate everything the agent does.",
        protocol=Protocol.EVERY_STEP,
        guideline="agents",
        generate=agent_traces.generate_agent_traces,
        policy="Stepmark's demo generator, agents",
        scaffold="a loop of thought, call and observation",
        readings=12,
    ),
)


def make_demo(*, now: dt.datetime, by: User | None = None, with_readings: bool = True) -> DemoProjects:
    """Whatever of the demo is not there yet. `by` is who asked for it; without, the demo's lead. Readings of simulated
    raters fill the pages of leads; most traces are left to people."""
    lead = _ensure_person("lead", "Demo lead", now)
    annotator = _ensure_person("annotator", "Demo annotator", now)
    engineer = _ensure_person("engineer", "Demo engineer", now)
    began = now - dt.timedelta(days=rate_traces.DAYS + 1)  # what simulated raters did lies behind
    made = []
    for plan in PLANS:
        project = _ensure_project(plan, by or lead, began)
        told = _import_traces(project, plan, by or lead, began)
        # After the training set is there: whoever comes then begins with it.
        for person, role in ((lead, Role.LEAD), (annotator, Role.ANNOTATOR), (engineer, Role.ENGINEER)):
            _ensure_member(project, person, role, began)
        if with_readings:
            rate_traces.rate_traces(
                project=project, told=rate_traces.load_truths(project, told), readings=plan.readings, now=now
            )
        made.append(project)
    return DemoProjects(lead, annotator, engineer, made)


def demo_exists() -> bool:
    return Project.objects.filter(slug__in=[plan.slug for plan in PLANS]).exists()


def _ensure_person(username: str, name: str, now: dt.datetime) -> User:
    """Without a password: their only way in is a link that the operator of the machine makes."""
    return User.objects.filter(username=username).first() or users.create_user(username=username, name=name, now=now)


def _ensure_project(plan: DemoPlan, by: User, now: dt.datetime) -> Project:
    project = Project.objects.filter(slug=plan.slug).first() or projects_of_people.create_owned_project(
        name=plan.name,
        slug=plan.slug,
        by=by,
        now=now,
        description=plan.description,
        protocol=plan.protocol,
        overlap_limit=OVERLAP_LIMIT,
        reserve_share=RESERVE_SHARE,
        pay_per_hour=PAY_PER_HOUR,
        screening_attempts=2,
    )
    if project.guideline_id is None:
        lifecycle.publish_guideline_template(project=project, template=plan.guideline, by=by, now=now)
        lifecycle.publish_consent_text(project=project, body=guidelines.load_consent_template(), by=by, now=now)
    return project


def _ensure_member(project: Project, person: User, role: Role, now: dt.datetime) -> None:
    """Whoever belongs to the project in some role keeps it: the lead who made it stays its owner."""
    if not Membership.objects.filter(project=project, user=person).exists():
        members.add_member(project=project, user=person, role=role, now=now)


def _import_traces(project: Project, plan: DemoPlan, by: User, now: dt.datetime) -> dict[str, GeneratedTrace]:
    """Some traces become gold; the others go the way of every import, which puts them into the queue. Gives the truth
    of each by its digest."""
    told = plan.generate(seed=SEED)
    made = [records.build_record(trace, policy=plan.policy, scaffold=plan.scaffold) for trace in told]
    uses = _gold_uses(told, plan)
    source = _ensure_source(project, plan, now)
    known = [record for number, record in enumerate(made) if number in uses]
    load.load_records(project=project, source=source, records=known, now=now, enqueues=False)
    load.load_records(
        project=project, source=source, records=[each for n, each in enumerate(made) if n not in uses], now=now
    )
    traces = {number: project.traces.get(digest=records.record_digest(made[number])) for number in uses}
    for number, use in uses.items():
        _make_gold(traces[number], told[number], use, by, now)
    hidden = [traces[number].pk for number, use in uses.items() if use is GoldUse.HIDDEN]
    if uses:
        enqueue_gold(project_id=project.pk, use=GoldUse.HIDDEN, trace_ids=hidden, now=now)
        arrange_hidden_gold(project_id=project.pk, now=now)
        onboarding.serve_gold_set(project=project, use=GoldUse.TRAINING, now=now)
        onboarding.serve_gold_set(project=project, use=GoldUse.SCREENING, now=now)
    return {records.record_digest(record): truth for record, truth in zip(made, told, strict=True)}


def _gold_uses(told: Sequence[GeneratedTrace], plan: DemoPlan) -> dict[int, GoldUse]:
    """Which traces are gold, by their number: the first are hidden, and of those after them short ones serve the way
    in, so that it is soon walked."""
    uses = dict.fromkeys(range(plan.gold), GoldUse.HIDDEN)
    short = [number for number in range(plan.gold, len(told)) if len(told[number].steps) <= SHORT_TRACE_STEPS]
    uses |= dict.fromkeys(short[: plan.training], GoldUse.TRAINING)
    return uses | dict.fromkeys(short[plan.training :][: plan.screening], GoldUse.SCREENING)


def _ensure_source(project: Project, plan: DemoPlan, now: dt.datetime) -> Source:
    return sources.ensure_source(
        project=project,
        name=f"{plan.slug}, generated",
        format="generated",
        licence="CC0-1.0",
        statement="Written by a program of Stepmark itself; no model and no person wrote these texts.",
        now=now,
    )


def _make_gold(trace: Trace, truth: GeneratedTrace, use: GoldUse, by: User, now: dt.datetime) -> None:
    """The generator knows its own truth: the one error, and the ratings of all options up to it."""
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
