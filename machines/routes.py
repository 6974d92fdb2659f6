"""The consensus filter as a route: two machines settle the traces on which they agree, people label the others first.

The evidence is that of the pair: only traces on which both name the same first error count, by stratum, weighed to
represent the pool, with the mistakes that the pair shares with people taken from hidden gold. In each stratum where the
lower bound of the precision reaches the promise, the first machine gets a license that covers only traces on which the
second one agrees. So everything about licenses applies: blind re-tests, an end by drift or with a passport, results
that are stored apart. Where the bound is too low, nothing changes.

Traces on which machines differ get a high probability in the next batches, by the acquisition `disagreement`.

Z. Zhang et al. (2025), "The lessons of developing process reward models in mathematical reasoning", arXiv:2501.07301.
"""

import datetime as dt
from collections.abc import Iterator
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from jobs import control, wakeups
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import Rater
from machines import license_strata, licenses, passport_data, passports
from machines.label_weights import load_label_weights
from machines.license_strata import PROMISES
from machines.licenses import MIN_RETEST_SHARE
from machines.models import ConsensusRoute, MachineLicense, MachinePassport
from machines.passport_data import PassportTrace
from machines.passport_models import LicenseEnd
from prm import generations
from prm.selection import acquisitions

KIND = "machines.route"


class RouteRefused(Exception):
    """The route cannot be opened. The message is for the person who asked."""


def request_route(
    *,
    first: Rater,
    second: Rater,
    promised: float = 0.9,
    retest_share: float = 0.1,
    puts_disagreement_first: bool = True,
    by: User | None,
    now: dt.datetime,
) -> Job:
    """Weigh the evidence about two machines in the background, and open the route."""
    _refuse_impossible(first, second, promised=promised, retest_share=retest_share)
    arguments = {
        "first": first.pk,
        "second": second.pk,
        "promised": promised,
        "retest_share": retest_share,
        "puts_disagreement_first": puts_disagreement_first,
        "by": by.pk if by else None,
    }
    return control.request_job(kind=KIND, subject=f"machine_rater:{first.pk}", arguments=arguments, by=by, now=now)


def _refuse_impossible(first: Rater, second: Rater, *, promised: float, retest_share: float) -> None:
    if first.pk == second.pk:
        raise RouteRefused(_("Choose two different machines."))
    if promised not in PROMISES or not MIN_RETEST_SHARE <= retest_share <= 1:
        raise RouteRefused(_("Enter a re-test share from %(low)s to 1.") % {"low": MIN_RETEST_SHARE})
    for machine in (first, second):
        if passports.find_valid_passport(machine) is None:
            raise RouteRefused(_("%(machine)s has no valid passport. Issue one first.") % {"machine": machine.machine})
    if find_open_route(first.project_id) is not None:
        raise RouteRefused(_("Another route is open. Close it first."))


def run_route_job(job: Job) -> Iterator[JobProgress | Chunk]:
    arguments = dict(job.arguments)
    by = User.objects.filter(pk=arguments.pop("by")).first()
    first, second = (
        Rater.objects.select_related("project").get(pk=arguments.pop(name)) for name in ("first", "second")
    )
    yield JobProgress(0, 1)
    strata = build_pair_strata(first, second)
    yield partial(_open, first, second, strata, arguments, by)


def build_pair_strata(first: Rater, second: Rater) -> list[dict[str, Any]]:
    """Return the evidence by stratum about the traces on which both machines name the same first error."""
    ends = {row.trace: row.end for row in passport_data.load_compared_traces(second)}
    agreed = [row for row in passport_data.load_compared_traces(first) if _is_agreed(row, ends)]
    weights = load_label_weights(first.project_id, [row.trace for row in agreed])
    return license_strata.build_strata(agreed, weights)


def _is_agreed(row: PassportTrace, ends: dict[int, int | None]) -> bool:
    return row.end is not None and ends.get(row.trace) == row.end


def _open(
    first: Rater,
    second: Rater,
    strata: list[dict[str, Any]],
    options: dict[str, Any],
    by: User | None,
    now: dt.datetime,
) -> JobProgress:
    open_route(first=first, second=second, strata=strata, by=by, now=now, **options)
    return JobProgress(1, 1)


