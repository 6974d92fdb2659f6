"""Writers: examples in, rows out. Pure: no Django, no models, no clock."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from exports.formats import booleans, first_errors, outcomes, pairs, prm800k, processbench, steps
from exports.formats.columns import Columns, Row
from exports.formats.examples import Example
from exports.formats.path import Rule
from exports.formats.tally import Tally

Rows = Callable[[Example, Rule, Tally], Iterator[Row]]


class Format(NamedTuple):
    """A shape of rows. PRM800K has none: its lines are bytes that must come back as they were."""

    label: str
    module: str
    columns: Columns
    rows: Rows | None
    has_weights: bool = False  # a file with the weight of each row stands beside it
    wants_raters: bool = True  # otherwise a row is of the trace, whoever rated it
    has_step_scores: bool = False  # what a PRM says of each step

    @property
    def is_table(self) -> bool:
        return self.rows is not None


FORMATS: dict[str, Format] = {
    "prm800k": Format("PRM800K", prm800k.__name__, prm800k.COLUMNS, None),
    "trl": Format("TRL stepwise supervision", booleans.__name__, booleans.TRL, booleans.trl, True),
    "math_shepherd": Format("Math-Shepherd", booleans.__name__, booleans.MATH_SHEPHERD, booleans.math_shepherd, True),
    "rlhflow": Format("RLHFlow", booleans.__name__, booleans.RLHFLOW, booleans.rlhflow, True),
    "processbench": Format("ProcessBench", processbench.__name__, processbench.COLUMNS, processbench.rows),
    "steps": Format("long table of steps", steps.__name__, steps.COLUMNS, steps.rows, has_step_scores=True),
    "pairs": Format("preference pairs", pairs.__name__, pairs.COLUMNS, pairs.rows),
    "first_errors": Format("first errors", first_errors.__name__, first_errors.COLUMNS, first_errors.rows),
    "outcomes": Format("outcomes", outcomes.__name__, outcomes.COLUMNS, outcomes.rows, wants_raters=False),
}
