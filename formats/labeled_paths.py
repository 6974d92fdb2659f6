"""From what a rater said of a trace to rows of right and wrong steps: one rule for every format that knows no more.

- What comes after the first error is absent, never filled in; so is what comes after a step that nobody rated.
- Neutral counts as right, unless asked otherwise; left out, the row ends before it.
- An alternative that was not chosen makes a row of its own: the steps before it, and it.
- A step in the rater's own words has no rating: the row ends before it, unless such steps are taken for right.
- What an agent saw belongs to the prompt: each step of such a trace is a row, with all that came before as its prompt.
- A row without a step is never written.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from formats.records import JudgmentRecord, TraceRecord, TurnRecord


class LabelRule(Struct, frozen=True, forbid_unknown_fields=True):
    neutral: Literal["positive", "negative", "drop"] = "positive"
    human_steps: Literal["omit", "positive"] = "omit"
    has_alternatives: bool = True
    takes_cut_off: bool = True  # what a rater gave up on, up to there
    takes_contested: bool = True  # what each rater said of a trace on which they parted


class LabeledPath(Struct, frozen=True):
    prompt: str
    steps: list[str]
    labels: list[bool]

    @property
    def n_characters(self) -> int:
        return len(self.prompt) + sum(map(len, self.steps))


def build_labeled_paths(record: TraceRecord, rule: LabelRule) -> Iterator[LabeledPath]:
    """The rows of one submission: the path that was taken, and each alternative along it."""
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
    """The step that the path goes through, and whether it is right. None: the path ends before it."""
    judgment = get_taken_judgment(turn)
    if judgment is not None:
        return _label_judgment(judgment, rule)
    if turn.written is not None and rule.human_steps == "positive":
        return turn.written.text, True
    return None


def get_taken_judgment(turn: TurnRecord) -> JudgmentRecord | None:
    """What was chosen; where nothing was, and nothing was written instead, the first that was shown."""
    if not turn.shown:
        return None
    if turn.chosen is not None:
        return turn.shown[turn.chosen]
    return None if turn.written is not None or turn.shown[0].rating != -1 else turn.shown[0]


def _label_alternatives(turn: TurnRecord, rule: LabelRule) -> Iterator[tuple[str, bool]]:
    taken = get_taken_judgment(turn)
    for judgment in turn.shown or ():
        labelled = None if judgment is taken else _label_judgment(judgment, rule)
        if labelled:
            yield labelled


def _label_judgment(judgment: JudgmentRecord, rule: LabelRule) -> tuple[str, bool] | None:
    if judgment.rating is None or (judgment.rating == 0 and rule.neutral == "drop"):
        return None
    return judgment.text, judgment.rating > 0 or (judgment.rating == 0 and rule.neutral == "positive")
