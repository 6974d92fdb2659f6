"""RLHFlow: a conversation in which the user sends the steps and the assistant answers + or -. Written, not read."""

from collections.abc import Iterator

from formats import examples
from formats.examples import Columns, LabeledPath, LabelRule, OutputRow, RowTally, TraceExample

COLUMNS: Columns = {"conversations": [{"role": "string", "content": "string"}], **examples.RATER_COLUMNS}


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    return examples.write_paths(example, rule, tally, _make_row)


def _make_row(path: LabeledPath, domain: str) -> OutputRow:
    messages: list[dict[str, str]] = []
    for number, (text, label) in enumerate(zip(path.steps, path.labels, strict=True)):
        content = text if number else f"{path.prompt} {text}"
        messages += [{"role": "user", "content": content}, {"role": "assistant", "content": "+" if label else "-"}]
    return {"conversations": messages}
