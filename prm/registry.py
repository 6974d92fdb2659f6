"""The versions of a project's PRMs, and which one is current. Only this module changes PRM rows."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from labeling.models import Manifest, Project
from outbound import sealed_secrets
from prm.backends import remote
from prm.backends.base import BackendError, ScoringBackend
from prm.backends.remote import PROMPT_STYLES, HttpBackend, RetryPolicy, VllmBackend
from prm.models import PRM
from prm.models.prm import BackendKind, SemanticsKind, encode_ids

_SECRET_PURPOSE = "prm.secret_box"  # noqa: S105  a part of the key, not a secret
_IDENTITY_FIELDS = ("backend", "semantics", "model", "digest", "address", "options", "weights")


class NotRegistrable(Exception):
    """The registration is incomplete or impossible. The message is for the person who registers."""


class NothingToRollBackTo(Exception):
    """No PRM was current before the current one."""


@dataclass(frozen=True)
class PRMIdentity:
    """What defines a version; only a builtin PRM has `weights`."""

    backend: str
    model: str
    digest: str = ""
    semantics: str = SemanticsKind.HAZARD
    address: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    secret: str = ""
    weights: bytes | None = None


def register_prm(
    *,
    project: Project,
    identity: PRMIdentity,
    by: User | None,
    now: dt.datetime,
    manifest: Manifest | None = None,
    trained: Sequence[int] | None = None,
) -> PRM:
    """Register the next version. It becomes current only by a gate or by a person.

    Without `manifest` and `trained`, the audits report that its training set is not stated.
    """
    if trained is None and manifest is not None:
        trained = sorted(set(manifest.rows.values_list("trace_id", flat=True)))
    _refuse_incomplete(identity)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)  # serializes version numbers
        last = PRM.objects.filter(project=project).aggregate(version=Max("version"))["version"] or 0
        prm = PRM.objects.create(
            project=project,
            version=last + 1,
            **{name: getattr(identity, name) for name in _IDENTITY_FIELDS},
            secret=sealed_secrets.seal_secret(identity.secret, purpose=_SECRET_PURPOSE) if identity.secret else None,
            manifest=manifest,
            trained=None if trained is None else encode_ids(trained),
            n_trained=None if trained is None else len(trained),
            registered_at=now,
            registered_by=by,
        )
        _log_event("prm.registered", prm, by, now, backend=prm.backend, model=prm.model, digest=prm.digest)
    return prm


def _refuse_incomplete(identity: PRMIdentity) -> None:
    if not identity.model.strip():
        raise NotRegistrable(_("Enter the model name as its server knows it."))
    if identity.backend in (BackendKind.VLLM, BackendKind.HTTP):
        try:
            remote.validate_address(identity.address)
        except BackendError as error:
            raise NotRegistrable(str(error)) from None
    if identity.backend == BackendKind.HTTP and not identity.secret:
        raise NotRegistrable(_("Enter the shared secret. Requests to a scorer over HTTP are signed with it."))
    if identity.backend == BackendKind.VLLM and not (identity.secret.isascii() and identity.secret.isprintable()):
        raise NotRegistrable(
            _("The vLLM token contains characters that are not allowed in HTTP headers. Use printable ASCII.")
        )
    if identity.backend == BackendKind.VLLM and identity.options.get("style", "qwen") not in PROMPT_STYLES:
        raise NotRegistrable(_("Unknown prompt style. Use one of: %(styles)s.") % {"styles": ", ".join(PROMPT_STYLES)})


def record_evaluation(
    *,
    prm: PRM,
    evaluation: dict[str, Any],
    audits: dict[str, Any],
    calibration: dict[str, Any],
    threshold: float | None,
    now: dt.datetime,
) -> None:
    """Store the latest evaluation with the version. Generations keep the figures of their own gates."""
    prm.evaluation, prm.audits, prm.calibration, prm.evaluated_at = evaluation, audits, calibration, now
    prm.threshold = prm.threshold if threshold is None else threshold
    prm.save(update_fields=["evaluation", "audits", "calibration", "threshold", "evaluated_at"])


def make_current(*, prm: PRM, by: User | None, now: dt.datetime, why: str = "") -> None:
    """Make this PRM the one that scores, draws and answers. Do nothing if it already is."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=prm.project_id)
        before = current_prm(prm.project_id)
        if before is not None and before.pk == prm.pk:
            return
        _set_current(prm, before, by, now)
        _log_event("prm.made_current", prm, by, now, before=before.version if before else None, why=why)


def roll_back(*, project: Project, by: User | None, now: dt.datetime) -> PRM:
    """Make the predecessor of the current PRM current again. Its scores were kept."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        now_current = current_prm(project.pk)
        if now_current is None or now_current.predecessor is None:
            raise NothingToRollBackTo(_("There is no earlier PRM to roll back to."))
        predecessor = now_current.predecessor
        _set_current(predecessor, predecessor.predecessor, by, now)
        _log_event("prm.rolled_back", predecessor, by, now, before=now_current.version)
    return predecessor


def _set_current(prm: PRM, predecessor: PRM | None, by: User | None, now: dt.datetime) -> None:
    PRM.objects.filter(project=prm.project_id, is_current=True).update(is_current=False)
    prm.is_current, prm.predecessor, prm.made_current_at, prm.made_current_by = True, predecessor, now, by
    prm.save(update_fields=["is_current", "made_current_at", "made_current_by", "predecessor"])


def current_prm(project_id: int) -> PRM | None:
    current = PRM.objects.filter(project=project_id, is_current=True).select_related("project", "predecessor")
    return current.defer("weights", "trained").first()


def load_backend(prm: PRM, *, limit: RetryPolicy | None = None) -> ScoringBackend:
    """Return the backend that scores for a PRM; `limit` caps its time-out and retries."""
    secret = sealed_secrets.unseal_secret(bytes(prm.secret), purpose=_SECRET_PURPOSE) if prm.secret else ""
    timeout = float(prm.options.get("timeout", remote.DEFAULT_RETRY_POLICY.timeout))
    retry = RetryPolicy(timeout) if limit is None else RetryPolicy(min(timeout, limit.timeout), limit.tries)
    if prm.backend == BackendKind.VLLM:
        style, batch = prm.options.get("style", "qwen"), int(prm.options.get("batch", 16))
        return VllmBackend(prm.address, prm.model, style=style, token=secret, batch=batch, retry=retry)
    if prm.backend == BackendKind.HTTP:
        return HttpBackend(prm.address, prm.model, secret, digest=prm.digest, retry=retry)
    if prm.backend == BackendKind.BUILTIN:
        from prm.backends import builtin  # loads scikit-learn, which takes a second

        return builtin.load_scorer(bytes(prm.weights or b""))
    raise NotRegistrable(_("Scores for this PRM can only be pushed, so it cannot score new traces."))


def _log_event(what: str, prm: PRM, by: User | None, now: dt.datetime, **detail: Any) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=prm.project_id, subject=f"prm:{prm.pk}", detail=detail)
