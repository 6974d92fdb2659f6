"""One run of an agent, step by step, with at most one slip. Pure."""

import json
import random
from dataclasses import dataclass, field

from demo.generated_content import GeneratedOption, GeneratedPart, GeneratedStep, GeneratedTrace
from demo.slips import Slips

WRONG_CALL = "wrong call"
MISREADING = "misread observation"
CONSTRAINT = "dropped constraint"
POLICY = "broke the policy"
CLAIM = "unfounded claim"
_CODES = {  # of the kinds of errors in the rules for agents, with their severity
    WRONG_CALL: ("argument", 3),
    MISREADING: ("misread", 3),
    CONSTRAINT: ("rule", 2),
    POLICY: ("rule", 3),
    CLAIM: ("made-up", 2),
}


@dataclass
class AgentScript(Slips):
    numbers: random.Random
    steps: list[GeneratedStep] = field(default_factory=list)
    calls: int = 0

    def place(self) -> int:
        return len(self.steps)

    def system(self, text: str) -> None:
        self._context("system", text)

    def user(self, text: str) -> None:
        self._context("user", text)

    def think(self, text: str) -> None:
        self._own("reasoning", text)

    def call(self, tool: str, diff: str = "", **arguments: object) -> None:
        """Add an action: one call with its arguments as JSON, and the diff of a patch."""
        self.calls += 1
        spelled = json.dumps(arguments, ensure_ascii=False)
        parts = [GeneratedPart("call", spelled, name=tool, call_ref=f"call-{self.calls}")]
        if diff:
            parts.append(GeneratedPart("diff", diff))
        self._own("action", "\n\n".join([f"{tool}({spelled})", *([diff] if diff else [])]), tuple(parts))

    def observe(self, text: str, tool: str) -> None:
        part = GeneratedPart("result", text, name=tool, call_ref=f"call-{self.calls}")
        self.steps.append(GeneratedStep((GeneratedOption(text, None, (part,)),), kind="observation", is_rateable=False))

    def answer(self, text: str) -> None:
        self._own("answer", text)

    def _context(self, kind: str, text: str) -> None:
        self.steps.append(GeneratedStep((GeneratedOption(text, None),), kind=kind, is_rateable=False))

    def _own(self, kind: str, text: str, parts: tuple[GeneratedPart, ...] = ()) -> None:
        rating = self.truth()
        error_kind, severity = _CODES[self.offered[self.slip][1]] if rating == -1 else ("", None)
        option = GeneratedOption(text, rating, parts, error_kind=error_kind, severity=severity)
        self.steps.append(GeneratedStep((option,), kind=kind))

    def build_trace(self, *, problem: str, domain: str, reference: object, answer: object, ref: str) -> GeneratedTrace:
        return GeneratedTrace(
            problem=problem,
            domain=domain,
            reference_answer=str(reference),
            steps=tuple(self.steps),
            answer=str(answer),
            is_right=str(answer) == str(reference),
            error_kind=self.offered[self.slip][1] if self.slip else "",
            ref=ref,
        )