def open_route(
    *,
    first: Rater,
    second: Rater,
    strata: list[dict[str, Any]],
    promised: float,
    retest_share: float,
    puts_disagreement_first: bool,
    by: User | None,
    now: dt.datetime,
) -> ConsensusRoute:
    """Open a route on this evidence, with a license in each stratum that keeps the promise."""
    _refuse_impossible(first, second, promised=promised, retest_share=retest_share)
    passport, other = passports.find_valid_passport(first), passports.find_valid_passport(second)
    assert passport is not None
    assert other is not None
    with transaction.atomic():
        route = ConsensusRoute.objects.create(
            project=first.project,
            first_passport=passport,
            second_passport=other,
            promised=promised,
            retest_share=retest_share,
            puts_disagreement_first=puts_disagreement_first,
            strata=strata,
            opened_at=now,
            opened_by=by,
        )
        licensed = [row for row in strata if _grant(route, passport, row, by, now)]
        if puts_disagreement_first:
            name = acquisitions.disagreement.__name__
            generations.change_loop_rules(project=first.project, by=by, now=now, acquisition=name)
        _log_event("consensus_route.opened", route, by, now, promised=promised, strata=len(licensed))
    wakeups.request_task(licenses.APPLY_TASK)
    return route


def _grant(
    route: ConsensusRoute, passport: MachinePassport, row: dict[str, Any], by: User | None, now: dt.datetime
) -> MachineLicense | None:
    """License the pair in a stratum, unless the bound is too low or the machine is licensed there already."""
    bound = next(each for each in row["bounds"] if each["promised"] == route.promised)
    if not bound["keeps"] or row["agreement"] is None:
        return None
    try:
        with transaction.atomic():
            return MachineLicense.objects.create(
                project_id=route.project_id,
                rater_id=passport.rater_id,
                passport=passport,
                route=route,
                **row["stratum"],
                may_settle=True,
                promised=route.promised,
                retest_share=route.retest_share,
                agreement=row["agreement"],
                lower_bound=bound["bound"],
                n_people=row["n_people"],
                n_gold=row["n_gold"],
                granted_at=now,
                granted_by=by,
            )
    except IntegrityError:
        return None


def close_route(*, route: ConsensusRoute, by: User | None, now: dt.datetime, returns_traces: bool = False) -> int:
    """Close a route and end its licenses. With `returns_traces`, what they settled goes back to people; this also works
    later. Return how many labels were withdrawn. The acquisition stays as it is."""
    with transaction.atomic():
        if ConsensusRoute.objects.filter(pk=route.pk, closed_at=None).update(closed_at=now):
            _log_event("consensus_route.closed", route, by, now)
        rows = route.licenses.select_related("rater")
        return sum(
            licenses.end_license(license=row, because=LicenseEnd.REVOKED, by=by, now=now, returns_traces=returns_traces)
            for row in rows
        )


def find_open_route(project_id: int) -> ConsensusRoute | None:
    return list_routes(project_id).filter(closed_at=None).first()


def list_routes(project_id: int) -> QuerySet[ConsensusRoute]:
    """Return the routes of a project, newest first."""
    rows = ConsensusRoute.objects.filter(project=project_id).order_by("-pk")
    return rows.select_related("first_passport__rater", "second_passport__rater", "opened_by")


def describe_route(route: ConsensusRoute) -> dict[str, Any]:
    """Return a route with what its licenses did, as plain JSON."""
    rows = list(route.licenses.order_by("pk"))
    counts = licenses.count_roles(rows)
    return {
        "id": route.pk,
        "first": route.first_passport.rater.machine,
        "second": route.second_passport.rater.machine,
        "promised": route.promised,
        "retest_share": route.retest_share,
        "puts_disagreement_first": route.puts_disagreement_first,
        "opened_at": route.opened_at.isoformat(),
        "closed_at": route.closed_at.isoformat() if route.closed_at else None,
        "n_strata": len(route.strata),
        "n_kept": sum(counts[row.pk]["settled"] for row in rows),
        "n_retests": sum(counts[row.pk]["retest"] for row in rows),
        "n_ended": sum(row.ended_at is not None for row in rows),
        "licenses": [
            {
                "id": row.pk,
                "stratum": {name: getattr(row, name) for name in license_strata.Stratum._fields},
                "lower_bound": row.lower_bound,
                "ended_because": row.ended_because,
                "n_kept": counts[row.pk]["settled"],
                "n_retests": counts[row.pk]["retest"],
            }
            for row in rows
        ],
    }


def _log_event(what: str, route: ConsensusRoute, by: User | None, now: dt.datetime, **detail: object) -> None:
    machines = [route.first_passport.rater.machine, route.second_passport.rater.machine]
    audit_log.log_event(
        what=what,
        by=by,
        now=now,
        project=route.project_id,
        subject=route.subject,
        detail={"machines": machines, **detail},
    )
