"""Steps that are split and merged by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.records import OptionRecord, PartRecord, StepChange, StepRecord
from formats.step_changes import InvalidStepChange, change_steps, choose_mark, find_cuts

TEXTS = st.text(st.sampled_from("ab. \n\r\t|"), max_size=20)
STEPS = st.lists(
    st.builds(
        lambda text, separator, message: StepRecord(
            [OptionRecord(text)], separator=separator, source_position=message, agent="a"
        ),
        TEXTS.filter(lambda text: bool(text.strip())),
        st.sampled_from([" ", "\n\n"]),
        st.sampled_from([None, 1]),
    ),
    min_size=1,
    max_size=4,
)
CHANGES = st.lists(
    st.builds(
        StepChange, st.integers(0, 3), st.lists(st.integers(-1, 21), max_size=3).map(tuple), merges=st.booleans()
    ),
    max_size=4,
)


def join(steps: list[StepRecord]) -> str:
    return "".join(step.separator + step.options[0].text for step in steps)


def texts(steps: list[StepRecord]) -> list[str]:
    return [step.options[0].text for step in steps]


@given(STEPS, CHANGES)
def test_changes_lose_no_text(steps: list[StepRecord], changes: list[StepChange]) -> None:
    before = join(steps)
    try:
        changed = change_steps(steps, changes)
    except InvalidStepChange:
        return
    assert join(changed) == before == join(steps)
    assert all(text.strip() for text in texts(changed))
    last = {change.position: change for change in changes}.values()
    assert len(changed) == len(steps) + sum(len(each.cuts) - each.merges for each in last)


@given(st.lists(st.text(st.sampled_from("<cut2>\r\n")) | st.just("<cut>"), min_size=1, max_size=4))
def test_marks_are_found_whatever_a_browser_does_to_line_breaks(pieces: list[str]) -> None:
    text = "".join(pieces)
    mark = choose_mark([text])
    sent = mark.join(pieces).replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")
    cuts = find_cuts(text, sent, mark=mark)
    if "\r\n" in text and text.count("\r\n") != sum(piece.count("\r\n") for piece in pieces):
        return  # the mark is between the two characters of one line break
    assert cuts is not None
    assert [text[a:b] for a, b in zip((0, *cuts), (*cuts, len(text)), strict=True)] == pieces
    assert find_cuts(text, sent + "x", mark=mark) is None


def test_split_steps_keep_their_message_and_the_indentation_of_lines() -> None:
    step = StepRecord([OptionRecord("if a:\n    b")], separator="\n", source_position=4, agent="x")
    first, second = change_steps([step], [StepChange(0, (5,))])
    assert (first.separator, first.options[0].text) == ("\n", "if a:")
    assert (second.separator, second.options[0].text) == ("\n", "    b")
    assert (second.source_position, second.agent) == (4, "x")


def test_a_step_can_be_split_and_its_beginning_merged() -> None:
    steps = [StepRecord([OptionRecord(text)]) for text in ("a", "b c", "d")]
    changed = change_steps(steps, [StepChange(1, (1,), merges=True), StepChange(2, merges=True)])
    assert texts(changed) == ["a\nb", "c\nd"]  # nothing says what was between the steps of the file


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (StepChange(0, merges=True), "cannot_merge"),
        (StepChange(2, merges=True), "cannot_merge"),
        (StepChange(3, merges=True), "cannot_merge"),
        (StepChange(2, (1,)), "cannot_split"),
        (StepChange(0, (0,)), "empty_step"),
        (StepChange(0, (9,)), "empty_step"),
        (StepChange(0, (2, 2)), "empty_step"),
        (StepChange(4), "no_such_step"),
        (StepChange(-1), "no_such_step"),
    ],
)
def test_impossible_changes_are_refused(change: StepChange, code: str) -> None:
    call = OptionRecord("f()", parts=(PartRecord("call", "f()"),))
    steps = [StepRecord([OptionRecord(text)]) for text in ("a b c", "d")]
    steps += [StepRecord([call], "action"), StepRecord([OptionRecord("e")], source_position=2)]
    with pytest.raises(InvalidStepChange) as caught:
        change_steps(steps, [change])
    assert caught.value.code == code
