"""Ask another program whether an answer is right.

POST {address}   {"problem": "…", "reference_answer": "…", "response": "…"}
200   {"right": true}     or false, or null if the response states no answer
"""

import json

import outbound
from machines.chat_endpoint import EndpointGate

_TIMEOUT, _TRIES, _FIRST_DELAY = 30.0, 3, 0.5
_MAX_BYTES = 1 << 16


class CheckerDown(Exception):
    """No attempt was answered as the protocol says. The message is one line and never contains an answer."""


def check_remotely(
    address: str, *, problem: str, reference_answer: str, response: str, gate: EndpointGate
) -> bool | None:
    """Return whether the response is right, or None if it states no answer."""
    request = {"problem": problem, "reference_answer": reference_answer, "response": response}
    body, problem_line = json.dumps(request).encode(), "not asked"
    for attempt in range(_TRIES):
        gate.wait(_FIRST_DELAY * 2 ** (attempt - 1) if attempt else 0.0)
        if gate.is_stopped:
            break
        try:
            answer = outbound.post(address, body, {}, timeout=_TIMEOUT, max_bytes=_MAX_BYTES)
        except (outbound.AddressRefused, outbound.RequestFailed) as error:
            problem_line = str(error)
            continue
        is_read, is_right = _read_verdict(answer.content) if answer.status == 200 else (False, None)
        if is_read:
            return is_right
        problem_line = f"status {answer.status}" if answer.status != 200 else "no “right” in its answer"
    raise CheckerDown(f"The answer checker did not answer ({problem_line}). Check that it is running.")


def _read_verdict(content: bytes) -> tuple[bool, bool | None]:
    """Return whether the body is a verdict, and the verdict."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return False, None
    verdict = answer.get("right", "") if isinstance(answer, dict) else ""
    return (True, verdict) if verdict is None or isinstance(verdict, bool) else (False, None)
