"""The policies of a project: what generates the steps, and within which limits. Only this module changes LivePolicy.

A policy never changes: other settings are the next version. A session keeps the policy with which it began.
"""

import datetime as dt
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

import outbound
from accounts.models import User
from events import audit_log
from labeling.models import Project
from labeling.models.project import Protocol
from live import completions, example_program, prompts
from live.completions import StepSampler
from live.models import LiveMode, LivePolicy
from live.prompts import InvalidLiveTemplate
from machines.chat_endpoint import ChatEndpoint
from machines.models import EndpointKind
from outbound import sealed_secrets

_KEY_PURPOSE = "live.policy_key"
MAX_OPTIONS = 16
MAX_PREFETCHED = 4
MAX_TOKENS = 4096
MAX_TIMEOUT = 120.0
MAX_STEPS = 200


class InvalidPolicy(Exception):
    """The policy cannot be added. `field` names the setting to change; the message is for the person who adds it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class PolicyNotReady(Exception):
    """The policy cannot be opened. The message says what is missing."""


@dataclass(frozen=True)
class PolicySettings:
    """What defines a policy. An empty template means the built-in one of the mode. The example program needs no
    address and no model."""

    address: str = ""
    model: str = ""
    family: str = EndpointKind.VLLM
    mode: str = LiveMode.COMPLETIONS
    model_digest: str = ""
    tokenizer_digest: str = ""
    key: str = ""
    template: str = ""
    n_options: int = 5
    n_prefetched: int = 3
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    min_p: float | None = None
    max_tokens: int = 256
    step_end: str = "\n\n"
    timeout: float = 30.0
    sessions_per_problem: int = 1
    most_steps: int = 40
    most_session_tokens: int | None = None
    most_tokens: int | None = None
    most_money: Decimal | None = None
    prompt_price: Decimal = Decimal(0)
    completion_price: Decimal = Decimal(0)


_NOT_STORED = ("key", "template")
_STORED = tuple(name for name in PolicySettings.__dataclass_fields__ if name not in _NOT_STORED)
_SAMPLED = ("temperature", "top_p", "top_k", "min_p", "max_tokens", "n_options", "step_end")


def add_policy(
    *,
    project: Project,
    settings: PolicySettings,
    by: User | None,
    now: dt.datetime,
    key_of: LivePolicy | None = None,
) -> LivePolicy:
    """Add the next version. Without a key, it takes the sealed key of `key_of`, if its address is the same."""
    if settings.mode == LiveMode.EXAMPLE:
        settings = replace(
            settings, address="", key="", template="", family=EndpointKind.VLLM, model=example_program.NAME
        )
    template = _validate(project, settings)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)  # serializes version numbers
        last = LivePolicy.objects.filter(project=project).aggregate(last=Max("version"))["last"] or 0
        policy = LivePolicy.objects.create(
            project=project,
            version=last + 1,
            **{name: getattr(settings, name) for name in _STORED},
            key=_seal_key(settings, key_of),
            template=template,
            template_digest=prompts.digest_text(template),
            added_at=now,
            added_by=by,
        )
        _log_event("live.added", policy, by, now, model=policy.model, address=policy.address, mode=policy.mode)
    return policy


def open_policy(*, policy: LivePolicy, by: User | None, now: dt.datetime) -> None:
    """Let raters begin sessions with this policy instead of the one that is open. Sessions keep theirs."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=policy.project_id)
        row = LivePolicy.objects.get(pk=policy.pk)
        if row.is_open:
            return
        if row.tried_at is None:
            raise PolicyNotReady(_("Try the policy on a problem first."))
        open_rows = LivePolicy.objects.filter(project=policy.project_id, opened_at__isnull=False, closed_at=None)
        open_rows.update(closed_at=now)
        LivePolicy.objects.filter(pk=policy.pk).update(opened_at=now, closed_at=None)
        _log_event("live.opened", row, by, now, version=row.version)


def close_policy(*, policy: LivePolicy, by: User | None, now: dt.datetime) -> None:
    """Let no new session begin. Open sessions can be finished."""
    with transaction.atomic():
        rows = LivePolicy.objects.filter(pk=policy.pk, opened_at__isnull=False, closed_at=None)
        if rows.update(closed_at=now):
            _log_event("live.closed", policy, by, now, version=policy.version)


def mark_tried(*, policy: LivePolicy, now: dt.datetime) -> None:
    LivePolicy.objects.filter(pk=policy.pk, tried_at=None).update(tried_at=now)


def find_open_policy(project: Project) -> LivePolicy | None:
    return LivePolicy.objects.filter(project=project, opened_at__isnull=False, closed_at=None).first()


