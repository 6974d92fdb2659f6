"""The judges of a project, Monte Carlo raters and PRMs that label among them, and what they may cost. Only this module
changes Judge and MachineBudget rows.

A judge never changes: another prompt, model or sampler is the next version, which is a rater of its own.
"""

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

import outbound
from accounts.models import User
from events import audit_log
from labeling import raters
from labeling.models import Project
from machines import answers, prompts, token_probabilities
from machines.answers import CheckerKind, InvalidPattern
from machines.chat_endpoint import ChatEndpoint
from machines.models import Judge, JudgeContractKind, JudgeRun, MachineBudget
from machines.prompts import BUILTIN_TEMPLATES, InvalidTemplate
from machines.rollouts import RolloutOptions, SearchKind
from outbound import sealed_secrets
from prm.models import PRM

_KEY_PURPOSE = "machines.judge_key"
MAX_VOTES = 64
MAX_CONCURRENT = 128
MAX_TIMEOUT = 1800.0
MAX_TOKENS = 200_000


class InvalidJudge(Exception):
    """The judge cannot be added. `field` names the setting to change; the message is for the person who adds it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class JudgeSettings:
    """What defines a judge. An empty prompt means the contract's built-in one. `rollouts` defines a Monte Carlo rater,
    whose votes are rollouts from each prefix."""

    name: str
    address: str
    model: str
    family: str = "vllm"
    model_digest: str = ""
    key: str = ""
    contract: str = JudgeContractKind.CRITIC
    prompt: str = ""
    n_votes: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 8192
    timeout: float = 120.0
    n_concurrent: int = 8
    prompt_price: Decimal = Decimal(0)
    completion_price: Decimal = Decimal(0)
    rollouts: RolloutOptions | None = None


_STORED = (
    *(
        "name",
        "address",
        "model",
        "family",
        "model_digest",
        "contract",
        "n_votes",
        "temperature",
        "top_p",
        "max_tokens",
    ),
    *("timeout", "n_concurrent", "prompt_price", "completion_price"),
)


def add_judge(
    *, project: Project, settings: JudgeSettings, by: User | None, now: dt.datetime, key_of: Judge | None = None
) -> Judge:
    """Add the next version of the judge with this name. Without a key, it takes the sealed key of `key_of`, if its
    address is the same."""
    text = _validate(settings)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)  # serializes version numbers
        same_name = Judge.objects.filter(project=project, name=settings.name)
        version = (same_name.aggregate(last=Max("version"))["last"] or 0) + 1
        digest = prompts.digest_template(settings.contract, text)
        kind = "Monte Carlo" if settings.contract == JudgeContractKind.ROLLOUTS else "judge"
        rater_name = f"{kind}: {settings.name} {version} ({settings.model[:80]}, prompt {digest[:8]})"
        judge = Judge.objects.create(
            project=project,
            rater=raters.ensure_machine(project=project, name=rater_name, now=now),
            version=version,
            **{name: getattr(settings, name) for name in _STORED},
            key=_seal_key(settings, key_of),
            prompt=text,
            prompt_version=_number_prompt(project, settings.contract, digest),
            prompt_digest=digest,
            rollouts=asdict(settings.rollouts) if settings.rollouts else {},
            added_at=now,
            added_by=by,
        )
        detail = {"model": judge.model, "address": judge.address, "prompt_digest": digest, "votes": judge.n_votes}
        _log_event("judge.added", judge, by, now, **detail)
    return judge


def add_prm_rater(
    *, prm: PRM, name: str = "", threshold: float | None = None, by: User | None, now: dt.datetime
) -> Judge:
    """Let a PRM label: a step is wrong if its P(wrong) reaches the threshold, by default the PRM's own."""
    threshold = prm.threshold if threshold is None else threshold
    if not 0 < threshold <= 1:
        raise InvalidJudge("threshold", _("Enter a number above 0 and up to 1."))
    name = name.strip() or f"prm-{prm.version}"
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=prm.project_id)
        same_name = Judge.objects.filter(project=prm.project_id, name=name)
        version = (same_name.aggregate(last=Max("version"))["last"] or 0) + 1
        rater_name = f"PRM: {name} {version} ({prm.label[:120]}, threshold {threshold:g})"
        judge = Judge.objects.create(
            project=prm.project,
            rater=raters.ensure_machine(project=prm.project, name=rater_name, now=now),
            name=name,
            version=version,
            family=prm.backend,
            model=prm.model,
            model_digest=prm.digest,
            contract=JudgeContractKind.PRM,
            prompt_version=1,
            prm=prm,
            threshold=threshold,
            added_at=now,
            added_by=by,
        )
        _log_event("judge.added", judge, by, now, model=judge.model, prm=prm.version, threshold=threshold)
    return judge


