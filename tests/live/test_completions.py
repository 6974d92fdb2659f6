"""Requests and answers in the dialects of servers."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from live import completions
from live.completions import StepSampler


def make_sampler(family: str = "vllm", *, is_instructed: bool = False, n: int = 3) -> StepSampler:
    return StepSampler("m", family, is_instructed, n, 1.0, 0.9, 40, 0.05, 64, "\n\n")


def read(sampler: StepSampler, answer: Any) -> completions.PolicyAnswer:
    return completions.read_options(sampler, json.dumps(answer).encode(), "prompt")


@pytest.mark.parametrize(
    ("choice", "ending"),
    [
        ({"finish_reason": "stop", "stop_reason": "\n\n"}, "step"),
        ({"finish_reason": "stop", "stop_reason": None}, "solution"),
        ({"finish_reason": "stop", "stop_reason": 151645}, "solution"),
        ({"finish_reason": "length", "stop_reason": None}, "truncated"),
        ({"finish_reason": "stop", "matched_stop": "\n\n"}, "step"),
        ({"finish_reason": "stop", "matched_stop": 2}, "solution"),
        ({"finish_reason": "stop"}, "step"),
        ({"finish_reason": "stop", "text": "So \\boxed{4}."}, "solution"),
    ],
)
def test_ending_of_completions(choice: dict[str, Any], ending: str) -> None:
    found = read(make_sampler(n=1), {"choices": [{"index": 0, "text": "A step.", **choice}]})
    assert [option.ending for option in found.options] == [ending]


@pytest.mark.parametrize(("stop", "ending"), [("word", "step"), ("eos", "solution"), ("limit", "truncated")])
def test_ending_of_llama_cpp(stop: str, ending: str) -> None:
    choice = {"index": 0, "content": "A step.", "stop_type": stop, "stopping_word": "\n\n", "tokens_predicted": 3}
    found = read(make_sampler("llama_cpp", n=1), [{**choice, "tokens_evaluated": 7}])
    assert (found.options[0].ending, found.prompt_tokens, found.completion_tokens) == (ending, 7, 3)
    assert read(make_sampler("llama_cpp", n=1), {**choice}).options[0].text == "A step."  # n = 1 has no list


def test_instructed_steps_are_found_in_the_reply() -> None:
    sampler = make_sampler(is_instructed=True)
    contents = ['Sure: {"step": "One.", "is_last": false}', '{"step": "Two.", "is_last": true}', "No JSON {here}"]
    choices = [{"index": n, "message": {"content": text}, "finish_reason": "stop"} for n, text in enumerate(contents)]
    found = read(sampler, {"choices": choices})
    assert [(option.text, option.ending) for option in found.options] == [("One.", "step"), ("Two.", "solution")]
    assert found.dropped == {"unreadable": 1}


def test_fields_of_each_server() -> None:
    fields = {
        family: set(completions.build_fields(make_sampler(family), seed=7, reference="r"))
        for family in ("vllm", "sglang", "llama_cpp", "openai", "hosted")
    }
    assert {"seed", "top_k", "min_p", "request_id", "return_token_ids"} <= fields["vllm"]
    assert {"seed", "top_k", "n", "stop"} <= fields["sglang"]
    assert {"seed", "n_cmpl", "n_predict"} <= fields["llama_cpp"]
    assert not {"seed", "top_k", "request_id"} & (fields["openai"] | fields["hosted"])
    address = "http://gpu:8000/v1/"
    assert completions.build_address(address, make_sampler("llama_cpp")) == "http://gpu:8000/completion"
    assert completions.build_address(address, make_sampler()) == "http://gpu:8000/v1/completions"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "text",
                    "index",
                    "content",
                    "message",
                    "usage",
                    "logprobs",
                    "token_logprobs",
                    "finish_reason",
                    "step",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.fault
@settings(max_examples=60)
@given(json_values, st.sampled_from(["vllm", "llama_cpp", "hosted"]), st.booleans())
def test_hostile_answers_are_read_without_an_error(answer: Any, family: str, is_instructed: bool) -> None:
    sampler = make_sampler(family, is_instructed=is_instructed)
    found = completions.read_options(sampler, json.dumps(answer).encode(errors="replace"), "p")
    assert found.n_returned >= len(found.options)
    assert len({option.index for option in found.options}) <= len(found.options)
