"""Makes the demo: two projects, their guidelines, three people, generated traces in the queue. Doing it again adds
nothing, so that a start that broke off in the middle can simply be repeated."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from accounts import users
from accounts.models import User
from demo import explanations, rating, records
from demo.agents import traces as agent_traces
from demo.maths import traces as maths_traces
from demo.told import ToldTrace
from labeling import admission, guidelines, projects, quality
from labeling.importing import load, sources
from labeling.models import Option, Project, Source, Trace
from labeling.models.project import Protocol
from labeling.models.quality import GoldUse
from people import members
from people import projects as projects_of_people
from people.models import Membership, Role

SEED = "stepmark"
RESERVE_SHARE = (
    0.25  # of claims, until it is labelled: more than usual, so that the first gate has something to judge on
)
OVERLAP_LIMIT = 3  # then it is contested: lower than usual, so that there is something to decide
PAY_PER_HOUR = Decimal("19.20")
SHORT = 8  # steps


@dataclass(frozen=True)
class Plan:
    """One demo project before it is made."""

    slug: str
    name: str
    description: str
    protocol: Protocol
    guideline: str
    generate: Callable[..., list[ToldTrace]]
    policy: str
    scaffold: str = ""
    gold: int = 0  # how many traces are hidden among the work with their truth known
    training: int = 0  # how many short ones everybody rates first, with explained answers
    screening: int = 0  # how many short ones decide who works
    readings: int = 0  # how many simulated raters have done; most of the work is left to people


@dataclass(frozen=True)
class Demo:
    lead: User
    annotator: User
    engineer: User
    projects: Sequence[Project]


PLANS = (
    Plan(
        slug="demo-maths",
        name="Step-by-step maths (demo)",
        description="Generated solutions of school problems, each with at most one error. Find the first.",
        protocol=Protocol.FIRST_ERROR,
        guideline="maths",
        generate=maths_traces.generate,
        policy="Stepmark's demo generator, maths",
        gold=10,
        training=3,
        screening=4,
        readings=240,
    ),
    Plan(
        slug="demo-agents",
        name="Agents that use tools (demo)",
        description="Generated runs of assistants that call tools. Rate everything the agent does.",
        protocol=Protocol.EVERY_STEP,
        guideline="agents",
        generate=agent_traces.generate,
        policy="Stepmark's demo generator, agents",
        scaffold="a loop of thought, call and observation",
        readings=12,
    ),
)


def make(*, now: dt.datetime, by: User | None = None, with_readings: bool = True) -> Demo:
    """Whatever of the demo is not there yet. `by` is who asked for it; without, the demo's lead. Readings of simulated
    raters fill the pages of leads; most traces are left to people."""
    lead = _person("lead", "Demo lead", now)
    annotator = _person("annotator", "Demo annotator", now)
    engineer = _person("engineer", "Demo engineer", now)
    began = now - dt.timedelta(days=rating.DAYS + 1)  # what simulated raters did lies behind
    made = []
    for plan in PLANS:
        project = _project(plan, by or lead, began)
        told = _fill(project, plan, by or lead, began)
        # After the training set is there: whoever comes then begins with it.
        for person, role in ((lead, Role.LEAD), (annotator, Role.ANNOTATOR), (engineer, Role.ENGINEER)):
            _join(project, person, role, began)
        if with_readings:
            rating.rate(project=project, told=rating.truths(project, told), readings=plan.readings, now=now)
        made.append(project)
    return Demo(lead, annotator, engineer, made)


def is_there() -> bool:
    return Project.objects.filter(slug__in=[plan.slug for plan in PLANS]).exists()


def _person(username: str, name: str, now: dt.datetime) -> User:
    """Without a password: their only way in is a link that the operator of the machine makes."""
    return User.objects.filter(username=username).first() or users.create(username=username, name=name, now=now)


def _project(plan: Plan, by: User, now: dt.datetime) -> Project:
    project = Project.objects.filter(slug=plan.slug).first() or projects_of_people.create(
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
        projects.publish_template(project=project, template=plan.guideline, by=by, now=now)
        projects.publish_consent_text(project=project, body=guidelines.consent_text(), by=by, now=now)
    return project


def _join(project: Project, person: User, role: Role, now: dt.datetime) -> None:
    """Whoever belongs to the project in some role keeps it: the lead who made it stays its owner."""
    if not Membership.objects.filter(project=project, user=person).exists():
        members.join(project=project, user=person, role=role, now=now)


def _fill(project: Project, plan: Plan, by: User, now: dt.datetime) -> dict[str, ToldTrace]:
    """Some traces become gold; the others go the way of every import, which puts them into the queue. Gives the truth
    of each by its digest."""
    told = plan.generate(seed=SEED)
    made = [records.of(trace, policy=plan.policy, scaffold=plan.scaffold) for trace in told]
    uses = _uses(told, plan)
    source = _source(project, plan, now)
    known = [record for number, record in enumerate(made) if number in uses]
    load.load(project=project, source=source, records=known, now=now, enqueues=False)
    load.load(project=project, source=source, records=[each for n, each in enumerate(made) if n not in uses], now=now)
    traces = {number: project.traces.get(digest=records.digest(made[number])) for number in uses}
    for number, use in uses.items():
        _make_gold(traces[number], told[number], use, by, now)
    hidden = [traces[number].pk for number, use in uses.items() if use is GoldUse.HIDDEN]
    if uses:
        quality.hand_out(project_id=project.pk, use=GoldUse.HIDDEN, trace_ids=hidden, now=now)
        quality.arrange_hidden(project_id=project.pk, now=now)
        admission.put_up(project=project, use=GoldUse.TRAINING, now=now)
        admission.put_up(project=project, use=GoldUse.SCREENING, now=now)
    return {records.digest(record): truth for record, truth in zip(made, told, strict=True)}


def _uses(told: Sequence[ToldTrace], plan: Plan) -> dict[int, GoldUse]:
    """Which traces are gold, by their number: the first are hidden, and of those after them short ones serve the way
    in, so that it is soon walked."""
    uses = dict.fromkeys(range(plan.gold), GoldUse.HIDDEN)
    short = [number for number in range(plan.gold, len(told)) if len(told[number].steps) <= SHORT]
    uses |= dict.fromkeys(short[: plan.training], GoldUse.TRAINING)
    return uses | dict.fromkeys(short[plan.training :][: plan.screening], GoldUse.SCREENING)


def _source(project: Project, plan: Plan, now: dt.datetime) -> Source:
    return sources.ensure(
        project=project,
        name=f"{plan.slug}, generated",
        format="generated",
        licence="CC0-1.0",
        statement="Written by a program of Stepmark itself; no model and no person wrote these texts.",
        now=now,
    )


def _make_gold(trace: Trace, truth: ToldTrace, use: GoldUse, by: User, now: dt.datetime) -> None:
    """The generator knows its own truth: the one error, and the ratings of all options up to it."""
    if trace.gold.exists():
        return
    rated = {
        row: option
        for row in Option.objects.filter(step__trace=trace).select_related("step")
        if (option := truth.steps[row.step.position].options[row.position]).rating is not None
    }
    quality.make_gold(
        trace=trace,
        use=use,
        accepted_first_errors=[truth.first_error],
        ratings={row.pk: option.rating for row, option in rated.items() if option.rating is not None},
        explanations={row.pk: explanations.of(truth, option, is_own=not row.position) for row, option in rated.items()},
        explanation="" if truth.first_error is not None else explanations.SOUND,
        by=by,
        now=now,
    )
