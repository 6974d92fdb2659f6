"""The long table: a row for each option of each step, with what every rater said of it, what the project stands behind,
how the trace was chosen and where it came from. Contested traces and steps behind an error are here too: what is
said of them is in `ratings`, and `label` is empty."""

from collections.abc import Iterator, Sequence
from typing import Any

from formats.columns import Columns, OutputRow
from formats.examples import AgreedLabels, RowTally, TraceExample
from formats.labeled_paths import LabelRule
from formats.records import JudgmentRecord, TurnRecord
from formats.rows import ExportRow, RowFacts

_RATING: Columns = {
    "rater": "string",
    "rating": "int64",
    "flagged": "bool",
    "category": "string",
    "reason": "string",
    "value": "float64",
    "active_ms": "int64",
    "is_chosen": "bool",
    "submission": "int64",
    "revision": "int64",
    "generation": "int64",
    "guideline": "int64",
    "purpose": "string",
    "population": "string",
    "origin": "string",
    "is_assisted": "bool",
    "saw_reference_answer": "bool",
    "finish_reason": "string",
}
COLUMNS: Columns = {
    "trace": "int64",
    "trace_ref": "string",
    "problem": "string",
    "problem_digest": "string",
    "domain": "string",
    "step": "int64",
    "step_kind": "string",
    "is_rateable": "bool",
    "option": "int64",
    "text": "string",
    "ratings": [_RATING],
    "n_raters": "int64",
    "n_at_risk": "int64",
    "p_correct": "float64",
    "assisted_p_correct": "float64",
    "posterior_correct": "float64",
    "assisted_posterior_correct": "float64",
    "label": "int64",
    "confidence": "float64",
    "consensus_revision": "int64",
    "is_contested": "bool",
    "arm": "string",
    "q": "float64",
    "batch": "int64",
    "rank": "int64",
    "weight": "float64",
    "prm": "string",
    "prm_score": "float64",
    "step_prm": "string",
    "step_score": "float64",
    "is_right": "bool",
    "base_model": "string",
    "policy": "string",
    "scaffold": "string",
    "segmenter": "string",
    "source": "string",
    "licence": "string",
}


