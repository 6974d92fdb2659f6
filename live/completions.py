"""Requests for the options of a step, and their answers, in the dialects of servers. Pure.

    vLLM, SGLang, OpenAI   POST {address}/completions        choices[{index, text, finish_reason, stop_reason, …}]
    llama.cpp              POST {server}/completion          [{index, content, stop_type, stopping_word, …}]
    instructed             POST {address}/chat/completions   choices[{index, message{content}, finish_reason}]

vLLM's `stop_reason` and SGLang's `matched_stop` are the text at which the option stopped, or a token or null if the
model ended. Its own route tells this for llama.cpp: the route with OpenAI's protocol does not.
"""

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from machines import answers
from machines.answers import CheckerKind

STEP, SOLUTION, TRUNCATED = "step", "solution", "truncated"
_MAX_TOKEN_IDS = 20_000
_CHARACTERS_PER_TOKEN = 4  # for answers that state no usage
_SEEDED = ("vllm", "sglang", "llama_cpp")


@dataclass(frozen=True)
class StepSampler:
    """How the options of a step are sampled."""

    model: str
    family: str
    is_instructed: bool
    n_options: int
    temperature: float
    top_p: float
    top_k: int | None
    min_p: float | None
    max_tokens: int
    step_end: str


@dataclass(frozen=True)
class PolicyOption:
    index: int
    text: str
    ending: str
    finish_reason: str = ""
    stop_reason: str = ""  # JSON
    same_as: int | None = None
    token_ids: list[int] | None = None
    sum_logprob: float | None = None
    n_logprobs: int = 0


@dataclass(frozen=True)
class PolicyAnswer:
    """The usable options of an answer in the order of their indexes. `dropped` counts the others by reason."""

    options: list[PolicyOption]
    n_returned: int
    dropped: dict[str, int]
    prompt_tokens: int
    completion_tokens: int
    is_usage_estimated: bool
    model: str = ""
    fingerprint: str = ""
    is_answer: bool = True


def is_seeded(family: str) -> bool:
    """Return whether a server of this family repeats an answer for the same seed."""
    return family in _SEEDED


def build_address(address: str, sampler: StepSampler) -> str:
    address = address.rstrip("/")
    if sampler.is_instructed:
        return f"{address}/chat/completions"
    if sampler.family == "llama_cpp":
        return f"{address.removesuffix('/v1')}/completion"
    return f"{address}/completions"


def build_fields(sampler: StepSampler, *, seed: int, reference: str) -> dict[str, Any]:
    """Return all fields of a request except the prompt."""
    fields: dict[str, Any] = {"temperature": sampler.temperature, "top_p": sampler.top_p}
    is_local = is_seeded(sampler.family)
    if is_local:
        fields["seed"] = seed
        fields |= {name: value for name in ("top_k", "min_p") if (value := getattr(sampler, name)) is not None}
    if sampler.family == "llama_cpp" and not sampler.is_instructed:
        own = {"n_cmpl": sampler.n_options, "n_predict": sampler.max_tokens, "stop": [sampler.step_end]}
        return fields | own | {"n_probs": 1, "cache_prompt": True}
    fields |= {"model": sampler.model, "n": sampler.n_options}
    is_openai_chat = sampler.is_instructed and sampler.family == "openai"
    fields["max_completion_tokens" if is_openai_chat else "max_tokens"] = sampler.max_tokens
    if not sampler.is_instructed:
        fields |= {"stop": [sampler.step_end], "logprobs": 1}
    if sampler.family == "vllm":
        fields |= {"return_token_ids": True, "request_id": reference}
    return fields


def build_body(sampler: StepSampler, fields: dict[str, Any], prompt: str) -> dict[str, Any]:
    if sampler.is_instructed:
        return fields | {"messages": [{"role": "user", "content": prompt}]}
    return fields | {"prompt": prompt}


