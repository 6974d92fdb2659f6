"""What a rater sees of a live session: the solution so far, and the options of the next step or why there are none."""

from dataclasses import dataclass
from typing import Any

from annotate import keys
from live import sessions
from live.models import (
    LiveOption,
    LivePolicy,
    LiveSession,
    LiveSessionState,
    LiveTurn,
    OptionRequest,
    OptionRequestState,
)


@dataclass(frozen=True)
class ShownOption:
    """An option with its letter and the number of its duplicates."""

    option: LiveOption
    letter: str
    n_same: int


@dataclass(frozen=True)
class PathStep:
    number: int
    text: str
    is_written: bool


def build_stage(session: LiveSession, turn: LiveTurn) -> dict[str, Any]:
    """Return the context of the fragment `annotate/live/stage.html`."""
    state = find_state(session, turn)
    is_shown = turn.shown is not None and turn.ended_at is None and state == "options"
    return {
        "session": session,
        "turn": turn,
        "state": state,
        "path": _load_path(session),
        "options": list_shown_options(turn) if is_shown else [],
        "problem_of_server": turn.request.problem,
    }


def find_state(session: LiveSession, turn: LiveTurn) -> str:
    """Return "ended", "aside", "limit", "options", "nothing", "waiting", "capped" or "away"."""
    if session.state != LiveSessionState.OPEN:
        return str(session.state)
    if turn.ended_at is not None:
        return "limit"
    request: OptionRequest = turn.request
    match request.state:
        case OptionRequestState.ANSWERED:
            return "options" if turn.shown else "nothing"
        case OptionRequestState.CAPPED:
            return "capped"
        case OptionRequestState.FAILED | OptionRequestState.REFUSED:
            return "away"
        case _:
            return "away" if request.n_tries > 1 else "waiting"


def list_shown_options(turn: LiveTurn) -> list[ShownOption]:
    """Return the options in the order in which they are shown. Duplicates are counted with the first of them."""
    options = {option.index: option for option in LiveOption.objects.filter(request=turn.request_id)}
    first = [options[index] for index in turn.shown or () if options[index].same_as is None]
    return [
        ShownOption(option, chr(ord("A") + place), sum(other.same_as == option.index for other in options.values()) + 1)
        for place, option in enumerate(first)
    ]


def _load_path(session: LiveSession) -> list[PathStep]:
    rows = LiveTurn.objects.filter(session=session, ended_at__isnull=False).select_related("chosen")
    return [
        PathStep(turn.position + 1, turn.chosen.text if turn.chosen else turn.written_text or "", turn.chosen is None)
        for turn in rows.order_by("position")
    ]


def build_page(session: LiveSession, turn: LiveTurn, user: Any) -> dict[str, Any]:
    user_keys = keys.load_keys(user)
    policy: LivePolicy = session.policy
    return {
        "project": session.project,
        "keys": user_keys,
        "policy": policy,
        "config": {
            "user": user.pk,
            "session": session.pk,
            "shortcuts": keys.load_mode(user),
            "keys": {key: action for action, key in user_keys.items() if key},
        },
        "max_step": sessions.MAX_STEP_CHARACTERS,
        "max_note": sessions.MAX_NOTE_CHARACTERS,
        **build_stage(session, turn),
    }
