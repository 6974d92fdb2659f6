"""Convert a rater's labels to paths of right and wrong steps, for the formats that have no other labels.

- A path ends at the first error and before a step without a rating. Labels are never filled in.
- A neutral step is right by default. `LabelRule.neutral` makes it wrong, or ends the path before it.
- Each alternative that was not chosen makes a path of its own: the steps before it, then the alternative.
- A path ends before a step that the rater wrote, unless `LabelRule.human_steps` takes such steps for right.
- In an agent's trace, each step is a path of its own; everything before it, observations included, is its prompt.
- A path has at least one step.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from formats.records import JudgmentRecord, TraceRecord, TurnRecord


class LabelRule(Struct, frozen=True, forbid_unknown_fields=True):
    neutral: Literal["positive", "negative", "drop"] = "positive"
    human_steps: Literal["omit", "positive"] = "omit"
    has_alternatives: bool = True
    takes_cut_off: bool = True  # the rated part of submissions that gave up
    takes_contested: bool = True  # each rater's labels of contested traces


class LabeledPath(Struct, frozen=True):
    prompt: str
    steps: list[str]
    labels: list[bool]

    @property
    def n_characters(self) -> int:
        return len(self.prompt) + sum(map(len, self.steps))


def build_labeled_paths(record: TraceRecord, rule: LabelRule) -> Iterator[LabeledPath]:
    """Yield the paths of the first submission: the taken path, and one for each alternative along it."""
    if any(not step.is_rateable for step in record.steps):
        yield from _build_agent_paths(record, rule)
        return
    steps: list[str] = []
    labels: list[bool] = []
    for turn in record.submissions[0].turns if record.submissions else ():
        taken = _label_taken_step(turn, rule)
        if rule.has_alternatives:
            for text, is_right in _label_alternatives(turn, rule):
                yield LabeledPath(record.problem.text, [*steps, text], [*labels, is_right])
        if taken is None:
            break
        steps.append(taken[0])
        labels.append(taken[1])
        if not taken[1]:
            break
    if steps:
        yield LabeledPath(record.problem.text, steps, labels)


def _build_agent_paths(record: TraceRecord, rule: LabelRule) -> Iterator[LabeledPath]:
    turns = {turn.position: turn for submission in record.submissions[:1] for turn in submission.turns}
    prompt = record.problem.text
    for position, step in enumerate(record.steps):
        taken = _label_taken_step(turns[position], rule) if position in turns else None
        if taken:
            yield LabeledPath(prompt, [taken[0]], [taken[1]])
        if step.is_rateable and (taken is None or not taken[1]):
            return
        prompt += "\n\n" + (taken[0] if taken else step.options[0].text)


def _label_taken_step(turn: TurnRecord, rule: LabelRule) -> tuple[str, bool] | None:
    """Return the step on the path and whether it is right, or None if the path ends before it."""
    judgment = get_taken_judgment(turn)
    if judgment is not None:
        return _label_judgment(judgment, rule)
    if turn.written is not None and rule.human_steps == "positive":
        return turn.written.text, True
    return None


def get_taken_judgment(turn: TurnRecord) -> JudgmentRecord | None:
    """Return the judgment of the chosen option. If no step was chosen or written, it is the first one if negative."""
    if not turn.shown:
        return None
    if turn.chosen is not None:
        return turn.shown[turn.chosen]
    return None if turn.written is not None or turn.shown[0].rating != -1 else turn.shown[0]


def _label_alternatives(turn: TurnRecord, rule: LabelRule) -> Iterator[tuple[str, bool]]:
    taken = get_taken_judgment(turn)
    for judgment in turn.shown or ():
        if judgment is not taken and (labeled := _label_judgment(judgment, rule)):
            yield labeled


def _label_judgment(judgment: JudgmentRecord, rule: LabelRule) -> tuple[str, bool] | None:
    if judgment.rating is None or (judgment.rating == 0 and rule.neutral == "drop"):
        return None
    return judgment.text, judgment.rating > 0 or (judgment.rating == 0 and rule.neutral == "positive")
