"""Creating the demo: it is idempotent, and annotators can start immediately."""

import copy
import datetime as dt
from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from accounts.models import User
from demo import make_projects, plans
from demo.generated_content import GeneratedTrace
from events.models import Event
from labeling import gold_sets, onboarding, queue
from labeling.models import (
    Gold,
    GoldRating,
    Guideline,
    Option,
    OptionPart,
    Problem,
    Project,
    QueueEntry,
    Rater,
    Step,
    Trace,
)
from labeling.models.assignment import AssignmentPurpose
from labeling.models.project import Protocol
from live.models import LiveOption
from people import roles
from people.models import Membership
from tests import factories, module_rows
from tests.live import live_project

pytestmark = pytest.mark.django_db
TABLES = (User, Project, Guideline, Membership, Rater, Problem, Trace, Step, Option, OptionPart, QueueEntry, Gold)


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[make_projects.DemoProjects]:
    with module_rows.keep_rows(django_db_blocker):
        with django_db_blocker.unblock():
            demo = make_projects.make_demo(now=factories.NOW, with_submissions=False)
        yield demo


@pytest.fixture
def demo(made: make_projects.DemoProjects) -> make_projects.DemoProjects:
    return copy.deepcopy(made)


def counts() -> list[int]:
    return [model._default_manager.count() for model in TABLES]


def stored_content(trace: Trace) -> tuple[object, ...]:
    texts = (
        Option.objects.filter(step__trace=trace).order_by("step__position", "position").values_list("text", flat=True)
    )
    return trace.problem.text, tuple(texts), trace.answer, trace.is_right


def generated_content(trace: GeneratedTrace) -> tuple[object, ...]:
    texts = tuple(option.text for step in trace.steps for option in step.options)
    return trace.problem, texts, trace.answer, trace.is_right


def test_make_loads_every_trace_with_its_steps_and_options(demo: make_projects.DemoProjects) -> None:
    for project, plan in zip(demo.projects, plans.PLANS, strict=True):
        generated = plan.generate(seed=make_projects.SEED) if plan.generate else []
        rows = project.traces.select_related("problem")
        assert {stored_content(row) for row in rows} == {generated_content(trace) for trace in generated}
        assert len(rows) == len(generated)


def test_make_keeps_the_parts_of_agents(demo: make_projects.DemoProjects) -> None:
    kinds = set(OptionPart.objects.values_list("kind", flat=True))
    assert kinds == {"call", "result", "diff"}
    assert Step.objects.filter(kind="observation", is_rateable=True).count() == 0


def test_make_twice_adds_nothing(demo: make_projects.DemoProjects, now: dt.datetime) -> None:
    before = counts(), Event.objects.count()
    make_projects.make_demo(now=now + dt.timedelta(days=1), with_submissions=False)
    assert (counts(), Event.objects.count()) == before


def test_make_continues_after_an_interrupted_run(demo: make_projects.DemoProjects, now: dt.datetime) -> None:
    whole = counts()
    Project.objects.filter(slug="demo-agents").update(guideline=None)
    Trace.objects.filter(project__slug="demo-agents").delete()
    make_projects.make_demo(now=now, with_submissions=False)
    assert counts() == [n + (model is Guideline) for n, model in zip(whole, TABLES, strict=True)]


def test_make_adds_hidden_gold(demo: make_projects.DemoProjects) -> None:
    golds = Gold.objects.filter(trace__project__slug="demo-maths", use="hidden")
    assert {None} < {position for gold in golds for position in gold.accepted_first_errors}
    for gold in golds:
        assert [entry.lane.arm for entry in gold.trace.queue_entries.all()] == ["gold"]
        has_error = gold.accepted_first_errors != [None]
        assert gold.ratings.filter(rating=-1, option__position=0).exists() == has_error


def give_consent_and_read_guideline(rater: Rater, now: dt.datetime) -> None:
    """Give consent and acknowledge the guideline."""
    guideline, text = rater.project.guideline, rater.project.consent_text
    assert guideline is not None
    assert text is not None
    assert rater.user is not None
    onboarding.give_consent(rater=rater, text=text, by=rater.user, now=now)
    onboarding.acknowledge_guideline(rater=rater, guideline=guideline, by=rater.user, now=now)


def test_make_adds_a_training_and_a_screening_set(demo: make_projects.DemoProjects, now: dt.datetime) -> None:
    rater = Rater.objects.get(project__slug="demo-maths", user=demo.annotator)
    give_consent_and_read_guideline(rater, now)
    assert queue.claim_trace(rater_id=rater.pk, now=now).purpose == "training"
    assert gold_sets.load_set_progress(rater=rater, purpose=AssignmentPurpose.TRAINING) == (0, 3)
    assert gold_sets.load_set_progress(rater=rater, purpose=AssignmentPurpose.SCREENING) == (0, 4)
    training = Gold.objects.filter(use="training")
    assert {len(gold.accepted_first_errors) for gold in training} == {1}
    errors = GoldRating.objects.filter(gold__in=training, rating=-1, option__position=0)
    assert errors.count() == sum(gold.accepted_first_errors != [None] for gold in training) > 0
    assert not errors.filter(explanation="").exists()


def test_make_leaves_work_for_the_annotator(demo: make_projects.DemoProjects, now: dt.datetime) -> None:
    for project in demo.projects:
        rater = Rater.objects.get(project=project, user=demo.annotator)
        give_consent_and_read_guideline(rater, now)
        if project.protocol == Protocol.LIVE:
            live_project.show(live_project.begin(rater, now), now)
            assert LiveOption.objects.filter(request__session__rater=rater).count() > 1
            continue
        claim = queue.claim_trace(rater_id=rater.pk, now=now, chance=0.9)
        assert claim.trace_id in set(project.traces.values_list("pk", flat=True))
        work = QueueEntry.objects.filter(lane__project=project).exclude(lane__arm__in=["gold", "training", "screening"])
        assert work.count() + Gold.objects.filter(trace__project=project).count() == project.traces.count()


def test_make_gives_each_person_their_role(demo: make_projects.DemoProjects) -> None:
    for project in demo.projects:
        assert roles.user_may(demo.lead, roles.Action.GUIDE, project)
        assert roles.user_may(demo.annotator, roles.Action.RATE, project)
        assert not roles.user_may(demo.annotator, roles.Action.READ, project)
        assert roles.user_may(demo.engineer, roles.Action.BRING_IN, project)
        assert project.guideline is not None
