"""Pay by person and period for programs: the rows of the page, with the user names that payroll needs."""

import datetime as dt
from decimal import Decimal

from msgspec import Struct

from labeling.models import Project, Rater
from labeling.quality import pay

_MS_PER_HOUR = 3_600_000


class PaidWork(Struct, frozen=True):
    """What one person has earned in one period. `pay` is None without a pay rate."""

    username: str  # empty if the account was erased
    pseudonym: str
    is_member: bool
    begins: dt.date | None  # None for the whole time
    days: int
    traces: int
    hours: float
    pay: Decimal | None
    currency: str


def list_paid_work(
    *, project: Project, since: dt.date | None = None, until: dt.date | None = None, period: str = ""
) -> list[PaidWork]:
    rows = pay.list_pay(project=project, since=since, until=until, period=period)
    raters = Rater.objects.select_related("user").in_bulk({row.rater_id for row in rows})
    has_rate = project.pay_per_hour is not None
    paid = [
        PaidWork(
            username=rater.user.username if rater.user and not rater.user.erased_at else "",
            pseudonym=rater.labeler or "",
            is_member=rater.removed_at is None,
            begins=row.begins,
            days=row.days,
            traces=row.traces,
            hours=round(row.paid_ms / _MS_PER_HOUR, 4),
            pay=row.pay if has_rate else None,
            currency=project.currency,
        )
        for row in rows
        for rater in [raters[row.rater_id]]
    ]
    return sorted(paid, key=lambda each: (each.username.casefold(), each.pseudonym, each.begins or dt.date.min))
