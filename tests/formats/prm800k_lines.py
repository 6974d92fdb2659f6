"""Lines and records of PRM800K, with all variations of real files and some of hostile ones."""

import json
from typing import Any

from hypothesis import strategies as st

from formats import prm800k
from formats.raw_values import RawValue
from formats.records import TraceRecord

# Any character that a database can store; the reader refuses the others.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
# Few texts, so that a step often has the same one twice.
candidates = st.sampled_from(["Right.", " Right.", "Right. ", "", "x\n\n# Answer\n\n4", "\\u0000"]) | texts
ratings = st.sampled_from([-1, 0, 1, None])
flags = st.sampled_from([True, False, None])
times = st.datetimes().map(lambda time: time.isoformat(timespec="microseconds"))
extras = st.dictionaries(texts, st.none() | st.integers() | texts | st.lists(st.booleans(), max_size=2), max_size=1)


@st.composite
def with_extras(draw: st.DrawFn, known: dict[str, Any]) -> dict[str, Any]:
    """Sometimes add an unknown key or change the order of keys."""
    members = {key: draw(value) for key, value in known.items()}
    if draw(st.integers(0, 9)) == 0:
        members = {**draw(extras), **members}
    if draw(st.integers(0, 9)) == 0:
        members = {key: members[key] for key in draw(st.permutations(list(members)))}
    return members


@st.composite
def steps(draw: st.DrawFn) -> dict[str, Any]:
    completion = with_extras({"text": candidates, "rating": ratings, "flagged": flags})
    completions = draw(st.none() | st.lists(completion, max_size=4))
    human = {"text": candidates, "rating": st.none(), "source": st.just("human"), "flagged": flags}
    chosen = st.none() | st.integers(0, len(completions) - 1) if completions else st.none()
    return draw(
        with_extras(
            {
                "completions": st.just(completions),
                "human_completion": st.none()
                | with_extras(human)
                | with_extras({**human, "corrected_rating": st.sampled_from([-1, 0, 1])}),
                "chosen_completion": chosen,
            }
        )
    )


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    texts_or_null = st.none() | texts
    question: dict[str, st.SearchStrategy[Any]] = {"problem": candidates}
    if draw(st.booleans()):
        question["ground_truth_solution"] = texts_or_null
    if draw(st.integers(0, 4)):
        question["ground_truth_answer"] = texts_or_null
    if draw(st.booleans()):
        question["pre_generated_steps"] = st.lists(candidates, max_size=3)
        question["pre_generated_answer"] = texts_or_null
        question["pre_generated_verifier_score"] = st.one_of(
            st.none(), st.floats(0, 1), st.just(-0.0), st.integers(0, 1)
        )
    label = {
        "steps": st.lists(steps(), max_size=4),
        "total_time": st.none() | st.integers(0, 2**40),
        "finish_reason": st.sampled_from(["solution", "give_up", "found_error", "bad_problem", None]),
    }
    return draw(
        with_extras(
            {
                "labeler": st.none() | st.sampled_from(["ann", "ben", ""]),
                "timestamp": st.none() | times,
                "generation": st.none() | st.integers(-1, 10),
                "is_quality_control_question": flags,
                "is_initial_screening_question": flags,
                "question": with_extras(question),
                "label": with_extras(label),
            }
        )
    )


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Draw lines mostly as Python writes JSON; sometimes with other spacing, unescaped characters, or a carriage
    return."""
    record = draw(records())
    style = draw(st.integers(0, 9))
    if style == 0:
        return json.dumps(record, separators=(",", ":")).encode()
    if style == 1:
        return json.dumps(record, ensure_ascii=False).encode()
    return json.dumps(record).encode() + (b"\r" if style == 2 else b"")


def make_record(*steps: object, **changes: object) -> TraceRecord:
    """Read the line of `make_line` with other steps."""
    record = prm800k.parse_value(RawValue(make_line(**({"steps": list(steps)} if steps else {}), **changes), 1))
    assert isinstance(record, TraceRecord), record
    return record


def make_line(**changes: Any) -> bytes:
    """Make a record of phase 2. `changes` are values by innermost key."""
    record: dict[str, Any] = {
        "labeler": "ann",
        "timestamp": "2022-11-06T03:24:46.649379",
        "generation": 5,
        "is_quality_control_question": False,
        "is_initial_screening_question": False,
        "question": {
            "problem": "What is 2 + 2 + 2?",
            "ground_truth_solution": "Six.",
            "ground_truth_answer": "6",
            "pre_generated_steps": ["2 + 2 = 4", "4 + 2 = 7", "So 7."],
            "pre_generated_answer": "7",
            "pre_generated_verifier_score": 0.25,
        },
        "label": {
            "steps": [make_step("2 + 2 = 4"), make_step("4 + 2 = 7", -1, chosen=None)],
            "total_time": 21000,
            "finish_reason": "found_error",
        },
    }
    for key, value in changes.items():
        place = next(part for part in (record, record["question"], record["label"]) if key in part)
        place[key] = value
    return json.dumps(record).encode()


def make_step(text: str, rating: int | None = 1, *others: str, chosen: int | None = 0) -> dict[str, Any]:
    """Make a step as its first rater saw it, with alternatives rated negative."""
    return {
        "completions": [
            {"text": text, "rating": rating, "flagged": None},
            *({"text": other, "rating": -1, "flagged": False} for other in others),
        ],
        "human_completion": None,
        "chosen_completion": chosen,
    }