def copy_settings(policy: LivePolicy) -> PolicySettings:
    """Return the settings of a policy for an edited copy. Its key stays sealed."""
    return PolicySettings(**{name: getattr(policy, name) for name in _STORED}, template=policy.template)


def make_sampler(policy: LivePolicy) -> StepSampler:
    values = {name: getattr(policy, name) for name in _SAMPLED}
    return StepSampler(model=policy.model, family=policy.family, is_instructed=policy.is_instructed, **values)


def describe_sampler(policy: LivePolicy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in _SAMPLED}


def load_endpoint(policy: LivePolicy) -> ChatEndpoint:
    """Return the endpoint with its key, or raise SecretUnreadable."""
    return ChatEndpoint(
        address=policy.address,
        model=policy.model,
        family=policy.family,
        key=sealed_secrets.unseal_secret(bytes(policy.key), purpose=_KEY_PURPOSE) if policy.key else "",
        timeout=policy.timeout,
        tries=2,  # the page asks again, and the rater sees that the server is away
        first_delay=0.2,
    )


def _seal_key(settings: PolicySettings, key_of: LivePolicy | None) -> bytes | None:
    if settings.key:
        return sealed_secrets.seal_secret(settings.key, purpose=_KEY_PURPOSE)
    # To another address, the key would be sent to a server that it was not meant for.
    return bytes(key_of.key) if key_of and key_of.key and key_of.address == settings.address else None


def _validate(project: Project, settings: PolicySettings) -> str:
    """Return the text of the template, or raise InvalidPolicy."""
    if project.protocol != Protocol.LIVE:
        raise InvalidPolicy("address", _("Choose the labeling protocol “live” in the settings of the project first."))
    if not settings.model.strip():
        raise InvalidPolicy("model", _("Enter a value."))
    if settings.mode != LiveMode.EXAMPLE:
        _check_address(settings.address)
    if not (settings.key.isascii() and (settings.key.isprintable() or not settings.key)):
        raise InvalidPolicy("key", _("The key contains characters that are not allowed in HTTP headers."))
    if settings.family not in EndpointKind.values or settings.mode not in LiveMode.values:
        raise InvalidPolicy("mode", _("Choose a server and a mode."))
    if not settings.step_end or "\0" in settings.step_end:
        raise InvalidPolicy("step_end", _("Enter the text that separates two steps."))
    _validate_numbers(settings)
    template = settings.template.replace("\r\n", "\n") or prompts.BUILTIN[settings.mode]
    try:
        return prompts.validate_template(template, settings.mode)
    except InvalidLiveTemplate as error:
        raise InvalidPolicy("template", str(error)) from None


def _check_address(address: str) -> None:
    try:
        outbound.check_address(address)
    except outbound.AddressRefused as error:
        raise InvalidPolicy("address", str(error)) from None


def _validate_numbers(settings: PolicySettings) -> None:
    most = Decimal(100_000)
    ranges: dict[str, tuple[Any, Any]] = {
        "n_options": (1, MAX_OPTIONS),
        "n_prefetched": (0, MAX_PREFETCHED),
        "temperature": (0.0, 2.0),
        "top_p": (0.01, 1.0),
        "top_k": (1, 10_000),
        "min_p": (0.0, 1.0),
        "max_tokens": (1, MAX_TOKENS),
        "timeout": (1.0, MAX_TIMEOUT),
        "sessions_per_problem": (1, 100),
        "most_steps": (1, MAX_STEPS),
        "most_session_tokens": (1, 10**9),
        "most_tokens": (1, 10**15),
        "most_money": (Decimal(0), Decimal(10**7)),
        "prompt_price": (Decimal(0), most),
        "completion_price": (Decimal(0), most),
    }
    for field, (low, high) in ranges.items():
        value = getattr(settings, field)
        if value is not None and not low <= value <= high:
            raise InvalidPolicy(field, _("Enter a number from %(low)s to %(high)s.") % {"low": low, "high": high})
    if settings.n_options > 1 and settings.temperature == 0:
        raise InvalidPolicy("temperature", _("At temperature 0, all options are identical. Set a temperature above 0."))


def is_replayable(policy: LivePolicy) -> bool:
    """Return whether the server takes a seed, so that it can repeat an answer."""
    return completions.is_seeded(policy.family)


def _log_event(what: str, policy: LivePolicy, by: User | None, now: dt.datetime, **detail: Any) -> None:
    subject = f"live_policy:{policy.pk}"
    audit_log.log_event(what=what, by=by, now=now, project=policy.project_id, subject=subject, detail=detail)
