"""Describe the machines behind submissions, for exports: who spoke, with what, and at what cost."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Count, F, QuerySet, Sum

from formats.rows import MachineIdentity
from machines.models import Judge, JudgedTrace, MachineKind
from machines.rollouts import PrefixValue, measure_progress

_FIELDS = ("name", "version", "family", "model", "model_digest", "contract", "prompt_version", "prompt_digest")
_SAMPLER = ("n_votes", "temperature", "top_p", "max_tokens")
_WITHOUT = ("judge__key", "judge__prompt")


def load_identities(submission_ids: Iterable[int]) -> dict[int, MachineIdentity]:
    """Return the machine of each of these submissions that was made here by a machine."""
    judged = JudgedTrace.objects.filter(submission__in=list(submission_ids)).select_related("judge").defer(*_WITHOUT)
    return {each.submission_id: _identify(each) for each in judged if each.submission_id is not None}


def _identify(judged: JudgedTrace) -> MachineIdentity:
    judge = judged.judge
    return MachineIdentity(
        kind=judge.kind.value,
        name=judge.name,
        version=judge.version,
        model=judge.model,
        prompt_digest=judge.prompt_digest,
        endpoint_family=judge.family,
        votes=judged.n_parsed,
        cost=float(judged.money),
        progress={step.position: step.advantage for step in measure_progress(load_values(judged))},
    )


def load_values(judged: JudgedTrace) -> list[PrefixValue]:
    return [PrefixValue(*value) for value in judged.values]


def describe_machines(submissions: QuerySet[Any] | Iterable[int]) -> list[dict[str, Any]]:
    """Describe each machine with labels among these submissions, with what these labels cost."""
    judged = JudgedTrace.objects.filter(submission__in=submissions)
    totals = (
        judged.order_by("judge")
        .values("judge")
        .annotate(n_traces=Count("pk"), tokens=Sum(F("prompt_tokens") + F("completion_tokens")), cost=Sum("money"))
    )
    by_judge = {row["judge"]: row for row in totals}
    judges = Judge.objects.filter(pk__in=by_judge).select_related("rater", "project").order_by("name", "version")
    return [
        {
            "rater": judge.rater.machine,
            "kind": judge.kind.value,
            **{name: getattr(judge, name) for name in (*_FIELDS, *_SAMPLER)},
            **_describe_settings(judge),
            "n_traces": by_judge[judge.pk]["n_traces"],
            "tokens": by_judge[judge.pk]["tokens"],
            "cost": f"{by_judge[judge.pk]['cost']:.4f} {judge.project.currency}",
        }
        for judge in judges.defer("key", "prompt")
    ]


def _describe_settings(judge: Judge) -> dict[str, Any]:
    """Return the settings that only this kind of machine has."""
    if judge.kind == MachineKind.MONTE_CARLO:
        return {"rollouts": judge.rollouts}
    return {"threshold": judge.threshold} if judge.kind == MachineKind.PRM else {}


def format_machine(machine: dict[str, Any]) -> str:
    """Describe a machine in one line of a card."""
    cost = "{n_traces:,} traces, {tokens:,} tokens, {cost}".format(**machine)
    kind = machine.get("kind", MachineKind.JUDGE)
    if kind == MachineKind.PRM:
        return "{name} {version}: {model} by {family}, threshold {threshold:g}; ".format(**machine) + cost
    shown = "{name} {version}: {model} by {family}, prompt version {prompt_version} ({prompt_digest:.12}), ".format(
        **machine
    )
    if kind == MachineKind.MONTE_CARLO:
        options = "checker {checker}, search {search}, threshold {threshold:g}".format(**machine["rollouts"])
        shown += "{n_votes} rollouts after each step at temperature {temperature:g}, ".format(**machine) + options
        shown += ", the prover of its progress" if machine["rollouts"]["measures_progress"] else ""
    else:
        shown += "{n_votes} votes at temperature {temperature:g}".format(**machine)
    return f"{shown}; {cost}"
