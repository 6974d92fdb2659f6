"""The formats that know right and wrong alone: TRL's stepwise supervision, Math-Shepherd, RLHFlow.

Beside each stands a file with the weight of each row, line for line: the formats have no place for it.
"""

from collections.abc import Callable, Iterator
from functools import partial

from exports.formats import path
from exports.formats.columns import Columns
from exports.formats.columns import Row as Written
from exports.formats.examples import Example
from exports.formats.path import Row, Rule
from exports.formats.tally import Tally, Unwritable

TAG = "ки"
NOT_RATED = "no rated step"

TRL: Columns = {"prompt": "string", "completions": ["string"], "labels": ["bool"]}
MATH_SHEPHERD: Columns = {"input": "string", "label": "string", "task": "string"}
RLHFLOW: Columns = {"conversations": [{"role": "string", "content": "string"}]}


def _rows(example: Example, rule: Rule, tally: Tally, *, shape: Callable[[Row, str], Written]) -> Iterator[Written]:
    for facts, record in example.labelled(rule, tally):
        row = None
        for row in path.rows(record, rule):
            try:
                written = shape(row, record.problem.domain)
            except Unwritable as error:
                tally.leave_out(str(error))
                continue
            tally.add(row.labels, row.n_characters)
            rater = None if example.is_consensus else facts.labeler
            beside = {"weight": example.weight, "q": facts.q, "arm": facts.arm, "trace": facts.trace, "rater": rater}
            tally.beside.append(beside)
            yield written
        if row is None:
            tally.leave_out(NOT_RATED)


def _trl(row: Row, domain: str) -> Written:
    """Truth values and nothing else: a trainer makes integers of them and dies of any other."""
    return {"prompt": row.prompt, "completions": row.steps, "labels": row.labels}


def _tagged(row: Row, domain: str) -> Written:
    """The same text twice, with a tag and with a sign after each step. A tag inside a step would shift all labels. The
    task is the problem's domain, as it is where such files are read."""
    if any(TAG in text for text in (row.prompt, *row.steps)):
        raise Unwritable(f'the tag "{TAG}" is in the text')
    signs = ["+" if label else "-" for label in row.labels]
    return {"input": _joined(row, [TAG] * len(signs)), "label": _joined(row, signs), "task": domain}


def _joined(row: Row, marks: list[str]) -> str:
    steps = zip(row.steps, marks, strict=True)
    lines = (f"Step {number}: {text} {mark}" for number, (text, mark) in enumerate(steps, start=1))
    return f"{row.prompt} " + "\n".join(lines)


def _conversation(row: Row, domain: str) -> Written:
    said: list[dict[str, str]] = []
    for number, (text, label) in enumerate(zip(row.steps, row.labels, strict=True)):
        content = text if number else f"{row.prompt} {text}"
        said += [{"role": "user", "content": content}, {"role": "assistant", "content": "+" if label else "-"}]
    return {"conversations": said}


trl = partial(_rows, shape=_trl)
math_shepherd = partial(_rows, shape=_tagged)
rlhflow = partial(_rows, shape=_conversation)
