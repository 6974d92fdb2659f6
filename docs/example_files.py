"""Write small example files into the current folder, for the commands of the guides: `python docs/example_files.py`.

Each trace adds numbers one by one. About a third has an error, and wrong steps often sound unsure.
"""

import gzip
import json
import random
from pathlib import Path
from typing import Any


def make_trace(number: int) -> dict[str, Any]:
    dice = random.Random(number)  # noqa: S311 (no secret)
    steps: list[str] = []
    label, total = -1, dice.randint(2, 90)
    for position in range(dice.randint(2, 5)):
        is_wrong = label < 0 and dice.random() < 0.15
        more = dice.randint(2, 90)
        word = "Perhaps" if dice.random() < (0.8 if is_wrong else 0.15) else "Then"
        steps.append(f"{word} we add: {total} + {more} = {total + more + is_wrong}.")
        total += more + is_wrong
        label = position if is_wrong else label
    return {"problem": f"Sum {number}: add the numbers one by one.", "steps": steps, "label": label}


def make_solution(number: int) -> dict[str, Any]:
    """Return a trace whose problem has a reference answer. About half of them have an error."""
    dice = random.Random(1000 + number)  # noqa: S311 (no secret)
    numbers = [dice.randint(2, 90) for _ in range(dice.randint(4, 8))]
    wrong_at = dice.choice([None, dice.randint(1, len(numbers) - 1)])
    steps, total = [], numbers[0]
    for position, more in enumerate(numbers[1:], start=1):
        result = total + more + (position == wrong_at)
        steps.append(f"{total} + {more} = {result}")
        total = result
    steps[-1] += f". The answer is: {total}"
    problem = f"Solution {number}: what is {' + '.join(map(str, numbers))}?"
    return {"problem": problem, "answer": str(sum(numbers)), "steps": steps}


def main() -> None:
    traces = [make_trace(number) for number in range(260)]
    unlabeled = [{key: trace[key] for key in ("problem", "steps")} for trace in traces[160:]]
    files = {
        "labeled.jsonl": traces[:160],  # ProcessBench's format: the first wrong step, or -1
        "math.json": traces[:80],
        "gsm8k.json": traces[80:160],
        "traces.jsonl": unlabeled[:60],  # the native format
        "gold.jsonl": [make_trace(number) for number in range(300, 340)],
        "answers.jsonl": [make_solution(number) for number in range(20)],  # with reference answers
    }
    for name, rows in files.items():
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    dice = random.Random(0)  # noqa: S311 (no secret)
    rollouts = [{**row, "labels": [round(dice.random(), 2) for _ in row["steps"]]} for row in unlabeled[60:]]
    Path("rollouts.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rollouts).encode()))


if __name__ == "__main__":
    main()
