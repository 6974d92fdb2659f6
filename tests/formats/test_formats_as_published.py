"""Variants of formats in published files."""

import io
import json
from typing import Any

import pytest

from formats import catalog
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
    """Trajectories of agents and benchmarks in one object can be very large."""
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
        (['[{"role": "user", "content": "é"},', ' {"role": "user"'], (2, 2)),
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
    assert (twice.submissions, nowhere.submissions, nowhere.is_right) == ([], [], False)


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


@pytest.mark.parametrize(("value", "rated"), [(["+", "-"], [1, -1]), ([0.5, 0], [None, None])])
def test_math_shepherd_reads_openrlhf(value: list[Any], rated: list[int | None]) -> None:
    record = one("math_shepherd", {"input": "Q Step 1: a ки\nStep 2: b ки", "value": value})
    assert ratings(record) == rated


def test_swe_agent_reads_messages_with_content_lists() -> None:
    content = [{"type": "text", "text": "Mend it.", "cache_control": {"type": "ephemeral"}}]
    history = [{"role": "system", "content": "You mend."}, {"role": "user", "content": content}]
    record = one("swe_agent", {"history": history, "trajectory": [{"action": "ls", "observation": ""}]})
    assert (record.problem.text, texts(record)) == ("Mend it.", ["You mend.", "Mend it.", "ls"])