def _seal_key(settings: JudgeSettings, key_of: Judge | None) -> bytes | None:
    if settings.key:
        return sealed_secrets.seal_secret(settings.key, purpose=_KEY_PURPOSE)
    # To another address, the key would be sent to a server that it was not meant for.
    return bytes(key_of.key) if key_of and key_of.key and key_of.address == settings.address else None


def _number_prompt(project: Project, contract: str, digest: str) -> int:
    """Return the version of this prompt: 1 is the built-in one, and each edited one gets the next number."""
    if digest == BUILTIN_TEMPLATES[contract].digest:
        return BUILTIN_TEMPLATES[contract].version
    known = Judge.objects.filter(project=project, contract=contract)
    same = known.filter(prompt_digest=digest).values_list("prompt_version", flat=True).first()
    return same or max(known.aggregate(last=Max("prompt_version"))["last"] or 1, 1) + 1


def _validate(settings: JudgeSettings) -> str:
    """Return the text of the prompt, or raise InvalidJudge."""
    for field in ("name", "model"):
        if not getattr(settings, field).strip():
            raise InvalidJudge(field, _("Enter a value."))
    try:
        outbound.check_address(settings.address)
    except outbound.AddressRefused as error:
        raise InvalidJudge("address", str(error)) from None
    if not (settings.key.isascii() and (settings.key.isprintable() or not settings.key)):
        raise InvalidJudge("key", _("The key contains characters that are not allowed in HTTP headers."))
    _validate_contract(settings)
    _validate_sampler(settings)
    # Browsers send line ends as CRLF.
    text = settings.prompt.replace("\r\n", "\n").strip() or BUILTIN_TEMPLATES[settings.contract].text
    try:
        return prompts.validate_template(text, settings.contract)
    except InvalidTemplate as error:
        raise InvalidJudge("prompt", str(error)) from None


def _validate_contract(settings: JudgeSettings) -> None:
    if settings.contract not in BUILTIN_TEMPLATES:
        raise InvalidJudge("contract", _("Unknown contract. Use one of: %s.") % ", ".join(BUILTIN_TEMPLATES))
    if (settings.contract == JudgeContractKind.ROLLOUTS) != (settings.rollouts is not None):
        raise InvalidJudge("contract", _("The contract “rollouts” needs an answer checker; other contracts have none."))
    if settings.rollouts is not None:
        _validate_rollouts(settings.rollouts)
        _validate_checker(settings.rollouts)


def _validate_sampler(settings: JudgeSettings) -> None:
    ranges: dict[str, tuple[Any, Any]] = {
        "n_votes": (1, MAX_VOTES),
        "temperature": (0.0, 2.0),
        "top_p": (0.01, 1.0),
        "max_tokens": (1, MAX_TOKENS),
        "timeout": (1.0, MAX_TIMEOUT),
        "n_concurrent": (1, MAX_CONCURRENT),
        "prompt_price": (Decimal(0), Decimal(100_000)),
        "completion_price": (Decimal(0), Decimal(100_000)),
    }
    for field, (low, high) in ranges.items():
        if not low <= getattr(settings, field) <= high:
            raise InvalidJudge(field, _("Enter a number from %(low)s to %(high)s.") % {"low": low, "high": high})
    if settings.n_votes > 1 and settings.temperature == 0:
        message = _("At temperature 0, all votes are identical. Set a temperature above 0, or use one vote.")
        raise InvalidJudge("temperature", message)


