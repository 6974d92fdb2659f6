"""SWE-agent's trajectories: what a coding agent thought, did and saw. Thought and action together are one step that can
be rated; what came back is context."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from formats import strict_json
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


decoder = msgspec.json.Decoder(SweAgentItem)


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and isinstance(record.get("trajectory"), list)


def parse_traces(item: SweAgentItem) -> Iterator[TraceRecord]:
    if not item.trajectory:
        raise strict_json.RecordMisfit(("trajectory",), "the trajectory is empty")
    opening = list(_opening_messages(item.history))
    asked = [message for message in opening if message.role == "user" and not message.is_demo]
    steps = [_make_context_step(position, message) for position, message in enumerate(opening)]
    for number, turn in enumerate(item.trajectory):
        steps.extend(_make_turn_steps(turn, source_position=len(opening) + number))
    yield TraceRecord(
        problem=ProblemRecord(_text(asked[-1]) if asked else item.environment),
        steps=steps,
        answer=item.info.submission,
        provenance=ProvenanceRecord(scaffold="SWE-agent", segmenter=SEGMENTER),
    )


def _opening_messages(history: list[AgentMessage]) -> Iterator[AgentMessage]:
    """What the agent was told before it began."""
    for message in history:
        if message.role == "assistant":
            return
        yield message


def _make_context_step(position: int, message: AgentMessage) -> StepRecord:
    kind = "system" if message.role == "system" else "user"
    return StepRecord([OptionRecord(_text(message))], kind=kind, is_rateable=False, source_position=position)


def _text(message: AgentMessage) -> str:
    """Newer agents write a message as a list of pieces, of which those of text are what was said."""
    content = message.content
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(_piece(piece) for piece in content)


def _piece(piece: object) -> str:
    text = piece.get("text") if isinstance(piece, dict) else piece
    return text if isinstance(text, str) else msgspec.json.encode(piece).decode()


def _make_turn_steps(turn: AgentTurn, *, source_position: int) -> Iterator[StepRecord]:
    thought = turn.thought or ""
    parts = [PartRecord("text", thought)] if thought else []
    if turn.action:
        parts.append(
            PartRecord("call", turn.action, name=turn.action.split(maxsplit=1)[0][:200] if turn.action.strip() else "")
        )
    text = turn.response or "\n".join(part.text for part in parts)
    option = OptionRecord(text, parts=tuple(parts))
    yield StepRecord([option], kind="action" if turn.action else "reasoning", source_position=source_position)
    if turn.observation:
        seen = OptionRecord(turn.observation, parts=(PartRecord("result", turn.observation),))
        yield StepRecord([seen], kind="observation", is_rateable=False, source_position=source_position)
