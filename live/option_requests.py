"""Requests for options: make them, ask the server, and store its answers. Only this module changes OptionRequest rows
and creates LiveOption rows.

A request is made in the transaction that needs it, and asked by a thread of the process (`live.answer_pool`). The
process that asks holds a lease. If the process ends before the answer, the lease ends, and whoever waits for the
options has them asked again, with the same prompt and the same seed.
"""

import datetime as dt
import zlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q, Sum
from django.utils.translation import gettext as _

import outbound
from live import completions, example_program, policies, prompts, server_versions
from live.completions import PolicyAnswer
from live.models import LiveOption, LivePolicy, LiveSession, OptionRequest, OptionRequestState
from machines import chat_endpoint
from machines.chat_endpoint import ChatRefused, EndpointAnswer, EndpointGate, EndpointProblem
from outbound.sealed_secrets import SecretUnreadable
from prm import registry

Clock = Callable[[], dt.datetime]
RETRY_AFTER = dt.timedelta(seconds=3)  # after a failure, while somebody waits
LEASE = dt.timedelta(seconds=8)  # of a process that asks, which renews it
_MILLION = Decimal(1_000_000)


def load_steps(session: LiveSession, path: Sequence[int | str]) -> list[str]:
    """Return the texts of the steps of a path."""
    ids = [item for item in path if isinstance(item, int)]
    texts = dict(LiveOption.objects.filter(request__session=session, pk__in=ids).values_list("pk", "text"))
    return [texts[item] if isinstance(item, int) else item for item in path]


def render_path(session: LiveSession, path: Sequence[int | str]) -> str:
    """Return the prompt that continues a path."""
    policy = session.policy
    steps = load_steps(session, path)
    return prompts.render_prompt(policy.template, session.problem.text, steps, step_end=policy.step_end)


def ensure_request(
    *, session: LiveSession, path: Sequence[int | str], is_prefetched: bool, now: dt.datetime
) -> OptionRequest:
    """Return the request for the options after this path, which is made once."""
    prompt_digest = prompts.digest_text(render_path(session, path))
    seed = prompts.derive_seed(session.seed, len(path), prompt_digest)
    request = OptionRequest(
        session=session,
        path=list(path),
        position=len(path),
        has_human_steps=any(isinstance(item, str) for item in path),
        is_prefetched=is_prefetched,
        prompt_digest=prompt_digest,
        seed=seed,
        prm=registry.current_prm(session.project_id),
        made_at=now,
    )
    sampler = policies.make_sampler(session.policy)
    request.sent = completions.build_fields(sampler, seed=seed, reference=request.reference)
    found, _is_new = OptionRequest.objects.get_or_create(
        session=session,
        prompt_digest=prompt_digest,
        defaults={
            name: getattr(request, name)
            for name in ("path", "position", "has_human_steps", "is_prefetched", "seed", "sent", "prm", "made_at")
        },
    )
    return found


def list_unasked(*, session: LiveSession, now: dt.datetime) -> list[int]:
    """Return the requests of a session that a thread should ask now: new ones, those whose process was lost, and the
    failed one that the rater waits for."""
    is_lost = Q(state=OptionRequestState.ASKED, lease_ends_at__lt=now)
    rows = OptionRequest.objects.filter(Q(state=OptionRequestState.WAITING) | is_lost, session=session)
    awaited = OptionRequest.objects.filter(
        session=session, turns__ended_at=None, turns__isnull=False, state=OptionRequestState.FAILED
    ).filter(answered_at__lt=now - RETRY_AFTER)
    ids = [*rows.order_by("is_prefetched", "pk").values_list("pk", flat=True)]
    return [*ids, *awaited.values_list("pk", flat=True)]


def answer_request(*, request_id: int, now: dt.datetime, clock: Clock) -> None:
    """Ask the server for the options of a request and store them. Do nothing if another process does, or has.

    The answer comes later than `now`: `clock` tells when."""
    request = _take_request(request_id=request_id, now=now)
    if request is None:
        return
    session = request.session
    if problem := find_reached_limit(session):
        _end_request(request, OptionRequestState.CAPPED, problem, now=clock())
        return
    prompt = render_path(session, request.path)
    try:
        answer = send_request(session.policy, request, prompt)
    except ChatRefused as error:
        _end_request(request, OptionRequestState.REFUSED, str(error), now=clock())
    except (EndpointProblem, SecretUnreadable) as error:
        _end_request(request, OptionRequestState.FAILED, str(error), now=clock())
    else:
        version = server_versions.fetch_version(session.policy)
        _save_answer(request, answer, prompt, version, now=clock())


