"""The work page and the server compute the same submit state, and the same ratings that a submit confirms."""

import random
from typing import Any

import pytest

from labeling.projects import protocols
from labeling.projects.protocols import ProtocolStep
from tests import factories
from tests.journeys.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)

SUBMIT_STATES = """async (traces) => {
  const { TraceState } = await import('/static/js/work/trace_state.js');
  const works = traces.map((trace) => new TraceState(trace));
  return works.map((work) => [work.submitState(), work.promise().ratings]);
}"""


def trace_payload(protocol: str, steps: list[ProtocolStep]) -> dict[str, Any]:
    """The parts of a trace, as the work page gets it, that the submit state depends on."""
    return {
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
                "judgments": [{"option": option, "rating": rating} for option, rating in enumerate(step.ratings)],
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
                ProtocolStep(at, chance.random() < 0.8, tuple(chance.choices([1, 0, -1, None], k=chance.randint(1, 3))))
                for at in range(chance.randint(1, 5))
            ],
        )
        for protocol in protocols.RULES
        for _ in range(400)
    ]
    states = visit(factories.make_user()).evaluate(SUBMIT_STATES, [trace_payload(*case) for case in cases])
    assert states == [
        [protocols.submit_state(*case)._asdict(), [list(each) for each in protocols.list_ratings(*case)]]
        for case in cases
    ]