def read_options(sampler: StepSampler, content: bytes, prompt: str) -> PolicyAnswer:
    """Read the body of an answer. A body in another shape has no options."""
    answer = _decode(content)
    choices = _list_choices(sampler, answer)
    dropped: Counter[str] = Counter()
    options: list[PolicyOption] = []
    first: dict[str, int] = {}
    for place, choice in enumerate(choices):
        read = _read_choice(sampler, choice, place)
        if isinstance(read, str):
            dropped[read] += 1
        else:
            options.append(read)
    options.sort(key=lambda option: option.index)
    marked = []
    for option in options:
        original = first.setdefault(option.text, option.index)
        marked.append(option if original == option.index else _mark_duplicate(option, original))
    missing = sampler.n_options - len(choices)
    if missing > 0:
        dropped["missing"] = missing
    about = answer[0] if isinstance(answer, list) and answer and isinstance(answer[0], dict) else answer
    about = about if isinstance(about, dict) else {}
    stated = _read_usage(choices if sampler.family == "llama_cpp" and not sampler.is_instructed else [], about)
    texts = "".join(option.text for option in marked)
    return PolicyAnswer(
        options=marked,
        n_returned=len(choices),
        dropped=dict(dropped),
        prompt_tokens=stated[0] if stated else _estimate_tokens(prompt),
        completion_tokens=stated[1] if stated else _estimate_tokens(texts),
        is_usage_estimated=stated is None,
        model=_clean(about.get("model"), 200),
        fingerprint=_clean(about.get("system_fingerprint"), 100),
        is_answer=bool(choices),
    )


def _mark_duplicate(option: PolicyOption, original: int) -> PolicyOption:
    return PolicyOption(**{**vars(option), "same_as": original})


def _list_choices(sampler: StepSampler, answer: Any) -> list[dict[str, Any]]:
    if sampler.family == "llama_cpp" and not sampler.is_instructed:
        found = answer if isinstance(answer, list) else [answer] if isinstance(answer, dict) else []
        return [each for each in found if isinstance(each, dict) and "content" in each]
    choices = answer.get("choices") if isinstance(answer, dict) else None
    return [each for each in choices if isinstance(each, dict)] if isinstance(choices, list) else []


def _read_choice(sampler: StepSampler, choice: dict[str, Any], place: int) -> PolicyOption | str:
    """Return the option, or the reason why it is dropped."""
    if sampler.is_instructed:
        found = _read_instructed(choice)
    elif sampler.family == "llama_cpp":
        found = _read_llama_cpp(choice)
    else:
        found = _read_completion(choice)
    if found is None:
        return "unreadable"
    if not found.text.strip():
        return "empty"
    if not _is_storable(found.text):
        return "unreadable"
    index = choice.get("index")
    index = index if isinstance(index, int) and not isinstance(index, bool) and 0 <= index < 2**15 else place
    return PolicyOption(**{**vars(found), "index": index})


def _read_completion(choice: dict[str, Any]) -> PolicyOption | None:
    text, finish = choice.get("text"), choice.get("finish_reason")
    if not isinstance(text, str):
        return None
    names = [name for name in ("stop_reason", "matched_stop") if name in choice]
    stop = choice[names[0]] if names else None
    if finish == "length":
        ending = TRUNCATED
    elif names:
        ending = STEP if isinstance(stop, str) else SOLUTION
    else:
        ending = _guess_ending(text)
    logprobs = choice.get("logprobs")
    values = logprobs.get("token_logprobs") if isinstance(logprobs, dict) else None
    total, n = _sum_logprobs(values)
    return PolicyOption(
        index=0,
        text=text,
        ending=ending,
        finish_reason=_clean(finish, 40),
        stop_reason=_dump_stop(stop),
        token_ids=_read_token_ids(choice.get("token_ids")),
        sum_logprob=total,
        n_logprobs=n,
    )


