"""The cost of runs, and the number of further requests that the caps permit.

A request is granted only if the most that it can cost still fits under the caps of its run and of its project. The
maximum is known in advance: a token has at least one byte, and the endpoint is asked for at most `max_tokens`. So a cap
is never exceeded, whatever the answers are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import F, Sum

from machines.models import Judge, JudgeRun, JudgeRunState, MachineBudget, RunPause

_MILLION = Decimal(1_000_000)
_CHAT_TOKENS = 64  # that a chat template adds


@dataclass(frozen=True)
class RequestCost:
    tokens: int
    money: Decimal


NOTHING = RequestCost(0, Decimal(0))


def price_request(judge: Judge, prompt_tokens: int, completion_tokens: int) -> RequestCost:
    money = (prompt_tokens * judge.prompt_price + completion_tokens * judge.completion_price) / _MILLION
    return RequestCost(prompt_tokens + completion_tokens, money)


def bound_cost(judge: Judge, prompt: str) -> RequestCost:
    """Return the most that one request with this prompt can cost."""
    return price_request(judge, len(prompt.encode()) + _CHAT_TOKENS, judge.max_tokens)


def add_costs(costs: Sequence[RequestCost]) -> RequestCost:
    return RequestCost(sum(cost.tokens for cost in costs), sum((cost.money for cost in costs), Decimal(0)))


@dataclass(frozen=True)
class Allowance:
    """The remaining tokens and money under one cap; None is no limit."""

    cap: RunPause
    tokens: int | None
    money: Decimal | None

    def admits(self, cost: RequestCost) -> bool:
        return (self.tokens is None or cost.tokens <= self.tokens) and (self.money is None or cost.money <= self.money)


def count_granted(
    allowances: Sequence[Allowance], reserved: RequestCost, wanted: Sequence[RequestCost]
) -> tuple[int, RunPause | None]:
    """Return how many of the wanted requests fit beside the reserved ones, and the cap that stops the next one."""
    total = reserved
    for number, cost in enumerate(wanted):
        total = add_costs([total, cost])
        exceeded = next((each.cap for each in allowances if not each.admits(total)), None)
        if exceeded is not None:
            return number, exceeded
    return len(wanted), None


def lock_allowances(run: JudgeRun, project_id: int) -> list[Allowance]:
    """Return what is left for this run, besides its own reservation. Requests of other runs of the project wait until
    this transaction ends, if the project has a budget."""
    allowances = [_allow(RunPause.RUN_CAP, run.most_tokens, run.most_money, run.tokens, run.money)]
    budget = MachineBudget.objects.filter(project=project_id).select_for_update().first()
    if budget is not None:
        tokens, money = _count_spent(project_id, without=run)
        spent = (tokens + run.tokens, money + run.money)
        allowances.append(_allow(RunPause.PROJECT_CAP, budget.most_tokens, budget.most_money, *spent))
    return allowances


def _allow(
    cap: RunPause, most_tokens: int | None, most_money: Decimal | None, tokens: int, money: Decimal
) -> Allowance:
    return Allowance(
        cap, None if most_tokens is None else most_tokens - tokens, None if most_money is None else most_money - money
    )


def _count_spent(project_id: int, *, without: JudgeRun) -> tuple[int, Decimal]:
    """Return what the other runs of the project have spent, and have reserved while they are running."""
    others = JudgeRun.objects.filter(judge__project=project_id).exclude(pk=without.pk)
    spent = others.aggregate(tokens=Sum(F("prompt_tokens") + F("completion_tokens")), money=Sum("money"))
    running = others.filter(state=JudgeRunState.OPEN)
    reserved = running.aggregate(tokens=Sum("reserved_tokens"), money=Sum("reserved_money"))
    tokens = (spent["tokens"] or 0) + (reserved["tokens"] or 0)
    return tokens, (spent["money"] or Decimal(0)) + (reserved["money"] or Decimal(0))


def sum_project(project_id: int) -> RequestCost:
    """Return what all runs of a project have cost."""
    runs = JudgeRun.objects.filter(judge__project=project_id)
    spent = runs.aggregate(tokens=Sum(F("prompt_tokens") + F("completion_tokens")), money=Sum("money"))
    return RequestCost(spent["tokens"] or 0, spent["money"] or Decimal(0))
