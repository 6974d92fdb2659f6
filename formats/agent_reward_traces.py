"""AgentRewardBench trajectories: what `formats.agent_reward_bench` reads, with the verdicts as `annotations`.

A trajectory from such a file has its members as in the file. The steps of other traces become the reasoning and actions
of an agent, and what it saw before them its page.
"""

from collections.abc import Iterator

from formats import agent_reward_bench
from formats.examples import LabelRule, OutputRow, RowTally, TraceExample
from formats.records import PartRecord, StepRecord, TraceRecord, load_original


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    """Yield the trajectory with the verdicts of all its submissions, if there are any."""
    annotations = list(agent_reward_bench.write(example, rule, tally))
    if annotations:
        record = example.record
        trajectory = load_original(record, "agent_reward_bench") or _write_trajectory(record)
        yield {**trajectory, "annotations": annotations}


def _write_trajectory(record: TraceRecord) -> OutputRow:
    made, place = record.provenance, record.metadata
    return {
        "benchmark": str(place.get("benchmark", record.problem.domain)),
        "goal": record.problem.text,
        "agent": str(place.get("model_name", made.scaffold if made else "")),
        "model": made.policy if made else "",
        "experiment": str(place.get("exp_name", "")),
        "task_id": str(place.get("task_id", record.ref)),
        "steps": list(_write_steps(record.steps)),
    }


def _write_steps(steps: list[StepRecord]) -> Iterator[OutputRow]:
    pages: list[str] = []
    number = 0
    for step in steps:
        text = step.options[0].text if step.options else ""
        if not step.is_rateable:
            pages.append(text)
            continue
        parts = step.options[0].parts if step.options else ()
        thought = "\n".join(part.text for part in parts if part.kind == "text") if parts else text
        calls = [_write_call(part) for part in parts if part.kind == "call"]
        yield {
            "num": number,
            "axtree_pruned": "\n".join(pages) or None,
            "reasoning": thought or None,
            "action": "\n".join(calls) or None,
        }
        number, pages = number + 1, []


def _write_call(call: PartRecord) -> str:
    return call.text if call.name == "action" else f"{call.name}({call.text})"
