"""The requests of a Monte Carlo run: the rollouts that are missing now, which depend on the answers so far.

Each rollout is a request of its own. Batches would cost less at endpoints that charge for every prompt, but a search by
halves and an early stop need single answers, and local servers reuse the computation of a prefix anyway.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from machines import answers, cost_caps, prompts
from machines.answers import CheckerKind
from machines.models import CanaryVote, Judge, JudgeRun, JudgeVote, VoteState
from machines.prompts import JudgedTraceText
from machines.replies import ParsedReply, ReplyState, read_answer
from machines.rollouts import RolloutOptions, TraceRollouts
from machines.vote_requests import MissingVotes, OpenTrace, VoteRequest


@dataclass
class OpenRolloutTrace(OpenTrace):
    rollouts: TraceRollouts = field(kw_only=True)
    prompts: dict[int, str] = field(default_factory=dict)  # by prefix
    unchecked: list[JudgeVote] = field(default_factory=list)  # stored, and not asked for again

    @property
    def is_complete(self) -> bool:
        return self.rollouts.is_complete

    @property
    def n_answers(self) -> int:
        return len(self.votes) + self.rollouts.has_own_answer

    def add_vote(self, vote: JudgeVote | CanaryVote, parsed: ParsedReply) -> None:
        super().add_vote(vote, parsed)
        if parsed.state != ReplyState.UNCHECKED:
            self.record(vote.prefix, vote.number, parsed)

    def record(self, prefix: int, number: int, parsed: ParsedReply) -> None:
        self.rollouts.record(prefix, number, parsed.is_right)


def find_own_answer(text: JudgedTraceText, options: RolloutOptions) -> bool | None:
    """Return whether the trace itself has the right answer, or None if that is unknown."""
    if options.checker == CheckerKind.HTTP:
        return text.is_right
    own = text.answer or ""
    if not answers.has_readable_answer(options.checker, own):
        own = answers.find_answer(options.checker, text.steps[-1].text if text.steps else "", options.pattern) or ""
    if not answers.has_readable_answer(options.checker, own):
        return text.is_right
    return answers.is_same_answer(options.checker, own, text.reference_answer)


def read_rollout(text: str, reference_answer: str, options: RolloutOptions, *, is_complete: bool) -> ParsedReply:
    """Read a rollout with a checker that runs here."""
    answer = read_answer(text, is_complete=is_complete)
    if isinstance(answer, ParsedReply):
        return answer
    found = answers.find_answer(options.checker, answer, options.pattern) or ""
    if not answers.has_readable_answer(options.checker, found):
        return ParsedReply(ReplyState.UNPARSED)
    is_right = answers.is_same_answer(options.checker, found, reference_answer)
    return ParsedReply(ReplyState.PARSED, is_right=is_right)


class MissingRollouts(MissingVotes):
    """The missing rollouts of a run. `record` adds what becomes missing with an answer."""

    def __init__(self, run: JudgeRun) -> None:
        super().__init__(run)
        self._options = run.judge.rollout_options

    def record(self, request: VoteRequest, parsed: ParsedReply) -> None:
        trace = request.trace
        assert isinstance(trace, OpenRolloutTrace)
        trace.record(request.prefix, request.number, parsed)
        self._waiting.extend(self._list_missing(trace))

    def _open_trace(self, text: JudgedTraceText) -> OpenRolloutTrace:
        # A trial asks about right answers as well, so that a person can read what the model writes.
        own_answer = None if self._run.is_trial else find_own_answer(text, self._options)
        rollouts = TraceRollouts(text.rateable, self._judge.n_votes, self._options, own_answer)
        return OpenRolloutTrace(text, "", self._judge.n_votes, rollouts=rollouts)

    def _add_stored_vote(self, trace: OpenTrace, vote: JudgeVote) -> None:
        assert isinstance(trace, OpenRolloutTrace)
        if vote.state == VoteState.UNCHECKED:
            trace.unchecked.append(vote)
        else:
            trace.add_vote(vote, ParsedReply(ReplyState(vote.state), is_right=vote.is_right))

    def _list_missing(self, trace: OpenTrace) -> Iterator[VoteRequest]:
        assert isinstance(trace, OpenRolloutTrace)
        stored = {(vote.prefix, vote.number): vote for vote in trace.unchecked}
        for prefix, number in trace.rollouts.list_missing():
            yield self._make_request(trace, prefix, number, stored.get((prefix, number)))

    def _make_request(self, trace: OpenRolloutTrace, prefix: int, number: int, stored: JudgeVote | None) -> VoteRequest:
        judge: Judge = self._judge
        if prefix not in trace.prompts:
            trace.prompts[prefix] = prompts.render_rollout_prompt(
                judge.prompt, trace.text, n_steps=prefix, separator=self._options.separator
            )
        prompt = trace.prompts[prefix]
        name = f"{judge.rater.pseudonym} {trace.text.trace_id} {prefix} {number}"
        digest = hashlib.sha256(name.encode()).hexdigest()
        cost = cost_caps.NOTHING if stored else cost_caps.bound_cost(judge, prompt)
        return VoteRequest(trace, number, digest, int(digest[:7], 16), cost, prompt, prefix, stored)
