"""Variants of formats in published files."""

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from formats import catalog, prm800k
from formats.catalog import UnknownFormat
from formats.records import BadLine, TraceRecord

QUESTION = {"role": "user", "content": "What is 7 times 8?"}
REPLY = {"role": "assistant", "content": "It is 56."}


def read(content: bytes) -> tuple[str, list[TraceRecord], list[BadLine]]:
    format = catalog.detect_format(io.BytesIO(content))
    items = list(format.read(io.BytesIO(content)))
    records = [item for item in items if isinstance(item, TraceRecord)]
    return format.name, records, [item for item in items if isinstance(item, BadLine)]


def one(format: str, record: object) -> TraceRecord:
    name, (made,), bad = read(json.dumps(record).encode())
    assert (name, bad) == (format, [])
    return made


def texts(record: TraceRecord) -> list[str]:
    return [step.options[0].text for step in record.steps]


def ratings(record: TraceRecord) -> list[int | None]:
    return [turn.path_rating() for turn in record.submissions[0].turns]


# --- which format a file is in -------------------------------------------------------------------------------------


def test_detect_accepts_a_first_record_of_any_size() -> None:
    """Agent trajectories, and benchmarks in a single object, can be very large."""
    turn = {"action": "cat a.py", "observation": "x" * 3_000_000}
    assert catalog.detect_format(io.BytesIO(json.dumps({"trajectory": [turn]}, indent=1).encode())).name == "swe_agent"


def test_detect_skips_bad_records() -> None:
    good = json.dumps({"problem": "p", "steps": ["a"], "label": -1}).encode()
    assert catalog.detect_format(io.BytesIO(b'{"problem": "p" "\n' + good)).name == "processbench"
    with pytest.raises(UnknownFormat, match="line 2, column 1"):
        catalog.detect_format(io.BytesIO(b'{"problem": "p", \nhello\n'))
    with pytest.raises(UnknownFormat):
        catalog.detect_format(io.BytesIO(b"\n\n  \n"))
    with pytest.raises(UnknownFormat, match="0xff"):
        catalog.detect_format(io.BytesIO('{"problem": "p"}\n'.encode("utf-16")))


# --- chats ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 2])
def test_chat_reads_a_list_of_messages_as_a_record(indent: int | None) -> None:
    name, (record,), bad = read(json.dumps([QUESTION, REPLY], indent=indent).encode())
    assert (name, bad, texts(record)) == ("chat", [], [QUESTION["content"], REPLY["content"]])
    assert record.problem.text == QUESTION["content"]


def test_chat_reads_a_list_of_messages_on_each_line() -> None:
    lines = [json.dumps([QUESTION, REPLY]), json.dumps([QUESTION, REPLY, QUESTION, REPLY])]
    _, records, bad = read("\n".join(lines).encode())
    assert ([len(record.steps) for record in records], bad) == ([2, 4], [])
    assert [record.line for record in records] == [1, 2]


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (['[{"role": "user", "content": "é"},', ' {"role": 7}]'], (2, 11)),
        (['[{"role": "user", "content": "é"},', ' {"role": "user"'], (2, 17)),
        (['[{"role": "user", "content": "é"}, {"content": 1}]'], (1, 48)),
    ],
)
def test_chat_places_errors_in_a_list_of_messages(lines: list[str], place: tuple[int, int]) -> None:
    _, records, (bad,) = read("\n".join(lines).encode())
    assert not records
    assert (bad.line, bad.column) == place


def test_chat_keeps_every_part_of_a_message() -> None:
    called = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
    gave = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "2"}]}
    record = one(
        "chat",
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Add."}]},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, called]},
                {"role": "user", "content": [gave]},
                {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "content": [{"type": "text", "text": "3"}], "name": "f"},
                {"role": "assistant", "content": None, "function_call": {"name": "g", "arguments": "{}"}},
                {"role": "assistant", "content": "Yes.", "reasoning_content": "So."},
            ]
        },
    )
    assert texts(record) == ["Add.", 'Hm.\nadd({"a":1})', "2", "f({})", "3", "g({})", "So.\nYes."]
    kinds = ["user", "action", "observation", "action", "observation", "action", "reasoning"]
    assert [step.kind for step in record.steps] == kinds
    assert [step.is_rateable for step in record.steps] == [kind in ("action", "reasoning") for kind in kinds]


def test_chat_refuses_content_that_cannot_be_shown() -> None:
    spoken = {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "…"}}]}
    text = json.dumps({"messages": [QUESTION, spoken]})
    _, _, (bad,) = read(text.encode())
    assert (bad.line, bad.column) == (1, text.index('"input_audio"') + 1)


