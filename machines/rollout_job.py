"""The job of a Monte Carlo run: as `machines.judge_job`, with rollouts instead of votes.

An answer checker on another server is asked in the same thread as the endpoint. If it does not respond, the rollout is
stored as unchecked, because it has been paid for, and the run pauses. When it resumes, only the check is repeated.
"""

import dataclasses
import datetime as dt

from machines import remote_checker, rollout_requests
from machines.answers import CheckerKind
from machines.chat_endpoint import ChatReply
from machines.judge_job import JudgeLoop, RunStop, VoteOutcome
from machines.models import JudgeRun, JudgeVote, RunPause
from machines.remote_checker import CheckerDown
from machines.replies import ParsedReply, ReplyState, read_answer
from machines.rollout_requests import MissingRollouts, OpenRolloutTrace
from machines.stored_answers import read_stored_answer
from machines.verdicts import StepVerdict, TraceVerdict
from machines.vote_requests import MissingVotes, OpenTrace, VoteRequest


@dataclasses.dataclass(frozen=True)
class CheckedReply(ChatReply):
    """An answer with what a checker elsewhere said about it; `problem` is why it said nothing."""

    parsed: ParsedReply | None = None
    problem: str = ""


class RolloutLoop(JudgeLoop):
    """One pass over the missing rollouts of a run."""

    def _load_missing(self, run: JudgeRun) -> MissingVotes:
        self._options = run.judge.rollout_options
        self._rollouts = MissingRollouts(run)
        return self._rollouts

    def _ask(self, request: VoteRequest) -> ChatReply:
        """Run in a thread."""
        reply = _restore_reply(request.stored) if request.stored else super()._ask(request)
        if self._options.checker != CheckerKind.HTTP:
            return reply
        values = {field.name: getattr(reply, field.name) for field in dataclasses.fields(ChatReply)}
        try:
            return CheckedReply(**values, parsed=self._check(request, reply))
        except CheckerDown as error:
            return CheckedReply(**values, parsed=ParsedReply(ReplyState.UNCHECKED), problem=str(error))

    def _check(self, request: VoteRequest, reply: ChatReply) -> ParsedReply:
        answer = read_answer(reply.text, is_complete=reply.is_complete)
        if isinstance(answer, ParsedReply):
            return answer
        text = request.trace.text
        is_right = remote_checker.check_remotely(
            self._options.checker_address,
            problem=text.problem,
            reference_answer=text.reference_answer,
            response=answer,
            gate=self._gate,
        )
        return ParsedReply(ReplyState.UNPARSED if is_right is None else ReplyState.PARSED, is_right=is_right)

    def _gather(self) -> list[VoteOutcome]:
        outcomes = super()._gather()
        for outcome in outcomes:
            if outcome.parsed.state != ReplyState.UNCHECKED:
                self._rollouts.record(outcome.request, outcome.parsed)
        return outcomes

    def _read(self, request: VoteRequest, reply: ChatReply) -> VoteOutcome:
        if isinstance(reply, CheckedReply) and reply.parsed is not None:
            if reply.problem:
                self._stop_asking(RunStop(RunPause.ENDPOINT_DOWN, reply.problem))
            return VoteOutcome(request, reply.parsed, reply)
        parsed = rollout_requests.read_rollout(
            reply.text, request.trace.text.reference_answer, self._options, is_complete=reply.is_complete
        )
        return VoteOutcome(request, parsed, reply)

    def _make_vote(self, run: JudgeRun, outcome: VoteOutcome, now: dt.datetime) -> JudgeVote:
        stored = outcome.request.stored
        vote = super()._make_vote(run, outcome, now) if stored is None else stored
        assert isinstance(vote, JudgeVote)
        vote.prefix, vote.is_right = outcome.request.prefix, outcome.parsed.is_right
        if stored is not None:
            run.n_unread -= vote.run_id == run.pk and outcome.parsed.state == ReplyState.PARSED
            vote.state = outcome.parsed.state
            vote.save(update_fields=["state", "is_right"])
        return vote

    def _find_verdict(self, trace: OpenTrace) -> TraceVerdict | None:
        assert isinstance(trace, OpenRolloutTrace)
        finding = trace.rollouts.conclude()
        if not finding.is_decided:
            return None
        values = {value.n_steps - 1: value for value in finding.values}
        steps = []
        for position, rating in finding.ratings.items():
            value = values.get(position)
            steps.append(StepVerdict(position, rating, value.n_read if value else 0, value.n_right if value else 0))
        n_read = sum(vote.state == ReplyState.PARSED for vote in trace.votes.values()) + trace.rollouts.has_own_answer
        return TraceVerdict(finding.first_error, {finding.first_error: 1.0}, n_read, steps)

    def _list_values(self, trace: OpenTrace) -> list[list[int]]:
        assert isinstance(trace, OpenRolloutTrace)
        return [[each.n_steps, each.n_right, each.n_read] for each in trace.rollouts.conclude().values]

    @property
    def _sees_reference_answer(self) -> bool:
        return True  # every rollout is compared with it


def _restore_reply(vote: JudgeVote) -> ChatReply:
    """Return the answer of a rollout that was stored without its check."""
    answer = read_stored_answer(vote)
    return ChatReply(
        content=b"",
        text=answer.text,
        is_complete=answer.is_complete,
        finish_reason=vote.finish_reason,
        model=vote.served_model,
        prompt_tokens=vote.prompt_tokens,
        completion_tokens=vote.completion_tokens,
        is_usage_estimated=vote.is_usage_estimated,
        milliseconds=vote.milliseconds,
        n_attempts=vote.n_attempts,
    )