def _read_llama_cpp(choice: dict[str, Any]) -> PolicyOption | None:
    text, kind = choice.get("content"), choice.get("stop_type")
    if not isinstance(text, str):
        return None
    probabilities = choice.get("completion_probabilities")
    rows = [row for row in probabilities if isinstance(row, dict)] if isinstance(probabilities, list) else []
    total, n = _sum_logprobs([row.get("logprob") for row in rows])
    return PolicyOption(
        index=0,
        text=text,
        ending={"word": STEP, "eos": SOLUTION}.get(str(kind), TRUNCATED),
        finish_reason=_clean(kind, 40),
        stop_reason=_dump_stop(choice.get("stopping_word")) if kind == "word" else "",
        token_ids=_read_token_ids(choice.get("tokens") or [row.get("id") for row in rows]),
        sum_logprob=total,
        n_logprobs=n,
    )


def _read_instructed(choice: dict[str, Any]) -> PolicyOption | None:
    message, finish = choice.get("message"), choice.get("finish_reason")
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, str):
        return None
    if finish == "length":
        return PolicyOption(0, content, TRUNCATED, finish_reason="length")
    found = find_object(content)
    text = found.get("step") if found else None
    if found is None or not isinstance(text, str):
        return None
    ending = SOLUTION if found.get("is_last") is True else STEP
    return PolicyOption(0, text, ending, finish_reason=_clean(finish, 40))


def find_object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a text that has a step."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            found, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and "step" in found:
            return found
        start = text.find("{", start + 1)
    return None


def find_final_answer(text: str) -> str | None:
    """Return the answer that the last step of a solution states."""
    _, heading, after = text.rpartition("# Answer\n\n")
    if heading and after.strip():
        return after.strip()[:500]
    return answers.find_answer(CheckerKind.EXPRESSION, text)


def _guess_ending(text: str) -> str:
    """Return how an option of a server that names no stop reason ended."""
    return SOLUTION if find_final_answer(text) else STEP


def _read_usage(choices: list[dict[str, Any]], about: dict[str, Any]) -> tuple[int, int] | None:
    usage = about.get("usage")
    if choices:  # llama.cpp counts each option by itself
        prompts = [_read_count(each.get("tokens_evaluated")) for each in choices]
        written = [_read_count(each.get("tokens_predicted")) for each in choices]
        known = [n for n in [*prompts[:1], *written] if n is not None]
        return (known[0], sum(known[1:])) if len(known) == 1 + len(choices) else None
    if not isinstance(usage, dict):
        return None
    counts = [n for name in ("prompt_tokens", "completion_tokens") if (n := _read_count(usage.get(name))) is not None]
    return (counts[0], counts[1]) if len(counts) == 2 else None


def _read_count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def _read_token_ids(value: Any) -> list[int] | None:
    if not isinstance(value, list) or not value or len(value) > _MAX_TOKEN_IDS:
        return None
    return value if all(_read_count(each) is not None for each in value) else None


def _sum_logprobs(values: Any) -> tuple[float | None, int]:
    if not isinstance(values, list):
        return None, 0
    known = [float(each) for each in values if isinstance(each, int | float) and math.isfinite(each)]
    return (math.fsum(known), len(known)) if known else (None, 0)


def _dump_stop(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else ""


def _is_storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _clean(value: Any, size: int) -> str:
    return value[:size].replace("\0", "") if isinstance(value, str) and _is_storable(value) else ""


def _estimate_tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def _decode(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return {}


def compare_options(recorded: list[tuple[int, str]], replayed: PolicyAnswer) -> int:
    """Return how many recorded options a replay returned with the same text at the same index."""
    texts = {option.index: option.text for option in replayed.options}
    return sum(texts.get(index) == text for index, text in recorded)


@dataclass
class ReplayCount:
    """What replays of some requests reproduced."""

    n_requests: int = 0
    n_options: int = 0
    n_reproduced: int = 0
    n_unanswered: int = 0
    n_unseeded: int = 0  # of servers that take no seed: not sent again
    n_changed_prompts: int = 0
    differing: list[int] = field(default_factory=list)  # ids of requests

    @property
    def share(self) -> float | None:
        return self.n_reproduced / self.n_options if self.n_options else None