def test_chat_reads_agentprocessbench_with_all_its_keys() -> None:
    given = {
        "total_index": 3,
        "query_index": 0,
        "sample_index": 3,
        "question": "Which city?",
        "data_source": "searchR1",
        "ground_truth": {"target": ["Marion"]},
        "answer_text": None,
        "messages": [QUESTION, REPLY],
        "tools": [],
        "tool_metrics": {},
        "step_labels": {"1": -1},
        "final_label": -1,
    }  # fmt: skip  -- one field per line
    record = one("chat", given)
    assert (record.problem.text, record.problem.domain, record.ref) == ("Which city?", "searchR1", "3")
    assert (record.is_right, ratings(record)) == (False, [-1])


# --- others --------------------------------------------------------------------------------------------------------


def test_mr_ben_finds_the_quoted_line_of_code() -> None:
    code = 'def f(x):\n    """Doubles."""\n    y = x\n\n    return y\n'
    item = {"Question": "q", "Model_Solution_Steps": code, "Model_Solution_Correctness": "incorrect"}
    placed, twice, nowhere = (
        one("mr_ben", {"id": [{**item, "Model_Solution_First_Error_Step": step}]})
        for step in ("    y = x", "", "    return x")
    )
    assert texts(placed) == ["def f(x):", '    """Doubles."""', "    y = x", "    return y\n"]
    assert placed.provenance
    assert placed.provenance.segmenter == "lines 2"
    assert ratings(placed) == [1, 1, -1]
    assert (twice.submissions, nowhere.submissions, nowhere.is_right) == ([], [], None)


def test_mr_ben_places_errors_in_its_single_object() -> None:
    item = {"Question": "q", "Model_Solution_Steps": ["a"], "Model_Solution_First_Error_Step": "1"}
    wrong = {**item, "Model_Solution_First_Error_Step": "2"}
    content = json.dumps({"x": [item, wrong]}, indent=1).encode()
    _, records, (bad,) = read(content)
    assert [record.steps[0].options[0].text for record in records] == ["a"]
    assert (bad.line, bad.column) == (15, 39)
    text = json.dumps({"é": [wrong, item], "b": [], "c": [wrong]})
    _, records, bad_lines = read(text.encode())
    assert len(records) == 1
    places = [text.index('"2"'), text.rindex('"2"')]
    assert [(line.line, line.column) for line in bad_lines] == [(1, place + 1) for place in places]
    (twice,) = catalog.get_input_format("mr_ben").read(io.BytesIO(b'{"x": [], "x": []}'))
    assert isinstance(twice, BadLine)
    assert (twice.line, twice.column) == (1, 11)


@pytest.mark.parametrize(
    ("last", "truth", "is_right"),
    [
        ("Solution: Choice_A (4)", "A", True),
        ("Step 9: the answer is choice (B).", "A", False),
        ("Solution: Choice\\_B", "B", True),
        ("Answer: A", "A", True),
        ("Solution: None of Choice_A/B/C", "A", None),
        ("Solution: Choice A, B, or D", "A", None),
        ("Choice_A is close, Choice_B is closer.", "B", None),
        ("It is not Choice_A.", "A", None),
        ("Solution: 4", "A", None),
        ("Solution: Choice_A", "four", None),
    ],
)
def test_outcome_of_mr_ben_is_the_final_choice(last: str, truth: str, is_right: bool | None) -> None:
    item = {"Question": "q", "Model_Solution_Steps": ["So:", last], "Ground_Truth_Answer": "X"}
    item |= {"Ground_Truth_Answer_Modified": truth, "Model_Solution_First_Error_Step": "1"}
    record = one("mr_ben", {"id": [{**item, "Model_Solution_Correctness": "incorrect"}]})
    assert (record.is_right, record.problem.answer, ratings(record)) == (is_right, truth, [-1])


def test_outcomes_of_published_mr_ben_differ_from_its_first_errors(shared_data: Path) -> None:
    found = catalog.get_input_format("mr_ben").read(io.BytesIO((shared_data / "other/mr_ben_math.json").read_bytes()))
    pairs = Counter((each.is_right, -1 in ratings(each)) for each in found if isinstance(each, TraceRecord))
    assert pairs == {(False, True): 71, (None, True): 25, (True, False): 19, (True, True): 4, (False, False): 1}


@pytest.mark.parametrize(("value", "rated"), [(["+", "-"], [1, -1]), ([0.5, 0], [None, None])])
def test_math_shepherd_reads_openrlhf(value: list[Any], rated: list[int | None]) -> None:
    record = one("math_shepherd", {"input": "Q Step 1: a ки\nStep 2: b ки", "value": value})
    assert ratings(record) == rated


def test_swe_agent_reads_messages_with_content_lists() -> None:
    content = [{"type": "text", "text": "Mend it.", "cache_control": {"type": "ephemeral"}}]
    history = [{"role": "system", "content": "You mend."}, {"role": "user", "content": content}]
    record = one("swe_agent", {"history": history, "trajectory": [{"action": "ls", "observation": ""}]})
    assert (record.problem.text, texts(record)) == ("Mend it.", ["You mend.", "Mend it.", "ls"])


# --- chats -----------------------------------------------------------------------------------------------------------

SOLUTION = "Step 1: 7 times 8 is 7 times 4 times 2.\nStep 2: That is 28 times 2.\nStep 3: So it is 56."


