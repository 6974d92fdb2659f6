"""The requests of a run: which votes of which traces are still missing, and when a trace has all its votes."""

import hashlib
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from machines import cost_caps, prompts, runs
from machines.cost_caps import RequestCost
from machines.models import CanaryVote, Judge, JudgeRun, JudgeVote, VoteState
from machines.prompts import JudgedTraceText
from machines.replies import ParsedReply, ReplyState, parse_reply
from machines.stored_answers import read_stored_answer
from machines.trace_texts import load_judged_texts

_TRACES_PER_PAGE = 100
_MOST_COMPLETE = 500  # traces that one chunk saves


@dataclass
class OpenTrace:
    """A trace of the run with the votes that it has so far, by their numbers."""

    text: JudgedTraceText
    prompt: str
    n_wanted: int
    votes: dict[tuple[int, int], ParsedReply] = field(default_factory=dict)  # by prefix and number
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: Decimal = Decimal(0)
    is_taken: bool = False  # complete, and about to be saved

    @property
    def is_complete(self) -> bool:
        return len(self.votes) >= self.n_wanted

    @property
    def n_answers(self) -> int:
        return len(self.votes)

    def add_vote(self, vote: JudgeVote | CanaryVote, parsed: ParsedReply) -> None:
        self.votes[vote.prefix, vote.number] = parsed
        self.prompt_tokens += vote.prompt_tokens
        self.completion_tokens += vote.completion_tokens
        self.money += vote.money

    def list_votes(self) -> list[ParsedReply]:
        """Return the votes in the order of their numbers, so that the order of arrival changes nothing."""
        return [vote for _, vote in sorted(self.votes.items())]


@dataclass(eq=False)
class VoteRequest:
    """One missing vote. `round` grows each time that the endpoint answered none of its attempts. `stored` has been
    answered, and only its check is missing."""

    trace: OpenTrace
    number: int
    key: str
    seed: int
    cost: RequestCost
    prompt: str
    prefix: int = 0
    stored: JudgeVote | None = None
    round: int = 1
    n_answered_before: int = 0  # votes of the run, when it first failed


class MissingVotes:
    """The missing votes of a run in the order of its traces, loaded page by page."""

    def __init__(self, run: JudgeRun) -> None:
        self._run = run
        self._judge: Judge = run.judge
        self._guideline = self._judge.project.guideline.body if self._judge.project.guideline else ""
        self._waiting: deque[VoteRequest] = deque()
        self._complete: list[OpenTrace] = []
        self.is_exhausted = False  # no further page
        self._pages = self._load_pages()

    def take(self, n: int) -> list[VoteRequest]:
        """Return up to `n` requests."""
        while len(self._waiting) < n and len(self._complete) < _MOST_COMPLETE and not self.is_exhausted:
            page = next(self._pages, None)
            self.is_exhausted = page is None
            self._waiting.extend(page or ())
        return [self._waiting.popleft() for _ in range(min(n, len(self._waiting)))]

    def put_back(self, requests: Sequence[VoteRequest]) -> None:
        self._waiting.extendleft(reversed(requests))

    def put_last(self, request: VoteRequest) -> None:
        self._waiting.append(request)

    def take_complete(self) -> list[OpenTrace]:
        """Return the traces whose votes were all stored before."""
        found, self._complete = self._complete, []
        return found

    def close(self) -> None:
        self._pages.close()

    def _load_pages(self) -> Generator[list[VoteRequest]]:
        left = None if self._run.most_traces is None else max(self._run.most_traces - self._run.n_judged, 0)
        traces, after = runs.select_traces(self._run), 0
        while left is None or left > 0:
            size = _TRACES_PER_PAGE if left is None else min(left, _TRACES_PER_PAGE)
            ids = list(traces.filter(pk__gt=after).values_list("pk", flat=True)[:size])
            if not ids:
                return
            after, left = ids[-1], None if left is None else left - len(ids)
            yield [request for trace in self._open_traces(ids) for request in self._list_missing(trace)]

    def _open_traces(self, ids: list[int]) -> list[OpenTrace]:
        opened = {text.trace_id: self._open_trace(text) for text in load_judged_texts(ids)}
        stored = JudgeVote.objects.filter(judge=self._judge, trace__in=ids).order_by("prefix", "number")
        for vote in stored:
            self._add_stored_vote(opened[vote.trace_id], vote)
        for trace in opened.values():
            if trace.is_complete:
                trace.is_taken = True
                self._complete.append(trace)
        return list(opened.values())

    def _open_trace(self, text: JudgedTraceText) -> OpenTrace:
        judge = self._judge
        prompt = prompts.render_prompt(judge.contract, judge.prompt, text, guideline=self._guideline)
        return OpenTrace(text, prompt, judge.n_votes)

    def _add_stored_vote(self, trace: OpenTrace, vote: JudgeVote) -> None:
        add_stored_vote(trace, vote, self._judge.contract)

    def _name_request(self, trace: OpenTrace, number: int) -> str:
        """Return a text that only this vote has, for its idempotency key and seed."""
        return f"{self._judge.rater.pseudonym} {trace.text.trace_id} {number}"

    def _list_missing(self, trace: OpenTrace) -> Iterator[VoteRequest]:
        cost = cost_caps.bound_cost(self._judge, trace.prompt)
        for number in range(self._judge.n_votes):
            if (0, number) not in trace.votes:
                name = self._name_request(trace, number)
                digest = hashlib.sha256(name.encode()).hexdigest()
                yield VoteRequest(trace, number, digest, int(digest[:7], 16), cost, trace.prompt)


def add_stored_vote(trace: OpenTrace, vote: JudgeVote | CanaryVote, contract: str) -> None:
    """Read a stored answer again: only its state and first error are columns."""
    if vote.state in (VoteState.REFUSED, VoteState.FAILED):
        parsed = ParsedReply(ReplyState(vote.state))
    else:
        answer = read_stored_answer(vote)
        parsed = parse_reply(
            contract, answer.text, trace.text.rateable, is_complete=answer.is_complete, body=answer.body
        )
    trace.add_vote(vote, parsed)
