"""The work page and the server compute the same submit state, and the same ratings that a submit confirms."""

import random
from typing import Any

import pytest

from formats import label_sets
from formats.label_sets import RatedStep
from labeling.models.project import ClauseRule
from labeling.projects import protocols, trace_questions
from labeling.projects.protocols import ProtocolStep
from labeling.projects.trace_questions import QuestionKind, TraceQuestion
from tests import factories
from tests.journeys.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)

SUBMIT_STATES = """async (traces) => {
  const { TraceState } = await import('/static/js/work/trace_state.js');
  const works = traces.map((trace) => new TraceState(trace));
  return works.map((work) => [work.submitState(), work.promise().ratings]);
}"""


QUESTIONS = (
    *trace_questions.QUESTION_TEMPLATES["math"].questions,
    TraceQuestion("note", "Note", QuestionKind.TEXT),
    TraceQuestion("more", "More", QuestionKind.TEXT, is_required=False),
)
VALUES: list[dict[str, str]] = [{}, {"final_label": "2", "note": " "}, {"final_label": "-1", "note": "x"}]

CITATION = {"clause": "1", "digest": "d", "version": "1"}
CLAUSE = {"code": "1", "title": "One", "digest": "d", "excerpt": "", "version": "1"}


def trace_payload(
    protocol: str,
    steps: list[ProtocolStep],
    requires_kind: bool = False,
    answers: dict[str, str] | None = None,
    clause_rule: str = "",
) -> dict[str, Any]:
    """The parts of a trace, as the work page gets it, that the submit state depends on."""
    asked = {} if answers is None else {"questions": trace_questions.store_questions(QUESTIONS), "answers": answers}
    return {
        **asked,
        "asks_error_category": requires_kind,
        "needs_error_category": requires_kind,
        "asks_clauses": clause_rule,
        "clauses": [CLAUSE],
        "rule": protocols.RULES[protocol]._asdict(),
        "steps": [
            {
                "position": step.position,
                "is_rateable": step.is_rateable,
                "options": [{"position": option} for option in range(len(step.ratings))],
            }
            for step in steps
        ],
        "turns": [
            {
                "step": step.position,
                "judgments": [
                    {
                        "option": option,
                        "rating": rating,
                        "category": "other" if step.has_kind else "",
                        "citations": [CITATION] if step.has_clause else None,
                    }
                    for option, rating in enumerate(step.ratings)
                ],
            }
            for step in steps
        ],
    }


def test_page_and_server_compute_the_same_submit_state(visit: Visit) -> None:
    chance = random.Random(20260101)
    cases = [
        (
            protocol,
            [
                ProtocolStep(
                    at,
                    chance.random() < 0.8,
                    tuple(chance.choices([1, 0, -1, None], k=chance.randint(1, 3))),
                    chance.random() < 0.7,
                    chance.random() < 0.7,
                )
                for at in range(chance.randint(1, 5))
            ],
            chance.random() < 0.5,
            chance.choice([None, *VALUES]),
            chance.choice(ClauseRule.values),
        )
        for protocol in protocols.RULES
        for _ in range(400)
    ]
    states = visit(factories.make_user(), "/").evaluate(SUBMIT_STATES, [trace_payload(*case) for case in cases])
    assert states == [
        [
            protocols.submit_state(
                protocol,
                steps,
                requires_kind=requires_kind,
                clause_rule=clause_rule,
                unanswered=0 if answers is None else len(trace_questions.find_unanswered(QUESTIONS, answers)),
            )._asdict(),
            [list(each) for each in protocols.list_ratings(protocol, steps)],
        ]
        for protocol, steps, requires_kind, answers, clause_rule in cases
    ]


AFTER_ERROR = """async (traces) => {
  const { TraceState } = await import('/static/js/work/trace_state.js');
  return traces.map((trace) => [...new TraceState(trace).stepsAfterError()]);
}"""


def test_page_and_exports_agree_on_the_steps_that_depend_on_an_error(visit: Visit) -> None:
    chance = random.Random(20260102)
    cases = [
        [RatedStep(chance.choice([1, 0, -1]), chance.choice(["", *label_sets.ERROR_LINKS])) for _ in range(6)]
        for _ in range(400)
    ]
    traces = [
        trace_payload("recovery", [ProtocolStep(at, True, (each.rating,)) for at, each in enumerate(steps)])
        for steps in cases
    ]
    for trace, steps in zip(traces, cases, strict=True):
        for turn, step in zip(trace["turns"], steps, strict=True):
            turn["judgments"][0]["error_link"] = step.error_link
    shown = visit(factories.make_user(), "/").evaluate(AFTER_ERROR, traces)
    for steps, after in zip(cases, shown, strict=True):
        derived = label_sets.derive_labels(steps, protocol="recovery", label_set="propagated_ternary")
        depending = {at for at, link in after if link == ""}
        assert derived.labels == tuple(-1 if at in depending else step.rating for at, step in enumerate(steps))
