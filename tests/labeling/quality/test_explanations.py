"""Agreement on kinds and severities of errors equals that of another implementation."""

import random
from typing import Any

import krippendorff
import numpy as np
import pytest

from labeling import assignments
from labeling.models import Project, Rater
from labeling.projects import trace_questions
from labeling.projects.trace_questions import QuestionChoice, QuestionKind, TraceQuestion
from labeling.quality import explanations, new_submissions
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.quality import submitted_work
from tests.labeling.quality.test_set_aside import put_aside

pytestmark = pytest.mark.django_db
KINDS = ("reasoning", "calculation", "misread")


@pytest.fixture
def project() -> Project:
    return factories.make_project(protocol="every_step", asks_error_category=True, asks_severity=True)


def explain_steps(project: Project, n_raters: int, n_steps: int) -> Any:
    """Let raters explain some negative steps of a trace. Return kind and severity by rater and step; nan for none."""
    chance, trace = random.Random(7), factories.make_trace(project, [f"Step {n}." for n in range(n_steps)])
    truths = [(chance.randrange(3), chance.randint(1, 3)) for _ in range(n_steps)]
    answers = np.full((2, n_raters, n_steps), np.nan)
    for number, rater in enumerate(submitted_work.make_raters(project, n_raters)):
        client = WorkPageClient(factories.make_assignment(rater, trace))
        for step, (kind, severity) in enumerate(truths):
            if chance.random() < 0.2:
                client.send(client.write(step, 1))
                continue
            kind = chance.randrange(3) if chance.random() < 0.3 else kind
            severity = chance.randint(1, 3) if chance.random() < 0.3 else severity
            client.send(client.write(step, -1, category=KINDS[kind], severity=severity))
            answers[:, number, step] = kind, severity
        assignments.submit(**client.place, now=factories.NOW, by=rater.user)
    new_submissions.process_new_submissions(now=factories.NOW)
    submitted_work.refresh_quality(now=factories.NOW)
    return answers


def test_alpha_of_kinds_and_severities(project: Project) -> None:
    kinds, severities = explain_steps(project, 3, 8)
    found = explanations.compute_explanation_agreement(project.pk)
    expected = krippendorff.alpha(reliability_data=kinds, level_of_measurement="nominal")
    assert found["kind"]["value"] == pytest.approx(expected)
    expected = krippendorff.alpha(reliability_data=severities, level_of_measurement="ordinal")
    assert found["severity"]["value"] == pytest.approx(expected)
    pairable = int(((~np.isnan(kinds)).sum(axis=0) > 1).sum())
    assert (found["kind"]["n_paired"], found["severity"]["n_paired"]) == (pairable, pairable)
    put_aside(Rater.objects.order_by("pk")[0])
    without = explanations.compute_explanation_agreement(project.pk)
    expected = krippendorff.alpha(reliability_data=kinds[1:], level_of_measurement="nominal")
    assert without["kind"]["value"] == pytest.approx(expected)


def test_alpha_of_several_kinds_compares_sets(project: Project) -> None:
    """The oracle computes alpha from the same sets with the distance of the paper, written out again."""
    answers = [("a", "a", "a b"), ("b c", "b c", "c"), ("a", "b", ""), ("a b c", "a b", "a b c")]
    trace = factories.make_trace(project, [f"Step {n}." for n in range(len(answers))])
    for number, rater in enumerate(submitted_work.make_raters(project, 3)):
        client = WorkPageClient(factories.make_assignment(rater, trace))
        client.send(*(client.write(at, -1, category=given[number]) for at, given in enumerate(answers)))
        assignments.submit(**client.place, now=factories.NOW, by=rater.user)
    new_submissions.process_new_submissions(now=factories.NOW)
    submitted_work.refresh_quality(now=factories.NOW)
    units = [[set(each.split()) for each in given if each] for given in answers]
    values = [(one, unit) for unit in units for one in unit]
    observed = sum(
        masi(one, other) / (len(unit) - 1)
        for unit in units
        for place, one in enumerate(unit)
        for other in unit[:place] + unit[place + 1 :]
    )
    expected = sum(masi(one, other) for one, _ in values for other, _ in values)
    alpha = 1 - (len(values) - 1) * observed / expected
    assert explanations.compute_explanation_agreement(project.pk)["kind"]["value"] == pytest.approx(alpha)


def masi(one: set[str], other: set[str]) -> float:
    monotone = 1 if one == other else 2 / 3 if one < other or other < one else 1 / 3 if one & other else 0
    return 1 - monotone * len(one & other) / len(one | other)


def test_without_answers_there_is_a_reason(project: Project) -> None:
    found = explanations.compute_explanation_agreement(project.pk)
    assert all(row["value"] is None and row["reason"] and not row["n_paired"] for row in found.values())


def test_alpha_of_answers_on_the_whole_trace(project: Project) -> None:
    verdict = TraceQuestion("verdict", "?", choices=tuple(QuestionChoice(c, c) for c in "abc"))
    scale = TraceQuestion("scale", "?", QuestionKind.SCALE, tuple(QuestionChoice(c, c) for c in "1234"))
    note = TraceQuestion("note", "?", QuestionKind.TEXT)
    project.trace_questions = trace_questions.store_questions([verdict, scale, note])
    project.save()
    chance, n_raters, n_traces = random.Random(3), 3, 9
    traces = [factories.make_trace(project, ["One."]) for _ in range(n_traces)]
    given = np.full((2, n_raters, n_traces), np.nan)
    for number, rater in enumerate(submitted_work.make_raters(project, n_raters)):
        for place, trace in enumerate(traces):
            client = WorkPageClient(factories.make_assignment(rater, trace))
            choice = place % 3 if chance.random() < 0.6 else chance.randrange(3)
            level = place % 4 if chance.random() < 0.6 else chance.randrange(4)
            values = {"verdict": "abc"[choice], "scale": "1234"[level], "note": "x"}
            client.send(
                client.write(0, 1),
                *(client.write(0, None, kind="answer", option=None, question=q, text=v) for q, v in values.items()),
            )
            assignments.submit(**client.place, now=factories.NOW, by=rater.user)
            given[:, number, place] = choice, level
    new_submissions.process_new_submissions(now=factories.NOW)
    submitted_work.refresh_quality(now=factories.NOW)
    found = explanations.compute_answer_agreement(project)
    assert list(found) == ["verdict", "scale"]
    for (name, row), answers in zip(found.items(), given, strict=True):
        expected = krippendorff.alpha(
            reliability_data=answers, level_of_measurement="ordinal" if name == "scale" else "nominal"
        )
        assert (row["value"], row["n_paired"]) == (pytest.approx(expected), n_traces)