def chat_steps(record: dict[str, Any], segmenter: str = "") -> list[tuple[str, int | None]]:
    content = io.BytesIO(json.dumps(record).encode())
    (made,) = catalog.read_traces(content, format="chat", segmenter=segmenter)
    assert isinstance(made, TraceRecord), made
    whole = "".join(step.separator + step.options[0].text for step in made.steps if step.is_rateable)
    assert whole == "".join(each["content"] for each in record["messages"] if each["role"] == "assistant")
    return [(step.options[0].text, step.source_position) for step in made.steps if step.is_rateable]


def test_solution_in_a_chat_is_split_inside_its_message() -> None:
    answer = {"role": "assistant", "content": SOLUTION}
    found = chat_steps({"messages": [QUESTION, answer]})
    assert [position for _, position in found] == [1, 1, 1]
    assert found[2][0] == "Step 3: So it is 56."
    assert len(chat_steps({"messages": [QUESTION, answer, QUESTION, answer]})) == 2  # short turns of a dialogue
    assert len(chat_steps({"messages": [QUESTION, answer, QUESTION, answer]}, "lines 2")) == 6
    long = {"role": "assistant", "content": "\n".join([SOLUTION] * 20)}
    assert len(chat_steps({"messages": [QUESTION, answer, QUESTION, long]})) == 61
    labeled = {"messages": [QUESTION, answer], "step_labels": {"1": 1}}
    assert len(chat_steps(labeled, "lines 2")) == 1


@pytest.mark.parametrize(
    ("message", "value"),
    [
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://other.test/a.png"}}]},
            "https://other.test/a.png",
        ),
        (
            {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "http://other.test/a"}}]},
            "http://other.test/a",
        ),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "input_audio"),
        ({"role": "exit", "content": "diff"}, "exit"),
    ],
)
def test_chat_refuses_what_cannot_be_shown_at_its_place(message: dict[str, Any], value: str) -> None:
    line = json.dumps({"messages": [QUESTION, message, REPLY]})
    _, records, (bad,) = read(line.encode())
    assert records == []
    assert line[bad.column - 1 :].startswith(json.dumps(value))


def test_mini_swe_agent_is_not_a_chat() -> None:
    commands = {"actions": [{"command": "ls"}]}
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": "Look.\n```bash\nls\n```", "extra": commands},
        {"role": "user", "content": "f.py"},
        {"role": "assistant", "content": "Now with a call.", "extra": commands},
        {"role": "tool", "content": "f.py"},
        {"role": "assistant", "content": "I am done."},
        {"role": "exit", "content": "diff"},
    ]
    whole = {"trajectory_format": "mini-swe-agent-1.1", "messages": messages, "info": {"submission": "diff"}}
    made = one("mini_swe_agent", whole)
    assert (made.problem.text, made.answer) == ("Fix it.", "diff")
    context = [("system", False), ("user", False)]
    turns = [("action", True), ("observation", False)] * 2 + [("reasoning", True)]
    assert [(step.kind, step.is_rateable) for step in made.steps] == context + turns
    assert [part.kind for part in made.steps[4].options[0].parts] == ["text", "call"]
    for odd in ({**whole, "messages": messages[:1]}, {**whole, "messages": [*messages[:2], {"role": "robot"}]}):
        assert read(json.dumps(odd).encode())[1] == []


# --- native and PRM800K ----------------------------------------------------------------------------------------------


def test_native_soft_labels_are_values() -> None:
    record = {"problem": "p", "steps": ["a", "b", "c"]}
    soft = one("native", {**record, "labels": [1, 0.25, None]})
    judged = [(turn.shown or [])[0] for turn in soft.submissions[0].turns]
    assert [(each.rating, each.value) for each in judged] == [(None, 1.0), (None, 0.25), (None, None)]
    assert ratings(one("native", {**record, "labels": [1, 0.0, -1]})) == [1, 0, -1]
    for odd in ([0.5, -1], [2], [-0.5]):
        _, records, (bad,) = read(json.dumps({**record, "labels": odd}).encode())
        assert (records, bad.line) == ([], 1)


@pytest.mark.parametrize("layout", [{"indent": 2}, {"indent": "\t", "separators": (",", ":")}])
def test_pretty_printed_prm800k_is_read_as_one_line(shared_data: Path, layout: dict[str, Any]) -> None:
    line = (shared_data / "prm800k/genuine.jsonl").read_bytes().splitlines()[0]
    name, (made,), bad = read(json.dumps(json.loads(line), **layout).encode() + b"\n")
    assert (name, bad) == ("prm800k", [])
    assert list(prm800k.write([made])) == [line + b"\n"]
    _, records, _ = read(json.dumps([json.loads(line)] * 2, **layout).encode())
    assert len(records) == 2


def test_unrecognized_file_tells_its_keys() -> None:
    with pytest.raises(UnknownFormat, match="question, cot"):
        read(b'{"question": "q", "cot": "c"}')
