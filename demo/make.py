"""Makes the demo: two projects, their guidelines, three people, generated traces in the queue. Doing it again adds
nothing, so that a start that broke off in the middle can simply be repeated."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from accounts import users
from accounts.models import User
from demo import records
from demo.agents import traces as agent_traces
from demo.maths import traces as maths_traces
from demo.told import ToldTrace
from labeling import projects, quality, queue
from labeling.importing import load, sources
from labeling.models import Option, Project, Source, Trace
from labeling.models.project import Protocol
from labeling.models.quality import GoldUse
from labeling.models.queue import Arm
from people import members
from people import projects as projects_of_people
from people.models import Membership, Role

SEED = "stepmark"
GOLD_READINGS = 50  # then it is known by heart
GUIDELINES = Path(__file__).parent / "guidelines"


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
        guideline="maths.md",
        generate=maths_traces.generate,
        policy="Stepmark's demo generator, maths",
        gold=10,
    ),
    Plan(
        slug="demo-agents",
        name="Agents that use tools (demo)",
        description="Generated runs of assistants that call tools. Rate everything the agent does.",
        protocol=Protocol.EVERY_STEP,
        guideline="agents.md",
        generate=agent_traces.generate,
        policy="Stepmark's demo generator, agents",
        scaffold="a loop of thought, call and observation",
    ),
)


def make(*, now: dt.datetime, by: User | None = None) -> Demo:
    """Whatever of the demo is not there yet. `by` is who asked for it; without, the demo's lead."""
    lead = _person("lead", "Demo lead", now)
    annotator = _person("annotator", "Demo annotator", now)
    engineer = _person("engineer", "Demo engineer", now)
    made = []
    for plan in PLANS:
        project = _project(plan, by or lead, now)
        for person, role in ((lead, Role.LEAD), (annotator, Role.ANNOTATOR), (engineer, Role.ENGINEER)):
            _join(project, person, role, now)
        _fill(project, plan, by or lead, now)
        made.append(project)
    return Demo(lead, annotator, engineer, made)


def is_there() -> bool:
    return Project.objects.filter(slug__in=[plan.slug for plan in PLANS]).exists()


def _person(username: str, name: str, now: dt.datetime) -> User:
    """Without a password: their only way in is a link that the operator of the machine makes."""
    return User.objects.filter(username=username).first() or users.create(username=username, name=name, now=now)


def _project(plan: Plan, by: User, now: dt.datetime) -> Project:
    project = Project.objects.filter(slug=plan.slug).first() or projects_of_people.create(
        name=plan.name, slug=plan.slug, by=by, now=now, description=plan.description, protocol=plan.protocol
    )
    if project.guideline_id is None:
        body = (GUIDELINES / plan.guideline).read_text(encoding="utf-8")
        projects.publish_guideline(project=project, body=body, by=by, now=now)
    return project


def _join(project: Project, person: User, role: Role, now: dt.datetime) -> None:
    """Whoever belongs to the project in some role keeps it: the lead who made it stays its owner."""
    if not Membership.objects.filter(project=project, user=person).exists():
        members.join(project=project, user=person, role=role, now=now)


def _fill(project: Project, plan: Plan, by: User, now: dt.datetime) -> None:
    """The first traces become gold; the others go the way of every import, which puts them into the queue."""
    told = plan.generate(seed=SEED)
    made = [records.of(trace, policy=plan.policy, scaffold=plan.scaffold) for trace in told]
    source = _source(project, plan, now)
    load.load(project=project, source=source, records=made[: plan.gold], now=now, enqueues=False)
    load.load(project=project, source=source, records=made[plan.gold :], now=now)
    hidden = []
    for record, truth in zip(made[: plan.gold], told, strict=False):
        trace = project.traces.get(digest=records.digest(record))
        _make_gold(trace, truth, by, now)
        hidden.append(trace.pk)
    if hidden:
        queue.enqueue(project_id=project.pk, arm=Arm.GOLD, trace_ids=hidden, slots=GOLD_READINGS, now=now)


def _source(project: Project, plan: Plan, now: dt.datetime) -> Source:
    return sources.ensure(
        project=project,
        name=f"{plan.slug}, generated",
        format="generated",
        licence="CC0-1.0",
        statement="Written by a program of Stepmark itself; no model and no person wrote these texts.",
        now=now,
    )


def _make_gold(trace: Trace, truth: ToldTrace, by: User, now: dt.datetime) -> None:
    """The generator knows its own truth: the one error, and the ratings of all options up to it."""
    if trace.gold.exists():
        return
    known = {
        option.pk: rating
        for option in Option.objects.filter(step__trace=trace).select_related("step")
        if (rating := truth.steps[option.step.position].options[option.position].rating) is not None
    }
    quality.make_gold(
        trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[truth.first_error], ratings=known, by=by, now=now
    )
