"""SWE-agent's trajectories of a coding agent. Thought and action form one rateable step; the observation is context."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from formats import strict_json
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
    exit_status: str | None = None


class SweAgentItem(Struct, gc=False):
    trajectory: list[AgentTurn]
    history: list[AgentMessage] = []
    info: AgentInfo = AgentInfo()
    environment: str = ""


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and isinstance(record.get("trajectory"), list)


def parse_traces(item: SweAgentItem) -> Iterator[TraceRecord]:
    if not item.trajectory:
        raise strict_json.RecordMisfit(("trajectory",), "the trajectory is empty")
    opening = list(_opening_messages(item.history))
    questions = [message for message in opening if message.role == "user" and not message.is_demo]
    steps = [_make_context_step(position, message) for position, message in enumerate(opening)]
    for number, turn in enumerate(item.trajectory):
        steps.extend(_make_turn_steps(turn, source_position=len(opening) + number))
    yield TraceRecord(
        problem=ProblemRecord(_text(questions[-1]) if questions else item.environment),
        steps=steps,
        answer=item.info.submission,
        provenance=ProvenanceRecord(scaffold="SWE-agent", segmenter=SEGMENTER),
    )


def _opening_messages(history: list[AgentMessage]) -> Iterator[AgentMessage]:
    """Yield the messages before the agent's first turn."""
    for message in history:
        if message.role == "assistant":
            return
        yield message


def _make_context_step(position: int, message: AgentMessage) -> StepRecord:
    kind = "system" if message.role == "system" else "user"
    return StepRecord([OptionRecord(_text(message))], kind=kind, is_rateable=False, source_position=position)


def _text(message: AgentMessage) -> str:
    """Return the text of a message. Newer versions write a message as a list of pieces."""
    content = message.content
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(_piece_text(piece) for piece in content)


def _piece_text(piece: object) -> str:
    text = piece.get("text") if isinstance(piece, dict) else piece
    return text if isinstance(text, str) else msgspec.json.encode(piece).decode()


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


read = RecordReader(SweAgentItem, parse_traces)
