"""Step table: one row per option of each step, with all ratings, the consensus, the sampling source and the provenance.

Contested traces and steps after an error are included: their ratings are in `ratings`, and `label` is null. If the
snapshot has a label set, `set_label` is the label that it derives from the ratings of one rater.
"""

from collections.abc import Iterator, Sequence

from formats import label_sets
from formats.examples import (
    CITATION_COLUMNS,
    EVIDENCE_COLUMNS,
    RATER_COLUMNS,
    AgreedLabels,
    Columns,
    LabelRule,
    OutputRow,
    RowTally,
    TraceExample,
    describe_rater,
    write_citations,
    write_evidence,
)
from formats.records import JudgmentRecord, StepRecord, TraceRecord, TurnRecord
from formats.rows import PARTIAL_VIEWS, ExportRow, RowFacts

# Columns with the names of attributes: of a judgment, and of the facts of its submission and its trace.
_JUDGMENT_COLUMNS = {
    "rating": "int64",
    "flagged": "bool",
    "category": "string",
    "reason": "string",
    "error_link": "string",
    "severity": "int64",
    "value": "float64",
}
_SUBMISSION_COLUMNS = {
    "submission": "int64",
    "revision": "int64",
    "guideline": "int64",
    "purpose": "string",
    "population": "string",
    "origin": "string",
    "is_assisted": "bool",
    "saw_reference_answer": "bool",
    "finish_reason": "string",
    "protocol": "string",
}
_FACT_COLUMNS = (
    *("trace", "problem_digest", "domain", "is_contested", "arm", "q", "batch", "rank", "prm_score"),
    "metadata",
)
_NAME_COLUMNS = ("prm", "base_model", "policy", "scaffold", "segmenter", "source")
_RATING: Columns = {
    **RATER_COLUMNS,
    **_JUDGMENT_COLUMNS,
    "evidence": [EVIDENCE_COLUMNS],
    "citations": [CITATION_COLUMNS],
    "missing_after": "string",
    "progress": "float64",
    "active_ms": "int64",
    "is_chosen": "bool",
    "generation": "int64",
    "set_label": "int64",
    "trace_answers": "string",
    **_SUBMISSION_COLUMNS,
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
    "message": "int64",
    "separator": "string",
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
    "metadata": "string",
}


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    turns = [(row, _index_turns(row.record)) for row in example.submitted]
    derived = [_index_derived(row, rule) for row in example.submitted]
    labels = _index_labels(example.agreed)
    columns, scores = _trace_columns(example), example.step_scores
    for step, (own, texts) in enumerate(_list_steps(example, [each for _, each in turns])):
        shares = _share_columns(example, step) if own.is_rateable else {}
        for option, text in enumerate(texts):
            own_ratings = (
                _find_rating(row.facts, own_turns.get(step), own_derived.get(step), option, texts)
                for (row, own_turns), own_derived in zip(turns, derived, strict=True)
            )
            ratings = [rating for rating in own_ratings if rating is not None]
            label, confidence = labels.get((step, option), (None, None))
            row = {
                **columns,
                "step": step,
                "step_kind": own.kind,
                "is_rateable": own.is_rateable,
                "message": own.source_position,
                "separator": own.separator if own.source_position is not None else None,
                "option": option,
                "text": text,
                "ratings": ratings,
                "n_raters": sum(rating["rating"] is not None for rating in ratings),
                "n_at_risk": shares.get("n_at_risk"),
                "p_correct": _share_positive(ratings),
                "label": label,
                "confidence": confidence,
            }
            if option == 0:
                row |= {**shares, "step_score": scores[step] if step < len(scores) else None}
            yield row


def _index_labels(agreed: AgreedLabels | None) -> dict[tuple[int, int], tuple[int, float]]:
    """Map step and option to label and confidence. As in every format, nothing after the first error has a label."""
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
        **dict.fromkeys(COLUMNS),
        **{name: getattr(facts, name) for name in _FACT_COLUMNS},
        **{name: getattr(facts, name) or "" for name in _NAME_COLUMNS},
        "trace_ref": facts.ref,
        "problem": facts.text,
        "consensus_revision": example.agreed.revision if example.agreed else None,
        "weight": example.weight,
        "step_prm": facts.score_version,
        "is_right": example.record.is_right,
        "licence": example.licence,
    }


