"""The job of a run over the gaming canaries: as on traces, with the same caps, pauses and resumed runs, but without
labels. Answers are stored apart from those about traces."""

import datetime as dt
from collections.abc import Generator, Iterator, Sequence
from functools import partial

from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from machines import canary_reports, runs
from machines.canary_votes import select_missing
from machines.judge_job import AnyVote, JudgeLoop
from machines.models import CanaryVerdict, CanaryVote, JudgeRun, JudgeRunState
from machines.prompts import JudgedStep, JudgedTraceText
from machines.replies import ReplyState
from machines.vote_requests import MissingVotes, OpenTrace, VoteRequest, add_stored_vote
from prm import canaries
from prm.models import GamingCanary

_CANARIES_PER_PAGE = 100


class MissingCanaryVotes(MissingVotes):
    """The missing votes on canaries. A canary takes the place of a trace, by its id."""

    def _load_pages(self) -> Generator[list[VoteRequest]]:
        after = 0
        while ids := list(
            select_missing(self._judge).filter(pk__gt=after).values_list("pk", flat=True)[:_CANARIES_PER_PAGE]
        ):
            after = ids[-1]
            yield [request for trace in self._open_traces(ids) for request in self._list_missing(trace)]

    def _open_traces(self, ids: list[int]) -> list[OpenTrace]:
        opened = {row.pk: self._open_trace(_make_text(row)) for row in GamingCanary.objects.filter(pk__in=ids)}
        for vote in CanaryVote.objects.filter(judge=self._judge, canary__in=ids).order_by("number"):
            add_stored_vote(opened[vote.canary_id], vote, self._judge.contract)
        for trace in opened.values():
            if trace.is_complete:
                trace.is_taken = True
                self._complete.append(trace)
        return [opened[pk] for pk in ids]

    def _name_request(self, trace: OpenTrace, number: int) -> str:
        return f"{self._judge.rater.pseudonym} canary {trace.text.trace_id} {number}"


def _make_text(row: GamingCanary) -> JudgedTraceText:
    steps = [JudgedStep(position, *step) for position, step in enumerate(row.steps)]
    return JudgedTraceText(row.pk, row.problem, steps)


class CanaryLoop(JudgeLoop):
    """One pass over the missing votes on canaries."""

    def _load_missing(self, run: JudgeRun) -> MissingVotes:
        return MissingCanaryVotes(run)

    def _create_vote(self, run: JudgeRun, request: VoteRequest) -> AnyVote:
        return CanaryVote(judge=self._judge, run=run, canary_id=request.trace.text.trace_id, number=request.number)

    def _store_votes(self, votes: Sequence[AnyVote]) -> None:
        CanaryVote.objects.bulk_create([vote for vote in votes if isinstance(vote, CanaryVote)])

    def _save_traces(self, run: JudgeRun, complete: Sequence[OpenTrace], now: dt.datetime) -> None:
        found = [(trace, self._find_verdict(trace)) for trace in complete]
        CanaryVerdict.objects.bulk_create(
            CanaryVerdict(
                judge=self._judge,
                run=run,
                canary_id=trace.text.trace_id,
                n_votes=trace.n_answers,
                n_parsed=verdict.n_votes if verdict else 0,
                n_failed=sum(vote.state == ReplyState.FAILED for vote in trace.votes.values()),
                first_errors=list(map(list, verdict.first_errors.items())) if verdict else [],
                judged_at=now,
            )
            for trace, verdict in found
        )
        run.n_judged += len(complete)
        run.n_labeled += sum(verdict is not None for _, verdict in found)

    def _end(self, run: JudgeRun, now: dt.datetime) -> None:
        super()._end(run, now)
        if self._is_ended and JudgeRun.objects.filter(pk=run.pk, state=JudgeRunState.DONE).exists():
            canary_reports.log_alarm(judge=self._judge, now=now)


def run_prm_canaries(job: Job) -> Iterator[JobProgress | Chunk]:
    """Let a PRM that labels score the canaries."""
    run = JudgeRun.objects.select_related("judge__prm__project").get(pk=job.arguments["run"])
    prm = run.judge.prm
    assert prm is not None
    yield from canaries.score_missing(prm)
    yield partial(_finish, run)


def _finish(run: JudgeRun, now: dt.datetime) -> JobProgress:
    JudgeRun.objects.filter(pk=run.pk).update(n_judged=run.n_traces)
    run.n_judged = run.n_traces
    runs.finish_run(run=run, now=now)
    canary_reports.log_alarm(judge=run.judge, now=now)
    return JobProgress(run.n_traces, run.n_traces)
