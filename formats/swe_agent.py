"""SWE-agent's trajectories of a coding agent. Thought and action form one rateable step, unless a segmenter
is named; the observation is context."""

from collections.abc import Iterator
from itertools import takewhile

from msgspec import Struct

from formats import messages, records, strict_json
from formats.record_reader import RecordReader
from formats.records import OptionRecord, PartRecord, ProblemRecord, ProvenanceRecord, StepRecord, TraceRecord

SEGMENTER = "agent turns 1"


class AgentTurn(Struct, gc=False):
    action: str = ""
    observation: str | None = ""
    thought: str | None = ""
    response: str | None = ""


class AgentMessage(Struct, gc=False):
    role: str
    content: str | list[object] | None = ""
    is_demo: bool = False


class AgentInfo(Struct, gc=False, frozen=True):
    submission: str | None = None


class SweAgentItem(Struct, gc=False):
    trajectory: list[AgentTurn]
    history: list[AgentMessage] = []
    info: AgentInfo = AgentInfo()
    environment: str = ""


def parse_traces(item: SweAgentItem, segmenter: str = "") -> Iterator[TraceRecord]:
    if not item.trajectory:
        raise strict_json.RecordMisfit(("trajectory",), "the trajectory is empty")
    opening = list(takewhile(lambda message: message.role != "assistant", item.history))
    questions = [message for message in opening if message.role == "user" and not message.is_demo]
    steps = [_make_context_step(position, message) for position, message in enumerate(opening)]
    for number, turn in enumerate(item.trajectory):
        steps.extend(_make_turn_steps(turn, source_position=len(opening) + number))
    steps, used = messages.split_messages(steps, segmenter) if segmenter else (steps, "")
    yield TraceRecord(
        problem=ProblemRecord(records.join_content(questions[-1].content) if questions else item.environment),
        steps=steps,
        answer=item.info.submission,
        provenance=ProvenanceRecord(scaffold="SWE-agent", segmenter=messages.name_segmenters(SEGMENTER, used)),
    )


def _make_context_step(position: int, message: AgentMessage) -> StepRecord:
    option = OptionRecord(records.join_content(message.content))
    kind = "system" if message.role == "system" else "user"
    return StepRecord([option], kind=kind, is_rateable=False, source_position=position)


def _make_turn_steps(turn: AgentTurn, *, source_position: int) -> Iterator[StepRecord]:
    thought = turn.thought or ""
    parts = [PartRecord("text", thought)] if thought else []
    if turn.action:
        command = turn.action.split(maxsplit=1)[:1]
        parts.append(PartRecord("call", turn.action, name="".join(command)[:200]))
    text = turn.response or "\n".join(part.text for part in parts)
    option = OptionRecord(text, parts=tuple(parts))
    yield StepRecord([option], kind="action" if turn.action else "reasoning", source_position=source_position)
    if turn.observation:
        result = OptionRecord(turn.observation, parts=(PartRecord("result", turn.observation),))
        yield StepRecord([result], kind="observation", is_rateable=False, source_position=source_position)


read = RecordReader(SweAgentItem, parse_traces, takes_segmenter=True)
