"""Licenses: what a machine may do in one stratum of a project. Only this module changes them.

A license lets the machine's label count as one of the labels that a trace needs, or settle the trace alone. It is off
by default, granted by a lead, and rests on a valid passport. Each trace that it covers is drawn: with the re-test
share, people label it as usual, and the license is suspended when they agree less with the machine than before.
"""

import datetime as dt
import hashlib
from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from jobs import wakeups
from labeling.models import Assignment, Gold, LicensedLabel, QueueEntry, Trace
from labeling.models.assignment import AssignmentPurpose, FinishReason
from labeling.models.licensed_label import LicensedRole
from labeling.models.rater import RaterKind
from labeling.models.trace import TraceKind
from labeling.quality import consensus, licensed_labels, submitted_reports
from labeling.queue.slots import GOLD_SOURCES
from machines import passport_data
from machines.license_strata import PROMISES, Stratum, find_stratum
from machines.models import MachineLicense, MachinePassport
from machines.passport_models import LicenseEnd
from stats import drift

APPLY_TASK = "machines.check_passports"
MIN_RETEST_SHARE = 0.05
_CHUNK = 500
_MAX_NEW_LABELS = 20_000  # in one round
_NO_LABEL = -1


class LicenseRefused(Exception):
    """The license cannot be granted. The message is for the person who asked."""


def find_evidence(passport: MachinePassport, stratum: Stratum) -> dict[str, Any] | None:
    strata: list[dict[str, Any]] = passport.content["strata"]
    return next((row for row in strata if row["stratum"] == stratum._asdict()), None)


def grant_license(
    *,
    passport: MachinePassport,
    stratum: Stratum,
    may_settle: bool,
    promised: float = 0.9,
    retest_share: float = 0.1,
    by: User | None,
    now: dt.datetime,
) -> MachineLicense:
    """License a machine in one stratum, if its passport supports it."""
    evidence = find_evidence(passport, stratum)
    bound = next((row for row in (evidence or {}).get("bounds", ()) if row["promised"] == promised), None)
    if passport.expired_at is not None:
        raise LicenseRefused(_("The passport has expired. Issue a new one first."))
    if promised not in PROMISES or evidence is None or bound is None or evidence["agreement"] is None:
        raise LicenseRefused(_("The passport has no evidence for this stratum and promise."))
    if not MIN_RETEST_SHARE <= retest_share <= 1:
        raise LicenseRefused(_("Enter a re-test share from %(low)s to 1.") % {"low": MIN_RETEST_SHARE})
    if may_settle and not bound["keeps"]:
        raise LicenseRefused(_("The lower bound of its precision in this stratum is below the promise."))
    if not may_settle and not (passport.passes_test or bound["keeps"]):
        raise LicenseRefused(_("The machine has not passed the alternative annotator test."))
    try:
        with transaction.atomic():
            row = MachineLicense.objects.create(
                project_id=passport.project_id,
                rater_id=passport.rater_id,
                passport=passport,
                **stratum._asdict(),
                may_settle=may_settle,
                promised=promised,
                retest_share=retest_share,
                agreement=evidence["agreement"],
                lower_bound=bound["bound"],
                n_people=evidence["n_people"],
                n_gold=evidence["n_gold"],
                granted_at=now,
                granted_by=by,
            )
            detail = {"promised": promised, "settles": may_settle, "retests": retest_share, **stratum._asdict()}
            _log_event("machine_license.granted", row, by, now, **detail)
    except IntegrityError:
        raise LicenseRefused(_("The machine is already licensed in this stratum.")) from None
    wakeups.request_task(APPLY_TASK)
    return row


def end_license(
    *, license: MachineLicense, because: LicenseEnd, by: User | None, now: dt.datetime, returns_traces: bool = False
) -> int:
    """End a license: no other label counts. With `returns_traces`, traces that it settled go back to people; this also
    works later. Return how many labels were withdrawn."""
    with transaction.atomic():
        ended = MachineLicense.objects.active().filter(pk=license.pk)
        if ended.update(ended_at=now, ended_because=because):
            _log_event("machine_license.ended", license, by, now, why=because.value)
        elif returns_traces:
            _log_event("machine_license.returned", license, by, now)
    return licensed_labels.withdraw_labels(license_id=license.pk, now=now, only_unsettled=not returns_traces)


# Apply licenses


def apply_licenses(*, now: dt.datetime, project_id: int | None = None) -> int:
    """End licenses that must end, and draw roles for the traces that the others cover. Return how many are new."""
    n_new = 0
    rows = MachineLicense.objects.active().select_related("passport", "rater", "route__second_passport").order_by("pk")
    for row in rows if project_id is None else rows.filter(project=project_id):
        if row.passport.expired_at is not None or (row.route and row.route.second_passport.expired_at is not None):
            end_license(license=row, because=LicenseEnd.EXPIRED, by=None, now=now)
        elif find_retest_alarm(row) is not None:
            end_license(license=row, because=LicenseEnd.RETESTS, by=None, now=now)
        else:
            n_new += _apply_license(row, now)
    return n_new


def load_retests(license: MachineLicense) -> list[bool]:
    """Return whether people agree with the machine on each re-test, in the order in which they settled them."""
    labels = dict(
        LicensedLabel.objects.filter(license=license.pk, role=LicensedRole.RETEST).values_list("trace", "first_error")
    )
    rows = consensus.current_revisions(project_id=license.project_id).filter(trace__in=labels)
    settled = rows.order_by("made_at", "pk").values_list("trace", "first_error")
    return [labels[trace] == first_error for trace, first_error in settled]


def find_retest_alarm(license: MachineLicense) -> int | None:
    return drift.find_alarm(load_retests(license), drift.plan_drift_test(license.agreement))


