"""Score a project's traces and push the scores: `STEPMARK=… TOKEN=… python push_scores.py sums 4`.

A second run scores only new traces.
"""

import json
import os
import sys
import urllib.request
from typing import Any

PROJECT, VERSION = sys.argv[1:]
PAGE_SIZE = 100


def call(path: str, body: bytes | None = None) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Content-Type": "application/x-ndjson"}
    request = urllib.request.Request(f"{os.environ['STEPMARK']}/api/projects/{PROJECT}/{path}", body, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def score(problem: str, steps: list[dict[str, Any]]) -> list[float | None]:
    """Put your model here. This one prefers short steps; context gets no score."""
    return [1 / (1 + len(step["text"]) / 200) if step["is_rateable"] else None for step in steps]


cursor = 0
while cursor is not None:
    page = call(f"traces?prm={VERSION}&limit={PAGE_SIZE}&cursor={cursor}")
    rows = [{"trace": each["id"], "scores": score(each["problem"], each["steps"])} for each in page["traces"]]
    if rows:
        report = call(f"scores?prm={VERSION}", "\n".join(map(json.dumps, rows)).encode())
        print(f"{report['added']} added, {report['bad']} bad")
    cursor = page["next_cursor"]
