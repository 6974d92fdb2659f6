"""Runs each scenario once rightly and once with each of two slips. Pure."""

from collections.abc import Callable

from demo import told
from demo.agents import bugfix, logs, orders, trains
from demo.agents.script import Script

SCENARIOS: tuple[tuple[str, Callable[[Script, str], told.ToldTrace], tuple[str, ...]], ...] = (
    ("orders", orders.tell, orders.SLIPS),
    ("logs", logs.tell, logs.SLIPS),
    ("trains", trains.tell, trains.SLIPS),
    ("bugfix", bugfix.tell, bugfix.SLIPS),
)


def generate(*, seed: str) -> list[told.ToldTrace]:
    made = []
    for name, tell, slips in SCENARIOS:
        for number, slip in enumerate(["", *told.dice(seed, name, "slips").sample(slips, 2)]):
            ref = f"{name}-{number}"
            made.append(tell(Script(numbers=told.dice(seed, ref), slip=slip), ref))
    told.dice(seed, "order").shuffle(made)
    return made
