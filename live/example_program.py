"""A program that takes the place of a model, so that live labeling can be tried without a server. Pure.

It solves shopping problems ("3 notebooks for 4 euros each and 2 pens for 3 euros each") and sometimes makes a mistake.
What it writes depends only on the prompt and the seed, so a replay returns the same options.
"""

import json
import random
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

NAME = "example program"
# Python converts no longer numbers than 4,300 digits.
_ITEM = re.compile(r"(\d{1,9}) ([a-z]+) for (\d{1,9}) euros each")
_NOTE = re.compile(r"(\d{1,9})-euro note")
_TOTAL = re.compile(r"[Tt]ogether[^.]*= (\d{1,24})\$")
_CHANGE = re.compile(r"[Cc]hange[^.]*= (-?\d{1,24})\$")
_TOKENS_PER_WORD = 2


class _Item(NamedTuple):
    quantity: int
    name: str
    price: int
    cost: int | None  # as the steps so far say

    @property
    def right_cost(self) -> int:
        return self.quantity * self.price


class _Draft(NamedTuple):
    """A step that the program can write, with its true rating, and how it ends."""

    text: str
    rating: int
    is_last: bool = False
    is_cut: bool = False


def rate_steps(prompt: str) -> dict[str, int]:
    """Return the true rating of each whole step that can follow."""
    return {draft.text: draft.rating for draft in _write_drafts(prompt) if not draft.is_cut}


def write_answer(body: dict[str, Any]) -> bytes:
    """Return the answer to the body of a completions request, in the words of vLLM."""
    prompt, seed, n = str(body["prompt"]), body["seed"], int(body["n"])
    drafts = list(_write_drafts(prompt))
    dice = random.Random(f"{prompt} {seed}")  # noqa: S311  options that can be repeated, not a secret
    chosen = dice.choices(drafts, k=n) if drafts else []
    if drafts and drafts[0] not in chosen:
        chosen[dice.randrange(n)] = drafts[0]  # the right step is always among the options
    choices = [
        {
            "index": index,
            "text": draft.text,
            "finish_reason": "length" if draft.is_cut else "stop",
            "stop_reason": None if draft.is_last else body["stop"][0],
        }
        for index, draft in enumerate(chosen or [_Draft("", 0)])
    ]
    written = sum(_count_tokens(draft.text) for draft in chosen)
    usage = {"prompt_tokens": _count_tokens(prompt), "completion_tokens": written}
    return json.dumps({"model": NAME, "choices": choices, "usage": usage}).encode()


def _count_tokens(text: str) -> int:
    return _TOKENS_PER_WORD * len(text.split())


def _write_drafts(prompt: str) -> Iterator[_Draft]:
    """Yield the steps that can follow, the right one first. Problems of another kind have no steps."""
    problem, _, solution = prompt.rpartition("Solution:")
    items = [_read_item(found, solution) for found in _ITEM.findall(problem)]
    note, total, change = _NOTE.search(problem), _TOTAL.findall(solution), _CHANGE.findall(solution)
    if not items:
        return
    if not total and any(item.cost is None for item in items):
        yield from _write_costs(items, is_first=not solution.strip())
    elif not total:
        yield from _add_costs([item.right_cost if item.cost is None else item.cost for item in items])
    elif note and not change:
        yield from _subtract(int(note[1]), int(total[-1]))
    else:
        yield from _end(int(change[-1]) if note else int(total[-1]))


def _read_item(found: tuple[str, str, str], solution: str) -> _Item:
    count, name, price = found
    costs = re.findall(rf"\b{name} cost[^.]*= (\d{{1,24}})\$", solution)
    return _Item(int(count), name, int(price), int(costs[-1]) if costs else None)


def _write_costs(items: list[_Item], *, is_first: bool) -> Iterator[_Draft]:
    open_items = [item for item in items if item.cost is None]
    item, last = open_items[0], open_items[-1]
    yield _Draft(_write_cost(item, item.right_cost), 1)
    yield _Draft(_write_cost(item, item.right_cost + item.price), -1)
    yield _Draft(f"The {item.name} cost ${item.quantity} + {item.price} = {item.quantity + item.price}$ euros.", -1)
    yield _Draft(f"I add up the price of the {item.quantity} {item.name} one by one: {item.price} +", 0, is_cut=True)
    if item is not last:
        yield _Draft(_write_cost(last, last.right_cost), 1)
        yield _Draft(_write_cost(last, last.right_cost - 1), -1)
    remark = "I look at each kind of item, one after the other." if is_first else "The other items are left to look at."
    yield _Draft(remark, 0)


def _write_cost(item: _Item, cost: int) -> str:
    return f"The {item.quantity} {item.name} cost ${item.quantity} \\cdot {item.price} = {cost}$ euros."


def _add_costs(costs: list[int]) -> Iterator[_Draft]:
    added, fewer = " + ".join(map(str, costs)), " + ".join(map(str, costs[1:]))
    yield _Draft(f"Together that is ${added} = {sum(costs)}$ euros.", 1)
    yield _Draft(f"Together that is ${added} = {sum(costs) + 10}$ euros.", -1)
    yield _Draft(f"Together that is ${fewer} = {sum(costs[1:])}$ euros.", -1)
    yield _Draft("Now the cost of each kind of item is known.", 0)


def _subtract(paid: int, total: int) -> Iterator[_Draft]:
    yield _Draft(f"The change is ${paid} - {total} = {paid - total}$ euros.", 1)
    yield _Draft(f"The change is ${paid} - {total} = {paid - total + 10}$ euros.", -1)
    yield _Draft(f"The change is ${total} - {paid} = {total - paid}$ euros.", -1)
    yield _Draft(f"The note of {paid} euros is enough.", 0)


def _end(result: int) -> Iterator[_Draft]:
    yield _Draft(f"The answer is $\\boxed{{{result}}}$ euros.", 1, is_last=True)
    yield _Draft(f"So it is {result} euros. The answer is $\\boxed{{{result}}}$.", 1, is_last=True)
    yield _Draft(f"The answer is $\\boxed{{{result + 1}}}$ euros.", -1, is_last=True)
    yield _Draft("All steps fit together.", 0)
