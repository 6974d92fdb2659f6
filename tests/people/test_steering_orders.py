"""Commands that tag, order and assign traces, and print pay."""

import csv
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from labeling import queue
from labeling.models import Lane, Project, QueueEntry, Rater, RaterGroup, SteeringRule, Trace, TraceTag
from labeling.quality import workdays
from tests import factories
from tests.people.personas import LoggedInPersonas, Personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(personas: LoggedInPersonas) -> Personas:
    return personas.cast


def run(command: str, *arguments: str) -> str:
    out = StringIO()
    call_command(command, *arguments, "--project", "sums", stdout=out, stderr=out)
    return out.getvalue()


def test_steer_traces_tags_and_puts_first(cast: Personas) -> None:
    one, two = (factories.make_trace(cast.project) for _ in range(2))
    Trace.objects.filter(pk=one.pk).update(metadata={"level": 5, "name": "a"})
    queue.enqueue(project_id=cast.project.pk, arm="uniform", trace_ids=[one.pk, two.pk], slots=2, now=factories.NOW)
    run("steer_traces", "tag", "--tag", "hard", "--metadata", "level=5", "--metadata", "name=a", "--by", "lead")
    assert list(TraceTag.objects.values_list("trace", "name")) == [(one.pk, "hard")]
    run("rater_groups", "--save", "Geometry", "--rater", "annotator")
    run("steer_traces", "first", "--tagged", "hard", "--group", "Geometry")
    assert Lane.objects.get(arm="chosen").entries.get().trace_id == one.pk
    run("rater_groups", "--delete", "Geometry")
    assert not QueueEntry.objects.open().filter(lane__arm="chosen").exists()


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("steer_traces", ["first"]),
        ("steer_traces", ["tag", "--trace", "1"]),
        ("steer_traces", ["first", "--trace", "1", "--by", "nobody"]),
        ("rater_groups", ["--save", "x", "--rater", "nobody"]),
        ("rater_groups", ["--delete", "x"]),
        ("steering_rules", ["--share", "2"]),
        ("steering_rules", ["--share", "1", "--group", "x"]),
        ("steering_rules", ["--stop", "1"]),
    ],
)
def test_what_does_not_exist_is_refused(cast: Personas, command: str, arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        run(command, *arguments)
    assert not RaterGroup.objects.exists()


def test_steering_rules_are_made_listed_and_stopped(cast: Personas) -> None:
    made = run("steering_rules", "--share", "0.25", "--domain", "geometry")
    rule = SteeringRule.objects.get()
    assert str(rule.pk) in made
    assert "0.25" in made
    assert str(rule.pk) not in run("steering_rules", "--stop", str(rule.pk))


@pytest.mark.parametrize(("arguments", "n"), [([], 1), (["--until", "2001-01-01"], 0)])
def test_list_pay_prints_csv(cast: Personas, arguments: list[Any], n: int) -> None:
    Project.objects.filter(pk=cast.project.pk).update(pay_per_hour=Decimal(20))
    rater = Rater.objects.get(user=cast.annotator)
    factories.make_submitted(rater, factories.make_trace(cast.project), ms=3_600_000)
    workdays.update_workdays(project_id=cast.project.pk, now=factories.NOW)
    rows = list(csv.DictReader(StringIO(run("list_pay", *arguments))))
    assert [row["username"] for row in rows] == ["annotator"] * n
