"""mini-swe-agent's trajectories: replies of the model are rateable steps, and the output of its commands is context.

The messages look like a chat, but outputs may have the role `user`, and the last message, with the role `exit`, comes
from the harness and repeats the submission.
"""

from collections.abc import Iterator

from msgspec import Struct

from formats import messages, records, strict_json
from formats.record_reader import RecordReader
from formats.records import OptionRecord, PartRecord, ProblemRecord, ProvenanceRecord, StepRecord, TraceRecord

FORMAT_PREFIX = "mini-swe-agent"
SEGMENTER = "agent turns 1"


class MiniAgentCommand(Struct, gc=False, frozen=True):
    command: str = ""


class MiniAgentExtra(Struct, gc=False, frozen=True):
    actions: list[MiniAgentCommand] = []


class MiniAgentMessage(Struct, gc=False):
    role: str
    content: str | list[object] | None = ""
    extra: MiniAgentExtra = MiniAgentExtra()


class MiniAgentModel(Struct, gc=False, frozen=True):
    model_name: str = ""


class MiniAgentConfig(Struct, gc=False, frozen=True):
    model: MiniAgentModel = MiniAgentModel()


class MiniAgentInfo(Struct, gc=False, frozen=True):
    submission: str | None = None
    mini_version: str = ""
    config: MiniAgentConfig = MiniAgentConfig()


class MiniSweAgentItem(Struct, gc=False):
    trajectory_format: str
    messages: list[MiniAgentMessage]
    info: MiniAgentInfo = MiniAgentInfo()
    instance_id: str = ""


def looks_like(record: object) -> bool:
    name = record.get("trajectory_format") if isinstance(record, dict) else None
    return isinstance(name, str) and name.startswith(FORMAT_PREFIX)


def parse_traces(item: MiniSweAgentItem, segmenter: str = "") -> Iterator[TraceRecord]:
    problem = next((position for position, each in enumerate(item.messages) if each.role == "user"), None)
    if problem is None:
        raise strict_json.RecordMisfit(("messages",), "no message has the role user, which states the problem")
    steps = [
        _make_step(position, message, is_problem=position == problem)
        for position, message in enumerate(item.messages)
        if message.role != "exit"  # it repeats the submission
    ]
    steps, used = messages.split_messages(steps, segmenter) if segmenter else (steps, "")
    yield TraceRecord(
        problem=ProblemRecord(records.join_content(item.messages[problem].content)),
        steps=steps,
        ref=item.instance_id[:200],
        answer=item.info.submission,
        provenance=ProvenanceRecord(
            policy=item.info.config.model.model_name[:200],
            scaffold=f"{FORMAT_PREFIX} {item.info.mini_version}".strip()[:200],
            segmenter=messages.name_segmenters(SEGMENTER, used),
        ),
    )


def _make_step(position: int, message: MiniAgentMessage, *, is_problem: bool) -> StepRecord:
    text = records.join_content(message.content)
    match message.role:
        case "assistant":
            commands = [each.command for each in message.extra.actions]
            calls = [PartRecord("call", command, name="bash") for command in commands if command not in text]
            parts = (*([PartRecord("text", text)] if text else ()), *calls) if calls else ()
            shown = "\n".join(filter(None, (text, *(call.text for call in calls))))
            kind = "action" if commands or "```" in text else "reasoning"
            return StepRecord([OptionRecord(shown, parts=parts)], kind=kind, source_position=position)
        case "system" | "user" | "tool":
            kind = "system" if message.role == "system" else "user" if is_problem else "observation"
            parts = (PartRecord("result", text),) if kind == "observation" else ()
            return StepRecord([OptionRecord(text, parts=parts)], kind=kind, is_rateable=False, source_position=position)
    raise strict_json.RecordMisfit(("messages", position, "role"), f'unknown role "{message.role[:40]}"')


read = RecordReader(MiniSweAgentItem, parse_traces, looks_like=looks_like, takes_segmenter=True)