def _validate_rollouts(options: RolloutOptions) -> None:
    if options.search not in list(SearchKind):
        raise InvalidJudge("search", _("Unknown search. Use one of: %s.") % ", ".join(SearchKind))
    if not (math.isfinite(options.threshold) and 0 <= options.threshold < 1):
        raise InvalidJudge("threshold", _("Enter a number from 0 up to, but not including, 1."))
    if options.measures_progress and (options.stops_early or options.search != SearchKind.EVERY_STEP):
        raise InvalidJudge("measures_progress", _("Progress needs all rollouts of every step."))


def _validate_checker(options: RolloutOptions) -> None:
    if options.checker not in list(CheckerKind):
        raise InvalidJudge("checker", _("Unknown checker. Use one of: %s.") % ", ".join(CheckerKind))
    if options.checker == CheckerKind.REGEX:
        try:
            answers.validate_pattern(options.pattern)
        except InvalidPattern as error:
            raise InvalidJudge("pattern", str(error)) from None
    if options.checker == CheckerKind.HTTP:
        try:
            outbound.check_address(options.checker_address)
        except outbound.AddressRefused as error:
            raise InvalidJudge("checker_address", str(error)) from None


def copy_settings(judge: Judge) -> JudgeSettings:
    """Return the settings of a judge for an edited copy. Its key stays sealed."""
    options = judge.rollout_options if judge.contract == JudgeContractKind.ROLLOUTS else None
    return JudgeSettings(**{name: getattr(judge, name) for name in _STORED}, prompt=judge.prompt, rollouts=options)


def mark_tried(*, judge: Judge, now: dt.datetime) -> None:
    Judge.objects.filter(pk=judge.pk, tried_at=None).update(tried_at=now)


def load_endpoint(judge: Judge) -> ChatEndpoint:
    """Return the endpoint of a judge with its key, or raise SecretUnreadable."""
    return ChatEndpoint(
        address=judge.address,
        model=judge.model,
        family=judge.family,
        key=sealed_secrets.unseal_secret(bytes(judge.key), purpose=_KEY_PURPOSE) if judge.key else "",
        temperature=judge.temperature,
        top_p=judge.top_p,
        max_tokens=judge.max_tokens,
        timeout=judge.timeout,
        continues_text=judge.contract == JudgeContractKind.ROLLOUTS,
        stop=judge.rollouts.get("stop", ""),
        n_candidates=token_probabilities.N_CANDIDATES if judge.contract == JudgeContractKind.YES_NO else 0,
    )


def set_budget(
    *, project: Project, most_tokens: int | None, most_money: Decimal | None, by: User | None, now: dt.datetime
) -> MachineBudget:
    """Limit what the machines of a project may cost in total; None is no limit."""
    values = {"most_tokens": most_tokens, "most_money": most_money, "changed_at": now}
    with transaction.atomic():
        budget, _is_new = MachineBudget.objects.update_or_create(project=project, defaults=values)
        audit_log.log_event(
            what="machine_budget.set",
            by=by,
            now=now,
            project=project.pk,
            subject=f"project:{project.pk}",
            detail={"tokens": most_tokens, "money": None if most_money is None else str(most_money)},
        )
    return budget


def _log_event(what: str, judge: Judge, by: User | None, now: dt.datetime, **detail: Any) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=judge.project_id, subject=f"judge:{judge.pk}", detail=detail)


def find_judge(project: Project, name: str, version: int | None = None) -> Judge | None:
    """Return a judge by its name: the latest version, or the given one."""
    found = Judge.objects.filter(project=project, name=name).select_related("project", "rater")
    found = found if version is None else found.filter(version=version)
    return found.order_by("-version").first()


def replace_labels(project: Project, names: Sequence[str]) -> list[str]:
    """Return these names of machines with labels such as "critic 1" replaced by the names of the raters."""
    judges = Judge.objects.filter(project=project).select_related("rater").only("name", "version", "rater__machine")
    by_label = {judge.label: judge.rater.machine for judge in judges}
    return [by_label.get(name, name) for name in names]


def list_runs(project: Project) -> list[JudgeRun]:
    runs = JudgeRun.objects.filter(judge__project=project).select_related("judge", "asked_by")
    return list(runs.order_by("-pk")[:100])