def _apply_license(license: MachineLicense, now: dt.datetime) -> int:
    # Traces on which the machines of a route differ stay candidates, so that a limit would count them in every round.
    most = _MAX_NEW_LABELS if license.route is None else None
    work = list(_select_candidates(license).values_list("pk", "submitted_revision", "trace")[:most])
    n_new = 0
    for start in range(0, len(work), _CHUNK):
        part = work[start : start + _CHUNK]
        shapes = {
            row[0]: row[1:]
            for row in Trace.objects.filter(pk__in=[row[2] for row in part]).values_list(
                "pk", "problem__domain", "n_steps"
            )
        }
        labels = []
        revisions = [row[:2] for row in part]
        agreeing = _find_agreeing(license, [row[2] for row in part])
        for report in submitted_reports.load_revision_reports(revisions):
            if agreeing is not None and agreeing.get(report.trace_id, _NO_LABEL) != report.position:
                continue
            domain, n_steps = shapes[report.trace_id]
            says_error = report.position is not None
            if find_stratum(domain=domain, n_steps=n_steps, says_error=says_error) == _stratum_of(license):
                labels.append(_draw_label(license, report.trace_id, report.position, now))
        n_new += licensed_labels.add_labels(labels=labels, now=now)
    return n_new


def _find_agreeing(license: MachineLicense, trace_ids: Sequence[int]) -> dict[int, int | None] | None:
    """Return what the second machine of a route says about these traces; None for a license without a route."""
    if license.route is None:
        return None
    work = passport_data.select_work(license.route.second_passport.rater).filter(trace__in=trace_ids)
    revisions = list(work.values_list("pk", "submitted_revision"))
    return {
        report.trace_id: report.position
        for report in submitted_reports.load_revision_reports(revisions)
        if not report.is_censored
    }


def _stratum_of(license: MachineLicense) -> Stratum:
    return Stratum(license.domain, license.shortest, license.longest, license.says_error)


def _select_candidates(license: MachineLicense) -> QuerySet[Assignment]:
    """Return the machine's labels on work that no person has begun, is not gold, and has no licensed label."""
    trace = OuterRef("trace")
    begun = Assignment.objects.filter(trace=trace, purpose=AssignmentPurpose.WORK).exclude(
        rater__kind=RaterKind.MACHINE
    )
    waiting = QueueEntry.objects.open().filter(trace=trace, slots_left=F("slots"), lane__closed_at=None)
    length = {"trace__n_steps__gte": license.shortest}
    if license.longest is not None:
        length["trace__n_steps__lte"] = license.longest
    return (
        passport_data.select_work(license.rater)
        .filter(
            ~Exists(begun),
            ~Exists(Gold.objects.filter(trace=trace)),
            ~Exists(LicensedLabel.objects.filter(trace=trace)),
            Exists(waiting.exclude(lane__arm__in=GOLD_SOURCES)),
            trace__withdrawn_at=None,
            trace__kind=TraceKind.PREGENERATED,
            trace__problem__domain=license.domain,
            finish_reason=FinishReason.FOUND_ERROR if license.says_error else FinishReason.SOLUTION,
            **length,
        )
        .order_by("pk")
    )


def _draw_label(license: MachineLicense, trace_id: int, first_error: int | None, now: dt.datetime) -> LicensedLabel:
    work = LicensedRole.SETTLE if license.may_settle else LicensedRole.VOTE
    return LicensedLabel(
        trace_id=trace_id,
        project_id=license.project_id,
        rater_id=license.rater_id,
        license=license.pk,
        role=LicensedRole.RETEST if draw_share(license.pk, trace_id) < license.retest_share else work,
        retest_probability=license.retest_share,
        first_error=first_error,
        drawn_at=now,
    )


def draw_share(license_id: int, trace_id: int) -> float:
    """Return a number in [0, 1) that is fixed for a license and a trace, so that a repeated round draws the same."""
    digest = hashlib.sha256(f"license {license_id} trace {trace_id}".encode()).digest()
    return int.from_bytes(digest[:7]) / 2**56


def list_results(project_id: int) -> QuerySet[LicensedLabel]:
    """Return the machine-assisted results of a project, which no dataset of people contains."""
    rows = LicensedLabel.objects.active().filter(project=project_id, settled_at__isnull=False)
    return rows.select_related("trace", "rater").order_by("trace")


def name_agreeing_machines(project_id: int) -> dict[int, str]:
    """Return the second machine of each license that belongs to a consensus route."""
    rows = MachineLicense.objects.filter(project=project_id, route__isnull=False)
    return dict(rows.values_list("pk", "route__second_passport__rater__machine"))


def count_roles(licenses: Sequence[MachineLicense]) -> dict[int, dict[str, int]]:
    """Return for each license the traces of each role, those that it settled, and those that were withdrawn."""
    counts = {row.pk: dict.fromkeys((*LicensedRole.values, "settled", "withdrawn"), 0) for row in licenses}
    rows = LicensedLabel.objects.filter(license__in=counts)
    for license_id, role, settled_at, withdrawn_at in rows.values_list("license", "role", "settled_at", "withdrawn_at"):
        counts[license_id][role] += 1
        counts[license_id]["settled"] += settled_at is not None
        counts[license_id]["withdrawn"] += withdrawn_at is not None
    return counts


def _log_event(what: str, license: MachineLicense, by: User | None, now: dt.datetime, **detail: object) -> None:
    audit_log.log_event(
        what=what,
        by=by,
        now=now,
        project=license.project_id,
        subject=license.subject,
        detail={"machine": license.rater.machine, **detail},
    )
