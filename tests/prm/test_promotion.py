"""A person makes a PRM current: the concerns, what they require, and what is recorded."""

import datetime as dt
import json

import pytest
from django.core.management import CommandError, call_command

from events.models import Event
from labeling.models import Project
from prm import promotion, registry, scores
from prm.models import PRM, Generation
from prm.promotion import Concern
from prm.registry import PRMIdentity
from tests import factories
from tests.prm.backends import scorer_servers

pytestmark = pytest.mark.django_db
LATER = factories.NOW + dt.timedelta(days=1)


def register(project: Project, backend: str = "pushed", address: str = "") -> PRM:
    identity = PRMIdentity(backend, "m", address=address)
    return registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)


def judge(prm: PRM, verdict: str) -> None:
    """Record an evaluation and the gate's decision."""
    registry.record_evaluation(
        prm=prm, evaluation={"counts": {"traces": 9}}, audits={}, calibration={}, threshold=None, now=factories.NOW
    )
    number = Generation.objects.filter(project=prm.project).count() + 1
    Generation.objects.create(
        project=prm.project,
        number=number,
        candidate=prm,
        verdict=verdict,
        stage="done",
        started_at=factories.NOW,
        ended_at=factories.NOW,
    )


def push(prm: PRM) -> None:
    trace = factories.make_trace(prm.project)
    line = json.dumps({"trace": trace.pk, "scores": [0.5] * trace.n_steps}).encode()
    assert scores.push_scores(prm=prm, lines=[line], by=None, now=factories.NOW).added == 1


def test_pushed_prm_needs_an_evaluation_scores_and_the_gate() -> None:
    prm = register(factories.make_project())
    assert promotion.find_concerns(prm) == [Concern.UNEVALUATED, Concern.UNREACHABLE]
    push(prm)
    assert promotion.find_concerns(prm) == [Concern.UNEVALUATED]
    for verdict, concerns in (
        ("rejected", [Concern.REJECTED]),
        ("undecided", [Concern.UNDECIDED]),
        ("accepted", []),  # the latest decision counts
    ):
        judge(prm, verdict)
        assert promotion.find_concerns(prm) == concerns


def test_scorer_must_answer() -> None:
    project = factories.make_project()
    fake = scorer_servers.FakeVllmServer()
    with scorer_servers.running_scorer(fake) as address:
        prm = register(project, "vllm", address)
        judge(prm, "accepted")
        assert promotion.find_concerns(prm) == []
    assert promotion.find_concerns(prm) == [Concern.UNREACHABLE]


def test_reason_is_required_and_recorded() -> None:
    prm, user = register(factories.make_project()), factories.make_user()
    for options in ({}, {"is_confirmed": True}, {"is_confirmed": True, "reason": "  "}, {"reason": "I say so"}):
        with pytest.raises(promotion.PromotionRefused):
            promotion.promote_prm(prm=prm, by=user, now=LATER, **options)
    assert registry.current_prm(prm.project_id) is None
    promotion.promote_prm(prm=prm, by=user, now=LATER, is_confirmed=True, reason="The cluster pushes tonight.")
    assert registry.current_prm(prm.project_id) == prm
    (override,) = promotion.list_overrides(project_id=prm.project_id, prm=prm)
    assert override["at"] == LATER
    assert override["concerns"] == ["unevaluated", "unreachable"]
    assert override["reason"] == "The cluster pushes tonight."
    assert Event.objects.get(what=promotion.OVERRIDDEN).by == user.pk
    assert promotion.list_overrides(project_id=prm.project_id, until=factories.NOW) == []


def test_accepted_prm_needs_nothing_and_leaves_no_override() -> None:
    prm = register(factories.make_project())
    push(prm)
    judge(prm, "accepted")
    promotion.promote_prm(prm=prm, by=None, now=LATER)
    assert registry.current_prm(prm.project_id) == prm
    assert promotion.list_overrides(project_id=prm.project_id) == []


def test_command_asks_for_what_is_missing() -> None:
    project = factories.make_project()
    prm = register(project)
    options = ("--project", project.slug, "--prm", "1")
    for more in ((), ("--confirm",)):
        with pytest.raises(CommandError) as refused:
            call_command("make_prm_current", *options, *more)
        assert isinstance(refused.value.__cause__, promotion.PromotionRefused)
    with pytest.raises(CommandError):
        call_command("make_prm_current", "--project", project.slug, "--prm", "7", "--reason", "x")
    call_command("make_prm_current", *options, "--reason", "a trial")
    assert registry.current_prm(project.pk) == prm