def _index_turns(record: TraceRecord) -> dict[int, TurnRecord]:
    return {turn.position: turn for turn in record.submissions[0].turns}


def _index_derived(row: ExportRow, rule: LabelRule) -> dict[int, TurnRecord]:
    """Map steps to their turns with the labels of the label set as ratings. Without a label set, the map is empty."""
    if rule.label_set == "as_rated":
        return {}
    return _index_turns(label_sets.relabel_record(row.record, rule.label_set)[0])


def _list_steps(example: TraceExample, turns: list[dict[int, TurnRecord]]) -> Iterator[tuple[StepRecord, list[str]]]:
    """Yield each step with its texts: first the trace's own steps, then those that only submissions have."""
    own = example.record.steps
    for step in own:
        yield step, [option.text for option in step.options]
    last = max((position for own_turns in turns for position in own_turns), default=-1)
    for position in range(len(own), last + 1):
        at_position = [own_turns[position] for own_turns in turns if position in own_turns]
        shown = [judgment.text for turn in at_position for judgment in turn.shown or ()]
        yield StepRecord([]), list(dict.fromkeys(shown))


def _find_rating(
    facts: RowFacts, turn: TurnRecord | None, derived: TurnRecord | None, option: int, texts: list[str]
) -> OutputRow | None:
    """Return a rater's rating of an option. If options have the same text, the n-th one shown is the n-th option."""
    if turn is None or turn.shown is None:
        return None
    text = texts[option]
    n_before = texts[:option].count(text)
    places = [place for place, judgment in enumerate(turn.shown) if judgment.text == text]
    if len(places) <= n_before:
        return None
    place = places[n_before]
    set_label = derived.shown[place].rating if derived and derived.shown else None
    return _rating_columns(facts, turn, turn.shown[place], is_chosen=turn.chosen == place, set_label=set_label)


def _rating_columns(
    facts: RowFacts, turn: TurnRecord, judgment: JudgmentRecord, *, is_chosen: bool, set_label: int | None
) -> OutputRow:
    progress = facts.identity.progress if facts.identity else {}
    return {
        **describe_rater(facts),
        **{name: getattr(judgment, name) for name in _JUDGMENT_COLUMNS},
        "evidence": write_evidence(judgment.evidence),
        "citations": write_citations(judgment.citations),
        "missing_after": turn.missing,
        "progress": progress.get(turn.position),
        "active_ms": turn.active_ms,
        "is_chosen": is_chosen,
        "generation": facts.exported_generation,
        "set_label": set_label,
        "trace_answers": facts.answers,
        **{name: getattr(facts, name) for name in _SUBMISSION_COLUMNS},
    }


def _share_columns(example: TraceExample, step: int) -> OutputRow:
    """Return how many blind submissions found no error before this step, and the shares of votes past it, P(E > t)."""
    blind = (vote for vote in example.first_errors if vote.is_blind)
    agreed = example.agreed
    return {
        "n_at_risk": sum(vote.first_error is None or vote.first_error >= step for vote in blind),
        "p_correct": _share_past_step(example.votes(), step),
        "assisted_p_correct": _share_past_step(example.votes(assisted=True), step),
        "posterior_correct": _posterior_past_step(agreed.posterior if agreed else None, step),
        "assisted_posterior_correct": _posterior_past_step(agreed.assisted_posterior if agreed else None, step),
    }


def _share_past_step(votes: list[int | None], step: int) -> float | None:
    return sum(first_error is None or first_error > step for first_error in votes) / len(votes) if votes else None


def _posterior_past_step(posterior: Sequence[float] | None, step: int) -> float | None:
    return None if posterior is None else min(sum(posterior[step + 1 :]), 1.0)


def _share_positive(ratings: list[OutputRow]) -> float | None:
    """Return the share among people who saw no scores, and the whole trace."""
    people = [rating for rating in ratings if rating["rater_kind"] != "machine" and not rating["is_assisted"]]
    blind = [rating for rating in people if rating["exposure"] not in PARTIAL_VIEWS]
    values = [rating["rating"] for rating in blind if rating["rating"] is not None]
    return sum(value >= 0 for value in values) / len(values) if values else None
