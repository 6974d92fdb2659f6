"""Answers of judges: what can be read is read exactly, and everything else is counted by its reason."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines.prompts import JudgeContract
from machines.replies import MAX_REASON_CHARACTERS, ReplyState, parse_reply
from tests.machines import chat_servers
from tests.machines.chat_servers import Scripted

CRITIC, LABELS, AGENT = JudgeContract.CRITIC, JudgeContract.STEP_LABELS, JudgeContract.AGENT_RUBRIC
STEPS = [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"All good. \boxed{-1}", None),
        (r"Step 1 is wrong. \boxed{1}", 1),
        (r"At first \boxed{0}, but no: \boxed{2}", 2),
        (r"$\boxed{ 1 }$", 1),
        (r"\boxed {$2$}", 2),
        ("\\boxed{−1}", None),
        (r"<think>\boxed{0}</think>\boxed{1}", 1),
    ],
)
def test_critic_reads_the_last_box(text: str, expected: int | None) -> None:
    reply = parse_reply(CRITIC, text, STEPS)
    assert reply.state == ReplyState.PARSED
    assert reply.first_error == expected


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("", ReplyState.EMPTY),
        (" \n", ReplyState.EMPTY),
        ("<think>done</think>", ReplyState.EMPTY),
        ("No box, but 1.", ReplyState.UNPARSED),
        (r"\boxed{}", ReplyState.UNPARSED),
        (r"\boxed{one}", ReplyState.UNPARSED),
        (r"\boxed{1} \boxed{1.5}", ReplyState.UNPARSED),
        (r"\boxed{1, 2}", ReplyState.UNPARSED),
        (r"\boxed{" + "9" * 5000 + "}", ReplyState.UNPARSED),
        (r"\boxed{٣}", ReplyState.UNPARSED),
        (r"\boxed{3}", ReplyState.OUT_OF_RANGE),
        (r"\boxed{-2}", ReplyState.OUT_OF_RANGE),
        (r"<think>It could be \boxed{1}", ReplyState.TRUNCATED),
    ],
)
def test_critic_counts_what_it_cannot_read(text: str, state: ReplyState) -> None:
    reply = parse_reply(CRITIC, text, STEPS)
    assert reply.state == state
    assert not reply.ratings


def test_cut_off_answer_is_not_read() -> None:
    assert parse_reply(CRITIC, r"Perhaps \boxed{1}", STEPS, is_complete=False).state == ReplyState.TRUNCATED


def test_critic_rates_up_to_the_first_error() -> None:
    assert parse_reply(CRITIC, r"\boxed{1}", STEPS).ratings == {0: 1, 1: -1}
    assert parse_reply(CRITIC, r"\boxed{-1}", STEPS).ratings == {0: 1, 1: 1, 2: 1}


def test_critic_cannot_blame_context() -> None:
    assert parse_reply(CRITIC, r"\boxed{1}", [0, 2]).state == ReplyState.OUT_OF_RANGE


def fence(content: Any) -> str:
    return f"Here you are.\n```json\n{json.dumps(content)}\n```"


def make_labels(*labels: Any) -> dict[str, Any]:
    return {"steps": [{"step": n, "label": label, "reason": f"because {n}"} for n, label in enumerate(labels)]}


def test_step_labels_have_reasons() -> None:
    reply = parse_reply(LABELS, fence(make_labels(1, 0, -1)), STEPS)
    assert reply.state == ReplyState.PARSED
    assert reply.first_error == 2
    assert reply.ratings == {0: 1, 1: 0, 2: -1}
    assert reply.reasons[2] == "because 2"


def test_last_block_wins() -> None:
    text = fence(make_labels(1, 1, 1)) + "\nNo, wait.\n" + fence(make_labels(-1, 1, 1))
    assert parse_reply(LABELS, text, STEPS).first_error == 0


def test_object_without_a_block_is_read() -> None:
    assert parse_reply(LABELS, f"So: {json.dumps(make_labels(1, -1, 1))} Done.", STEPS).first_error == 1


@pytest.mark.parametrize(
    ("content", "state"),
    [
        (make_labels(1, 1), ReplyState.UNPARSED),  # no error, but a step is missing
        (make_labels(1, 1, None), ReplyState.UNPARSED),
        (make_labels(1, 2, 1), ReplyState.UNPARSED),
        (make_labels(True, 1, 1), ReplyState.UNPARSED),
        (make_labels("1", 1, 1), ReplyState.UNPARSED),
        (make_labels(1, 1, 1, -1), ReplyState.OUT_OF_RANGE),
        ({"steps": "all"}, ReplyState.UNPARSED),
        ([1, 1, 1], ReplyState.UNPARSED),
    ],
)
def test_labels_that_say_too_little_are_counted(content: Any, state: ReplyState) -> None:
    assert parse_reply(LABELS, fence(content), STEPS).state == state


def test_missing_labels_beside_an_error_stay_unlabeled() -> None:
    reply = parse_reply(AGENT, fence({"step_labels": {"3": -1, "1": 1, "5": None}, "final_label": -1}), [1, 3, 5])
    assert reply.state == ReplyState.PARSED
    assert reply.first_error == 3
    assert reply.ratings == {1: 1, 3: -1}


def test_agent_rubric_keeps_explanations() -> None:
    content = {"step_labels": {"1": 0, "3": 1}, "final_label": 1, "explanations": {"1": "a\0b", "3": 7}}
    reply = parse_reply(AGENT, fence(content), [1, 3])
    assert reply.reasons == {1: "ab"}


def test_reasons_are_bounded_and_storable() -> None:
    content = {"steps": [{"step": 0, "label": 1, "reason": "\ud800" + "x" * 9999}]}
    reason = parse_reply(LABELS, fence(content), [0]).reasons[0]
    assert len(reason) == MAX_REASON_CHARACTERS
    reason.encode()


def test_deeply_nested_answer_is_not_read() -> None:
    assert parse_reply(LABELS, "```json\n" + "[" * 20_000 + "\n```", STEPS).state == ReplyState.UNPARSED


@given(st.text() | st.builds("```json\n{}\n```".format, st.text()), st.sampled_from(list(JudgeContract)))
def test_any_text_has_a_state(text: str, contract: str) -> None:
    reply = parse_reply(contract, text, STEPS)
    assert reply.state == ReplyState.PARSED or not reply.ratings


@pytest.mark.parametrize("part", ["gsm8k", "math"])
def test_critic_reproduces_f1_of_recorded_answers(part: str, shared_data: Path) -> None:
    """Answers in the wordings of models, of known correctness, give the same F1 as their labels, and none is lost."""
    dice = random.Random(7)
    rows = json.loads((shared_data / "processbench" / f"{part}.json").read_text())
    right: dict[bool, list[bool]] = {True: [], False: []}  # by whether the trace has an error
    read: dict[bool, list[bool]] = {True: [], False: []}
    states = dict.fromkeys(ReplyState, 0)
    for row in rows:
        n_steps, label = len(row["steps"]), row["label"]
        answer, text = _record_answer(dice, n_steps, label)
        reply = parse_reply(CRITIC, text, range(n_steps))
        states[reply.state] += 1
        predicted = None if reply.state != ReplyState.PARSED else -1 if reply.first_error is None else reply.first_error
        assert predicted == answer
        right[label != -1].append(answer == label)
        read[label != -1].append(predicted == label)
    assert sum(states.values()) == len(rows)
    assert states[ReplyState.PARSED] < len(rows)  # the answers without a box are counted
    assert states[ReplyState.UNPARSED] + states[ReplyState.OUT_OF_RANGE] == len(rows) - states[ReplyState.PARSED]
    assert f"{_f1(read):.3f}" == f"{_f1(right):.3f}"


def _record_answer(dice: random.Random, n_steps: int, label: int) -> tuple[int | None, str]:
    """Return what the answer says, and its text. Some answers cannot be parsed."""
    answer = label if dice.random() < 0.7 else dice.randrange(-1, n_steps)
    wording = dice.randrange(8)
    if wording == 0:
        return None, f"The first error is in step {answer}."
    if wording == 1:
        return None, rf"\boxed{{{n_steps + 3}}}"
    texts = (
        rf"I check each step. \boxed{{{answer}}}",
        rf"**Final answer:** $\boxed{{{answer}}}$.",
        rf"Perhaps \boxed{{{(answer + 1) % n_steps}}}? No. \boxed{{{answer}}}",
        rf"<think>\boxed{{{n_steps}}}</think>The answer is \(\boxed{{ {answer} }}\)",
        "\\[\\boxed{" + str(answer) + "}\\]\n",
        f"\\boxed{{{answer}}}".replace("-", "−"),
    )
    return answer, texts[wording - 2]


def _f1(hits: dict[bool, list[bool]]) -> float:
    wrong, correct = (sum(each) / len(each) for each in (hits[True], hits[False]))
    return 2 * wrong * correct / (wrong + correct)


def answer_by_clause(*steps: tuple[int, Any]) -> str:
    rows = [{"step": n, "label": label, "clause": clause} for n, (label, clause) in enumerate(steps)]
    return f"```json\n{json.dumps({'steps': rows})}\n```"


def test_policy_judge_names_clauses() -> None:
    reply = parse_reply(JudgeContract.POLICY, answer_by_clause((1, 1.2), (0, None), (-1, " 3 " + "x" * 99)), STEPS)
    assert (reply.state, reply.first_error, dict(reply.ratings)) == (ReplyState.PARSED, 2, {0: 1, 1: 0, 2: -1})
    assert reply.clauses == {0: "1.2", 2: "3 " + "x" * 38}


@pytest.mark.parametrize("clause", [None, "", " ", ["1"], True])
def test_broken_clause_must_be_named(clause: Any) -> None:
    reply = parse_reply(JudgeContract.POLICY, answer_by_clause((1, "1"), (-1, clause), (0, None)), STEPS)
    assert reply.state == ReplyState.UNPARSED


YES_NO = JudgeContract.YES_NO


def make_scored_body(text: str, *yes_shares: float) -> bytes:
    return chat_servers.make_body({"model": "m", "logprobs": True}, Scripted(text, yes_shares=yes_shares))


def test_yes_and_no_come_with_the_probability_of_yes() -> None:
    text = "<think>Step 1: No\n½ is it?</think>\nStep 0: Yes\nStep 1: No\nStep 2: Yes\n"
    reply = parse_reply(YES_NO, text, STEPS, body=make_scored_body(text, 0.5, 0.9, 0.25, 0.6))
    assert (reply.first_error, reply.ratings) == (1, {0: 1, 1: -1, 2: 1})
    assert reply.yes_shares == pytest.approx({0: 0.9, 1: 0.25, 2: 0.6})


@pytest.mark.parametrize(
    ("text", "ratings"),
    [
        ("step 0: yes\n**Step 1: NO**", {0: 1, 1: -1}),
        ("0. Yes\n1) Yes\n2 - No", {0: 1, 1: 1, 2: -1}),
        ("Step 0: No\nNo, wait.\nStep 0: Yes\nStep 1: Yes\nStep 2: Yes", {0: 1, 1: 1, 2: 1}),
    ],
)
def test_yes_and_no_are_read_without_probabilities(text: str, ratings: dict[int, int]) -> None:
    reply = parse_reply(YES_NO, text, STEPS, body=b'{"choices": [{"logprobs": {"content": [{"token": 1}]}}]}')
    assert (reply.ratings, reply.yes_shares) == (ratings, {})


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("Yes", ReplyState.UNPARSED),
        ("Step 0: Yes\nStep 2: No", ReplyState.UNPARSED),  # step 1 may be the first error
        ("Step 0: Yes\nStep 1: Yes", ReplyState.UNPARSED),
        ("Step 0: No mistake\nStep 1: No mistake\nStep 2: No mistake", ReplyState.UNPARSED),
        ("Step 3: No", ReplyState.OUT_OF_RANGE),
        pytest.param(f"x{' ' * 20_000}x{chr(10) * 20_000}x", ReplyState.UNPARSED, id="blanks"),  # read in one pass
    ],
)
def test_incomplete_yes_and_no_are_never_labels(text: str, state: ReplyState) -> None:
    assert parse_reply(YES_NO, text, STEPS, body=make_scored_body(text, *[0.5] * 3)).state == state
