"""Generate each scenario without a slip and with each of two slips. Pure."""

from collections.abc import Callable

from demo import generated_content
from demo.agents import bugfix, logs, orders, trains
from demo.agents.script import AgentScript

SCENARIOS: tuple[tuple[str, Callable[[AgentScript, str], generated_content.GeneratedTrace], tuple[str, ...]], ...] = (
    ("orders", orders.run_scenario, orders.SLIPS),
    ("logs", logs.run_scenario, logs.SLIPS),
    ("trains", trains.run_scenario, trains.SLIPS),
    ("bugfix", bugfix.run_scenario, bugfix.SLIPS),
)


def generate_agent_traces(*, seed: str) -> list[generated_content.GeneratedTrace]:
    made = []
    for name, run_scenario, slips in SCENARIOS:
        for number, slip in enumerate(["", *generated_content.seeded_random(seed, name, "slips").sample(slips, 2)]):
            ref = f"{name}-{number}"
            made.append(run_scenario(AgentScript(numbers=generated_content.seeded_random(seed, ref), slip=slip), ref))
    generated_content.seeded_random(seed, "order").shuffle(made)
    return made