def send_request(policy: LivePolicy, request: OptionRequest, prompt: str) -> EndpointAnswer:
    """Send a request as it is recorded, or raise an EndpointProblem."""
    sampler, endpoint = policies.make_sampler(policy), policies.load_endpoint(policy)
    address = completions.build_address(policy.address, sampler)
    body = completions.build_body(sampler, request.sent, prompt)
    if policy.is_example:
        response = outbound.OutboundResponse(200, example_program.write_answer(body), is_cut=False)
        return EndpointAnswer(response, milliseconds=0, n_attempts=1)
    return chat_endpoint.post_request(endpoint, address, body, key=request.reference, gate=EndpointGate())


def _take_request(*, request_id: int, now: dt.datetime) -> OptionRequest | None:
    """Take the lease of a request, or return None if it is not to be asked now."""
    with transaction.atomic():
        rows = OptionRequest.objects.select_for_update(of=("self",), skip_locked=True)
        request = rows.select_related("session__policy", "session__problem").filter(pk=request_id).first()
        if request is None:
            return None
        is_lost = request.lease_ends_at is not None and request.lease_ends_at < now
        if request.state == OptionRequestState.ANSWERED or (request.state == OptionRequestState.ASKED and not is_lost):
            return None
        request.state, request.asked_at, request.problem = OptionRequestState.ASKED, now, ""
        request.lease_ends_at, request.n_tries = now + LEASE, request.n_tries + 1
        request.save(update_fields=["state", "asked_at", "problem", "lease_ends_at", "n_tries"])
    return request


def renew_leases(*, request_ids: Sequence[int], now: dt.datetime) -> None:
    """Keep other processes from asking what this one is asking."""
    rows = OptionRequest.objects.filter(pk__in=request_ids, state=OptionRequestState.ASKED)
    rows.update(lease_ends_at=now + LEASE)


def find_reached_limit(session: LiveSession) -> str:
    """Return which limit forbids another request, or an empty string."""
    policy = session.policy
    own = _sum_costs(OptionRequest.objects.filter(session=session))
    if policy.most_session_tokens is not None and own[0] >= policy.most_session_tokens:
        return _("The token limit of a session is reached.")
    if policy.most_tokens is None and policy.most_money is None:
        return ""
    tokens, money = sum_project_costs(policy.project_id)
    if policy.most_tokens is not None and tokens >= policy.most_tokens:
        return _("The project’s token limit is reached.")
    if policy.most_money is not None and money >= policy.most_money:
        return _("The project’s cost limit is reached.")
    return ""


def sum_project_costs(project_id: int) -> tuple[int, Decimal]:
    """Return the tokens and the money that all sessions of a project used."""
    return _sum_costs(OptionRequest.objects.filter(session__project=project_id))


def _sum_costs(rows: Any) -> tuple[int, Decimal]:
    totals = rows.aggregate(tokens=Sum("prompt_tokens"), more=Sum("completion_tokens"), money=Sum("money"))
    return (totals["tokens"] or 0) + (totals["more"] or 0), totals["money"] or Decimal(0)


def _end_request(request: OptionRequest, state: OptionRequestState, problem: str, *, now: dt.datetime) -> None:
    rows = OptionRequest.objects.filter(pk=request.pk, state=OptionRequestState.ASKED, n_tries=request.n_tries)
    rows.update(state=state, problem=problem[:500].replace("\0", ""), answered_at=now, lease_ends_at=None)


def _save_answer(
    request: OptionRequest, answer: EndpointAnswer, prompt: str, version: str, *, now: dt.datetime
) -> None:
    policy = request.session.policy
    content = b"" if answer.response.is_cut else answer.response.content
    found = completions.read_options(policies.make_sampler(policy), content, prompt)
    if not found.is_answer:
        _end_request(request, OptionRequestState.FAILED, _("The answer of the server contains no options."), now=now)
        return
    columns = _describe_answer(policy, found) | {"server_version": version, "milliseconds": answer.milliseconds}
    with transaction.atomic():
        rows = OptionRequest.objects.filter(pk=request.pk, state=OptionRequestState.ASKED, n_tries=request.n_tries)
        is_ours = rows.update(
            state=OptionRequestState.ANSWERED,
            answered_at=now,
            lease_ends_at=None,
            answer=zlib.compress(content, level=6),
            **columns,
        )
        if is_ours:
            LiveOption.objects.bulk_create(LiveOption(request=request, **vars(option)) for option in found.options)


def _describe_answer(policy: LivePolicy, found: PolicyAnswer) -> dict[str, Any]:
    money = (found.prompt_tokens * policy.prompt_price + found.completion_tokens * policy.completion_price) / _MILLION
    return {
        "n_returned": found.n_returned,
        "dropped": found.dropped,
        "served_model": found.model,
        "fingerprint": found.fingerprint,
        "prompt_tokens": found.prompt_tokens,
        "completion_tokens": found.completion_tokens,
        "is_usage_estimated": found.is_usage_estimated,
        "money": money,
    }
