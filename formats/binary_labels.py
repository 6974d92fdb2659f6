"""The formats that know right and wrong alone: TRL's stepwise supervision, Math-Shepherd, RLHFlow.

Beside each stands a file with the weight of each row, line for line: the formats have no place for it.
"""

from collections.abc import Callable, Iterator
from functools import partial

from formats import labeled_paths
from formats.columns import Columns
from formats.columns import OutputRow as Written
from formats.examples import RowTally, TraceExample, UnwritableRow
from formats.labeled_paths import LabeledPath, LabelRule

TAG = "ки"
NOT_RATED = "no rated step"

TRL_COLUMNS: Columns = {"prompt": "string", "completions": ["string"], "labels": ["bool"]}
MATH_SHEPHERD_COLUMNS: Columns = {"input": "string", "label": "string", "task": "string"}
RLHFLOW_COLUMNS: Columns = {"conversations": [{"role": "string", "content": "string"}]}


def _write_rows(
    example: TraceExample, rule: LabelRule, tally: RowTally, *, shape: Callable[[LabeledPath, str], Written]
) -> Iterator[Written]:
    for facts, record in example.labelled(rule, tally):
        row = None
        for row in labeled_paths.build_labeled_paths(record, rule):
            try:
                written = shape(row, record.problem.domain)
            except UnwritableRow as error:
                tally.leave_out(str(error))
                continue
            tally.add(row.labels, row.n_characters)
            rater = None if example.is_consensus else facts.labeler
            beside = {"weight": example.weight, "q": facts.q, "arm": facts.arm, "trace": facts.trace, "rater": rater}
            tally.beside.append(beside)
            yield written
        if row is None:
            tally.leave_out(NOT_RATED)


def _shape_trl(row: LabeledPath, domain: str) -> Written:
    """Truth values and nothing else: a trainer makes integers of them and dies of any other."""
    return {"prompt": row.prompt, "completions": row.steps, "labels": row.labels}


def _shape_math_shepherd(row: LabeledPath, domain: str) -> Written:
    """The same text twice, with a tag and with a sign after each step. A tag inside a step would shift all labels. The
    task is the problem's domain, as it is where such files are read."""
    if any(TAG in text for text in (row.prompt, *row.steps)):
        raise UnwritableRow(f'the tag "{TAG}" is in the text')
    signs = ["+" if label else "-" for label in row.labels]
    return {"input": _join_with_marks(row, [TAG] * len(signs)), "label": _join_with_marks(row, signs), "task": domain}


def _join_with_marks(row: LabeledPath, marks: list[str]) -> str:
    steps = zip(row.steps, marks, strict=True)
    lines = (f"Step {number}: {text} {mark}" for number, (text, mark) in enumerate(steps, start=1))
    return f"{row.prompt} " + "\n".join(lines)


def _shape_rlhflow(row: LabeledPath, domain: str) -> Written:
    said: list[dict[str, str]] = []
    for number, (text, label) in enumerate(zip(row.steps, row.labels, strict=True)):
        content = text if number else f"{row.prompt} {text}"
        said += [{"role": "user", "content": content}, {"role": "assistant", "content": "+" if label else "-"}]
    return {"conversations": said}


write_trl_rows = partial(_write_rows, shape=_shape_trl)
write_math_shepherd_rows = partial(_write_rows, shape=_shape_math_shepherd)
write_rlhflow_rows = partial(_write_rows, shape=_shape_rlhflow)