def write_rows(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    turns = [(each, _turns(each)) for each in example.readings if each.facts.submission is not None]
    labels = _labels(example.agreed)
    about, scores = _trace_columns(example), example.step_scores
    for step, (kind, is_rateable, texts) in enumerate(_steps(example, [each for _, each in turns])):
        at_risk, p_correct = _at_risk_columns(example, step)
        beside = _assisted_columns(example, step) if is_rateable else _NO_ASSISTED_COLUMNS
        for option, text in enumerate(texts):
            said = (_find_rating(reading.facts, of.get(step), option, texts) for reading, of in turns)
            ratings = [each for found in said for each in found]
            label = labels.get((step, option))
            yield {
                **about,
                "step": step,
                "step_kind": kind,
                "is_rateable": is_rateable,
                "option": option,
                "text": text,
                "ratings": ratings,
                "n_raters": sum(each["rating"] is not None for each in ratings),
                "n_at_risk": at_risk if is_rateable else None,
                "p_correct": p_correct if option == 0 and is_rateable else _share(ratings),
                **(beside if option == 0 else _NO_ASSISTED_COLUMNS),
                "label": label[0] if label else None,
                "confidence": label[1] if label else None,
                "step_score": scores[step] if option == 0 and step < len(scores) else None,
            }


def _labels(agreed: AgreedLabels | None) -> dict[tuple[int, int], tuple[int, float]]:
    """None behind the first error, as in every other format; where raters rate every step, `ratings` tell of it."""
    if agreed is None:
        return {}
    return {
        (step, option): (rating, confidence)
        for step, option, rating, confidence, _ in agreed.labels
        if agreed.first_error is None or step <= agreed.first_error
    }


def _trace_columns(example: TraceExample) -> OutputRow:
    facts = example.facts
    return {
        "trace": facts.trace,
        "trace_ref": facts.ref,
        "problem": facts.text,
        "problem_digest": facts.problem_digest,
        "domain": facts.domain,
        "consensus_revision": example.agreed.revision if example.agreed else None,
        "is_contested": _to_bool(facts.is_contested),
        "arm": facts.arm,
        "q": facts.q,
        "batch": facts.batch,
        "rank": facts.rank,
        "weight": example.weight,
        "prm": facts.prm or "",
        "prm_score": facts.prm_score,
        "step_prm": facts.score_version,
        "is_right": example.record.is_right,
        "base_model": facts.base_model or "",
        "policy": facts.policy or "",
        "scaffold": facts.scaffold or "",
        "segmenter": facts.segmenter or "",
        "source": facts.source or "",
        "licence": example.licence,
    }


def _turns(reading: ExportRow) -> dict[int, TurnRecord]:
    return {turn.position: turn for turn in reading.record.submissions[0].turns}


def _steps(example: TraceExample, turns: list[dict[int, TurnRecord]]) -> Iterator[tuple[str, bool, list[str]]]:
    """Kind and texts of each step: the trace's own, and those that stand behind its end in a rater's turns alone."""
    own = example.record.steps
    for step in own:
        yield step.kind, step.is_rateable, [option.text for option in step.options]
    last = max((position for of in turns for position in of), default=-1)
    for position in range(len(own), last + 1):
        shown = [each.text for of in turns if position in of for each in of[position].shown or ()]
        yield "reasoning", True, list(dict.fromkeys(shown))


def _find_rating(facts: RowFacts, turn: TurnRecord | None, option: int, texts: list[str]) -> Iterator[OutputRow]:
    """What this rater said of this option. Two options may read alike: the second such that was shown is the second."""
    if turn is None:
        return
    text = texts[option]
    before = texts[:option].count(text)
    alike = [place for place, each in enumerate(turn.shown or ()) if each.text == text]
    if len(alike) <= before or turn.shown is None:
        return
    place = alike[before]
    yield _rating(facts, turn, turn.shown[place], is_chosen=turn.chosen == place)


def _rating(facts: RowFacts, turn: TurnRecord, said: JudgmentRecord, *, is_chosen: bool) -> dict[str, Any]:
    return {
        "rater": facts.labeler or facts.machine or "",
        "rating": said.rating,
        "flagged": said.flagged,
        "category": said.category,
        "reason": said.reason,
        "value": said.value,
        "active_ms": turn.active_ms,
        "is_chosen": is_chosen,
        "submission": facts.submission,
        "revision": facts.revision,
        "generation": facts.exported_generation,
        "guideline": facts.guideline,
        "purpose": facts.purpose,
        "population": facts.population,
        "origin": facts.origin,
        "is_assisted": _to_bool(facts.is_assisted),
        "saw_reference_answer": _to_bool(facts.saw_reference_answer),
        "finish_reason": facts.finish_reason,
    }


def _to_bool(value: bool | None) -> bool | None:
    return None if value is None else bool(value)


def _at_risk_columns(example: TraceExample, step: int) -> tuple[int, float | None]:
    """How many readings of people who saw no score had seen no error before this step, and the share of those that name
    a place, or none at all, which name it behind this step: P(E > t)."""
    blind = (each for each in example.said if each.is_blind)
    at_risk = sum(each.first_error is None or each.first_error >= step for each in blind)
    return at_risk, _share_past_step(example.votes(), step)


def _share_past_step(votes: list[int | None], step: int) -> float | None:
    return sum(place is None or place > step for place in votes) / len(votes) if votes else None


def _assisted_columns(example: TraceExample, step: int) -> OutputRow:
    """The same with machines and whoever saw scores, and by the posteriors of the consensus, where it has them."""
    agreed = example.agreed
    return {
        "assisted_p_correct": _share_past_step(example.votes(assisted=True), step),
        "posterior_correct": _posterior_past_step(agreed.posterior if agreed else None, step),
        "assisted_posterior_correct": _posterior_past_step(agreed.assisted_posterior if agreed else None, step),
    }


def _posterior_past_step(posterior: Sequence[float] | None, step: int) -> float | None:
    return None if posterior is None else min(sum(posterior[step + 1 :]), 1.0)


_NO_ASSISTED_COLUMNS: OutputRow = dict.fromkeys(
    ("assisted_p_correct", "posterior_correct", "assisted_posterior_correct")
)


def _share(ratings: list[dict[str, Any]]) -> float | None:
    rated = [each["rating"] for each in ratings if each["rating"] is not None]
    return sum(rating >= 0 for rating in rated) / len(rated) if rated else None
