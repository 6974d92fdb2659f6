"""The versions of a project's PRMs, and which one is current. Alone changes PRM rows."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from accounts.models import User
from events import log
from labeling.models import Manifest, Project
from prm import packing, sealing
from prm.backends import wire
from prm.backends.asked import Backend, BackendError
from prm.backends.http import Http
from prm.backends.vllm import STYLES, Vllm
from prm.backends.wire import Patience
from prm.models import PRM
from prm.models.prm import BackendKind, SemanticsKind


class NotRegistrable(Exception):
    """Something is missing or cannot be; the text is for the person who registers."""


class NothingToRollBackTo(Exception):
    """No PRM was current before this one."""


@dataclass(frozen=True)
class Identity:
    """What a version is. `weights` are those of a builtin one."""

    backend: str
    model: str
    digest: str = ""
    semantics: str = SemanticsKind.HAZARD
    address: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    secret: str = ""
    weights: bytes | None = None


def register(
    *,
    project: Project,
    identity: Identity,
    by: User | None,
    now: dt.datetime,
    manifest: Manifest | None = None,
    trained: Sequence[int] | None = None,
) -> PRM:
    """The next version. It becomes current by a gate or by a person, never by being registered. One from elsewhere may
    name the manifest of the snapshot that it was trained on; else the audits say that this is not stated."""
    if trained is None and manifest is not None:
        trained = sorted(set(manifest.rows.values_list("trace_id", flat=True)))
    _refuse_incomplete(identity)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)  # numbers are given one after the other
        last = PRM.objects.filter(project=project).aggregate(version=Max("version"))["version"] or 0
        prm = PRM.objects.create(
            project=project,
            version=last + 1,
            backend=identity.backend,
            semantics=identity.semantics,
            model=identity.model,
            digest=identity.digest,
            address=identity.address,
            options=identity.options,
            secret=sealing.seal(identity.secret) if identity.secret else None,
            weights=identity.weights,
            manifest=manifest,
            trained=None if trained is None else packing.pack_ids(trained),
            n_trained=None if trained is None else len(trained),
            registered_at=now,
            registered_by=by,
        )
        _say("prm.registered", prm, by, now, backend=prm.backend, model=prm.model, digest=prm.digest)
    return prm


def _refuse_incomplete(identity: Identity) -> None:
    if not identity.model.strip():
        raise NotRegistrable(_("A PRM needs a name: that of the model where it runs."))
    if identity.backend in (BackendKind.VLLM, BackendKind.HTTP):
        try:
            wire.checked_address(identity.address)
        except BackendError as error:
            raise NotRegistrable(str(error)) from None
    if identity.backend == BackendKind.HTTP and not identity.secret:
        raise NotRegistrable(_("A scorer over HTTP needs a shared secret: requests to it are signed."))
    if identity.backend == BackendKind.VLLM and not (identity.secret.isascii() and identity.secret.isprintable()):
        raise NotRegistrable(_("A token for vLLM goes into a header: it has plain letters, digits and signs alone."))
    if identity.backend == BackendKind.VLLM and identity.options.get("style", "qwen") not in STYLES:
        raise NotRegistrable(_("The style is one of: %(styles)s.") % {"styles": ", ".join(STYLES)})


def note_evaluation(
    *,
    prm: PRM,
    evaluation: dict[str, Any],
    audits: dict[str, Any],
    calibration: dict[str, Any],
    threshold: float | None,
    now: dt.datetime,
) -> None:
    """The latest evaluation stands with the version; those of gates stay with their generations."""
    prm.evaluation, prm.audits, prm.calibration, prm.evaluated_at = evaluation, audits, calibration, now
    prm.threshold = prm.threshold if threshold is None else threshold
    prm.save(update_fields=["evaluation", "audits", "calibration", "threshold", "evaluated_at"])


def make_current(*, prm: PRM, by: User | None, now: dt.datetime, why: str = "") -> None:
    """From now on this one scores, draws and answers. Doing it again changes nothing."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=prm.project_id)
        before = current(prm.project_id)
        if before is not None and before.pk == prm.pk:
            return
        PRM.objects.filter(project=prm.project_id, is_current=True).update(is_current=False)
        prm.is_current, prm.made_current_at, prm.made_current_by = True, now, by
        prm.predecessor = before
        prm.save(update_fields=["is_current", "made_current_at", "made_current_by", "predecessor"])
        _say("prm.made_current", prm, by, now, before=before.version if before else None, why=why)


def roll_back(*, project: Project, by: User | None, now: dt.datetime) -> PRM:
    """Make the one current that was so before. Its scores are still there."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        now_current = current(project.pk)
        if now_current is None or now_current.predecessor is None:
            raise NothingToRollBackTo(_("No PRM was current before this one."))
        back, earlier = now_current.predecessor, now_current.predecessor.predecessor
        PRM.objects.filter(pk=now_current.pk).update(is_current=False)
        back.is_current, back.made_current_at, back.made_current_by, back.predecessor = True, now, by, earlier
        back.save(update_fields=["is_current", "made_current_at", "made_current_by", "predecessor"])
        _say("prm.rolled_back", back, by, now, before=now_current.version)
    return back


def current(project_id: int) -> PRM | None:
    found = PRM.objects.filter(project=project_id, is_current=True).select_related("project", "predecessor")
    return found.defer("weights", "trained").first()


def backend_of(prm: PRM, *, most: Patience | None = None) -> Backend:
    """What answers for it, with at most so much patience. Only this loads scikit-learn, and only for a builtin one."""
    secret = sealing.unseal(bytes(prm.secret)) if prm.secret else ""
    timeout = float(prm.options.get("timeout", wire.USUAL.timeout))
    patience = Patience(timeout) if most is None else Patience(min(timeout, most.timeout), most.tries)
    if prm.backend == BackendKind.VLLM:
        style, batch = prm.options.get("style", "qwen"), int(prm.options.get("batch", 16))
        return Vllm(prm.address, prm.model, style=style, token=secret, batch=batch, patience=patience)
    if prm.backend == BackendKind.HTTP:
        return Http(prm.address, prm.model, secret, digest=prm.digest, patience=patience)
    if prm.backend == BackendKind.BUILTIN:
        from prm.backends import builtin

        return builtin.from_bytes(bytes(prm.weights or b""))
    raise NotRegistrable(_("Scores of this PRM are pushed here: it cannot be asked."))


def _say(what: str, prm: PRM, by: User | None, now: dt.datetime, **detail: Any) -> None:
    log.append(what=what, by=by, now=now, project=prm.project_id, subject=f"prm:{prm.pk}", detail=detail)
