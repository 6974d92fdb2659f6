"""The job of a run: ask for the missing votes, store each answer, and submit the verdict of each complete trace.

Threads ask the endpoint. This generator grants requests under the cost caps, gathers answers, and yields functions
that store what has arrived in one transaction. So a stored vote is never asked for again, whenever the process is
killed; of the requests that are under way at that moment, the answers are lost. `machines.chat_endpoint` marks each
request with a key, for gateways that do not charge twice.

A vote whose attempts all failed goes to the end of the line. If other votes were answered in between, and it fails once
more, it counts as failed. If no vote is answered, the run pauses: the endpoint is down.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from jobs.failures import JobFailed
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.assignments.machine_submissions import MachineRating, MachineSubmission, save_machine_submissions
from machines import cost_caps, judges, prompts, runs, verdicts
from machines.chat_endpoint import (
    ChatEndpoint,
    ChatRefused,
    ChatReply,
    EndpointDown,
    EndpointGate,
    EndpointMisconfigured,
    ask_endpoint,
)
from machines.models import (
    AnsweredVote,
    CanaryVote,
    JudgedTrace,
    JudgeRun,
    JudgeRunState,
    JudgeVote,
    RunPause,
    VoteState,
)
from machines.replies import ParsedReply, ReplyState, parse_reply
from machines.stored_answers import pack_answer
from machines.verdicts import TraceVerdict
from machines.vote_requests import MissingVotes, OpenTrace, VoteRequest
from outbound.sealed_secrets import SecretUnreadable

AnyVote = JudgeVote | CanaryVote

_BEAT_SECONDS = 2.0  # between two chunks without answers: it renews the lease
_FAILURES_IN_A_ROW = 5  # of different votes, after which the endpoint counts as down
_FAILED_ROUNDS = 2
_PAUSES_FOR_LAST_VOTES = 2  # then the last few votes fail, so that they do not keep the run open


@dataclass(frozen=True)
class VoteOutcome:
    """The outcome of one request: an answer, a refusal, or a final failure."""

    request: VoteRequest
    parsed: ParsedReply
    reply: ChatReply | None = None
    status: int | None = None


@dataclass(frozen=True)
class RunStop:
    pause: RunPause
    line: str
    retry_after: float | None = None


def run_judge_job(job: Job, loop: "type[JudgeLoop] | None" = None) -> Iterator[JobProgress | Chunk]:
    run = JudgeRun.objects.select_related("judge__project__guideline", "judge__rater__project__guideline").get(
        pk=job.arguments["run"]
    )
    if run.state != JudgeRunState.OPEN:
        return
    try:
        endpoint = judges.load_endpoint(run.judge)
    except SecretUnreadable as error:
        raise JobFailed(str(error)) from None
    yield from (loop or JudgeLoop)(run, endpoint).list_chunks()


class JudgeLoop:
    """One pass over the missing votes of a run."""

    def __init__(self, run: JudgeRun, endpoint: ChatEndpoint) -> None:
        self._run = run
        self._judge = run.judge
        self._endpoint = endpoint
        self._gate = EndpointGate()
        self._missing = self._load_missing(run)
        self._under_way: dict[Future[ChatReply], VoteRequest] = {}
        self._granted: list[VoteRequest] = []
        self._unanswered: set[VoteRequest] = set()  # in a row, since the last answer
        self._n_answered = 0
        self._last_problem = ""
        self._stop: RunStop | None = None
        self._has_saved = self._is_ended = False

    def _load_missing(self, run: JudgeRun) -> MissingVotes:
        return MissingVotes(run)

    def list_chunks(self) -> Iterator[JobProgress | Chunk]:
        # A few requests more than threads, so that no thread waits for the next chunk.
        capacity = self._judge.n_concurrent + self._judge.n_concurrent // 4
        pool = ThreadPoolExecutor(self._judge.n_concurrent, thread_name_prefix="judge")
        try:
            while not self._is_ended:
                outcomes = self._gather()
                wanted = [] if self._stop else self._missing.take(capacity - len(self._under_way))
                yield partial(self._save, outcomes, wanted, self._missing.take_complete())
                for request in self._granted:
                    self._under_way[pool.submit(self._ask, request)] = request
                if self._under_way:
                    wait(self._under_way, timeout=_BEAT_SECONDS, return_when=FIRST_COMPLETED)
        finally:
            self._gate.stop()
            self._missing.close()
            pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, request: VoteRequest) -> ChatReply:
        """Run in a thread."""
        return ask_endpoint(self._endpoint, request.prompt, key=request.key, seed=request.seed, gate=self._gate)

    # --- gather answers -----------------------------------------------------------------------------------------------

    def _gather(self) -> list[VoteOutcome]:
        """Return what has arrived. An unanswered request waits for another round, or stops the run."""
        outcomes = []
        done = [future for future in self._under_way if future.done()]
        unanswered: list[VoteRequest] = []
        for future in done:
            request = self._under_way.pop(future)
            try:
                outcomes.append(self._read(request, future.result()))
            except ChatRefused as refused:
                outcomes.append(VoteOutcome(request, ParsedReply(ReplyState.REFUSED), status=refused.status))
            except EndpointMisconfigured as error:
                self._stop_asking(RunStop(RunPause.CONFIGURATION, str(error)))
            except EndpointDown as error:
                unanswered.append(request)
                self._note_unanswered(error)
        return outcomes + self._sort_unanswered(unanswered, len(outcomes))

    def _note_unanswered(self, error: EndpointDown) -> None:
        self._last_problem = str(error)
        if error.retry_after is not None:
            self._stop_asking(RunStop(RunPause.RATE_LIMIT, str(error), error.retry_after))

    def _sort_unanswered(self, unanswered: list[VoteRequest], n_answered: int) -> list[VoteOutcome]:
        """Return the votes that failed. The others wait for another round, or the run stops."""
        self._n_answered += n_answered
        self._unanswered = set(unanswered) if n_answered else self._unanswered | set(unanswered)
        if self._stop:
            return []
        for request in unanswered:
            request.n_answered_before = self._n_answered if request.round == 1 else request.n_answered_before
            request.round += 1
        failed = [request for request in unanswered if self._is_failed(request)]
        self._unanswered -= set(failed)
        if not n_answered and self._is_endpoint_down():
            if len(self._unanswered) >= _FAILURES_IN_A_ROW or self._run.n_pauses < _PAUSES_FOR_LAST_VOTES:
                self._stop_asking(RunStop(RunPause.ENDPOINT_DOWN, self._last_problem))
            else:
                failed = unanswered
        for request in unanswered:
            if request not in failed:
                self._missing.put_last(request)
        return [VoteOutcome(request, ParsedReply(ReplyState.FAILED)) for request in failed]

    def _is_failed(self, request: VoteRequest) -> bool:
        """Others were answered while this vote was not, twice."""
        return request.round > _FAILED_ROUNDS and self._n_answered > request.n_answered_before

    def _is_endpoint_down(self) -> bool:
        """Several votes failed in a row, or only votes are left that failed twice."""
        is_stuck = all(request.round > _FAILED_ROUNDS for request in (*self._unanswered, *self._under_way.values()))
        return bool(self._unanswered) and (is_stuck or len(self._unanswered) >= _FAILURES_IN_A_ROW)

    def _stop_asking(self, stop: RunStop) -> None:
        self._stop = self._stop or stop
        self._gate.stop()  # threads between two attempts give up; answers under way still arrive

    def _read(self, request: VoteRequest, reply: ChatReply) -> VoteOutcome:
        trace = request.trace
        parsed = parse_reply(
            self._judge.contract,
            reply.text,
            trace.text.rateable,
            is_complete=reply.is_complete,
            body=reply.content,
        )
        return VoteOutcome(request, parsed, reply)

    def _find_verdict(self, trace: OpenTrace) -> TraceVerdict | None:
        return verdicts.combine_votes(self._judge.contract, trace.list_votes(), trace.text.rateable)

    def _list_values(self, trace: OpenTrace) -> list[list[int]]:
        """Return the values of prefixes, which only rollouts have."""
        return []

    @property
    def _sees_reference_answer(self) -> bool:
        return prompts.shows_reference_answer(self._judge.prompt)

    # --- store them ---------------------------------------------------------------------------------------------------

    def _save(
        self,
        outcomes: Sequence[VoteOutcome],
        wanted: Sequence[VoteRequest],
        complete: Sequence[OpenTrace],
        now: dt.datetime,
    ) -> JobProgress:
        """Store what has arrived, and grant the next requests."""
        run = JudgeRun.objects.select_for_update().get(pk=self._run.pk)
        run.judge = self._judge
        if run.is_trial and not self._has_saved:  # a trial that resumes counts its traces again
            run.n_judged = run.n_labeled = 0
        self._has_saved = True
        if run.state != JudgeRunState.OPEN:
            self._gate.stop()
        complete = [*complete, *self._save_votes(run, outcomes, now)]
        if run.is_trial:
            run.n_judged += len(complete)
            run.n_labeled += sum(_is_readable(trace) for trace in complete)
        else:
            self._save_traces(run, complete, now)
        self._grant(run, wanted if run.state == JudgeRunState.OPEN else ())
        run.save()
        self._end(run, now)
        return JobProgress(run.n_judged, run.n_traces)

    def _save_votes(self, run: JudgeRun, outcomes: Sequence[VoteOutcome], now: dt.datetime) -> list[OpenTrace]:
        """Store the votes, count them, and return the traces that now have all votes."""
        votes = [self._make_vote(run, outcome, now) for outcome in outcomes]
        new = [vote for vote in votes if vote.pk is None]
        self._store_votes(new)
        for vote in new:
            count_vote(run, vote)
        complete = []
        for vote, outcome in zip(votes, outcomes, strict=True):
            trace = outcome.request.trace
            trace.add_vote(vote, outcome.parsed)
            if trace.is_complete and not trace.is_taken:
                trace.is_taken = True
                complete.append(trace)
        if any(outcome.reply and outcome.parsed.state != ReplyState.UNCHECKED for outcome in outcomes):
            run.n_pauses = 0
        return complete

    def _store_votes(self, votes: Sequence[AnyVote]) -> None:
        JudgeVote.objects.bulk_create([vote for vote in votes if isinstance(vote, JudgeVote)])

    def _create_vote(self, run: JudgeRun, request: VoteRequest) -> AnyVote:
        return JudgeVote(judge=self._judge, run=run, trace_id=request.trace.text.trace_id, number=request.number)

    def _make_vote(self, run: JudgeRun, outcome: VoteOutcome, now: dt.datetime) -> AnyVote:
        vote = self._create_vote(run, outcome.request)
        vote.state, vote.first_error = VoteState(outcome.parsed.state), outcome.parsed.first_error
        vote.status, vote.answered_at = outcome.status, now
        if (reply := outcome.reply) is not None:
            vote.answer = pack_answer(reply.content)
            vote.finish_reason, vote.served_model = reply.finish_reason, reply.model
            vote.prompt_tokens, vote.completion_tokens = reply.prompt_tokens, reply.completion_tokens
            vote.is_usage_estimated = reply.is_usage_estimated
            vote.money = cost_caps.price_request(self._judge, reply.prompt_tokens, reply.completion_tokens).money
            vote.milliseconds, vote.n_attempts = reply.milliseconds, reply.n_attempts
        else:
            vote.n_attempts = self._endpoint.tries if outcome.status is None else 1
        return vote

    def _save_traces(self, run: JudgeRun, complete: Sequence[OpenTrace], now: dt.datetime) -> None:
        """Submit the verdicts of complete traces."""
        found = [(trace, self._find_verdict(trace)) for trace in complete]
        submitted = [self._make_submission(trace, verdict) for trace, verdict in found if verdict is not None]
        submissions = save_machine_submissions(rater=self._judge.rater, submitted=submitted, now=now)
        JudgedTrace.objects.bulk_create(
            JudgedTrace(
                judge=self._judge,
                run=run,
                trace_id=trace.text.trace_id,
                submission=submissions.get(trace.text.trace_id),
                guideline=self._judge.project.guideline,
                is_blind=not self._sees_reference_answer,
                n_votes=trace.n_answers,
                n_parsed=verdict.n_votes if verdict else 0,
                n_failed=sum(vote.state == ReplyState.FAILED for vote in trace.votes.values()),
                first_error=verdict.first_error if verdict else None,
                first_errors=list(map(list, verdict.first_errors.items())) if verdict else [],
                values=self._list_values(trace),
                prompt_tokens=trace.prompt_tokens,
                completion_tokens=trace.completion_tokens,
                money=trace.money,
                judged_at=now,
            )
            for trace, verdict in found
        )
        run.n_judged += len(complete)
        run.n_labeled += len(submitted)

    def _make_submission(self, trace: OpenTrace, verdict: TraceVerdict) -> MachineSubmission:
        ratings = [
            MachineRating(
                step.position,
                step.rating,
                step.value,
                step.n_votes or None,
                step.n_right if step.n_votes else None,
                step.reason,
                step.clause,
            )
            for step in verdict.steps
        ]
        return MachineSubmission(trace.text.trace_id, ratings, self._sees_reference_answer)

    def _grant(self, run: JudgeRun, wanted: Sequence[VoteRequest]) -> None:
        """Reserve the cost of the next requests, as far as the caps permit."""
        under_way = cost_caps.add_costs([request.cost for request in self._under_way.values()])
        allowances = cost_caps.lock_allowances(run, self._judge.project_id) if wanted else []
        n_granted, cap = cost_caps.count_granted(allowances, under_way, [request.cost for request in wanted])
        self._granted = list(wanted[:n_granted])
        self._missing.put_back(wanted[n_granted:])
        if cap is not None and not self._granted and not self._under_way:
            self._stop = self._stop or RunStop(cap, str(cap.label))
        reserved = cost_caps.add_costs([under_way, *(request.cost for request in self._granted)])
        run.reserved_tokens, run.reserved_money = reserved.tokens, reserved.money

    def _end(self, run: JudgeRun, now: dt.datetime) -> None:
        """End or pause the run once nothing is under way, nothing was granted, and no trace is left."""
        has_more = run.state == JudgeRunState.OPEN and self._stop is None and not self._missing.is_exhausted
        if self._under_way or self._granted or has_more:
            return
        self._is_ended = True
        if self._stop is not None:
            stop = self._stop
            runs.pause_run(run=run, pause=stop.pause, line=stop.line, now=now, retry_after=stop.retry_after)
        elif run.state == JudgeRunState.OPEN:
            runs.finish_run(run=run, now=now)
            if run.is_trial and run.n_labeled:
                judges.mark_tried(judge=self._judge, now=now)


def _is_readable(trace: OpenTrace) -> bool:
    return any(vote.state == ReplyState.PARSED for vote in trace.votes.values())


def count_vote(run: JudgeRun, vote: AnsweredVote) -> None:
    """Add a vote to the counts of its run."""
    run.n_votes += 1
    run.n_failed += vote.state in (VoteState.FAILED, VoteState.REFUSED)
    run.n_unread += vote.state not in (VoteState.PARSED, VoteState.FAILED, VoteState.REFUSED)
    run.n_repeated += vote.n_attempts - 1
    run.prompt_tokens += vote.prompt_tokens
    run.completion_tokens += vote.completion_tokens
    run.money += Decimal(vote.money)
