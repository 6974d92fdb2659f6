"""Pay by person and period: rounded per day, so all sums agree."""

import datetime as dt
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from labeling import raters
from labeling.models import Project, Rater, WorkDay
from labeling.projects import lifecycle
from labeling.quality import pay, workdays
from tests import factories

NOW = factories.NOW
CENT = Decimal("0.01")


def work(rater: Rater, day: dt.date, ms: int) -> None:
    WorkDay.objects.create(project=rater.project, rater=rater, day=day, readings=1, active_ms=ms, paid_ms=ms)


def totals(project: Project, **options: Any) -> Decimal:
    return sum((row.pay for row in pay.list_pay(project=project, **options)), Decimal(0))


@pytest.mark.fault
class SumsAgree(TestCase):
    @given(
        rate=st.decimals(min_value="0.01", max_value="99.99", places=2),
        days=st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 70), st.integers(0, 10**8)),
            max_size=12,
            unique_by=lambda d: d[:2],
        ),
    )
    def test_sums_by_any_period_agree_to_the_cent(self, rate: Decimal, days: list[tuple[int, int, int]]) -> None:
        project = factories.make_project(pay_per_hour=rate)
        people = [factories.make_rater(project) for _ in range(3)]
        expected = Decimal(0)
        for person, after, ms in days:
            work(people[person], NOW.date() + dt.timedelta(days=after), ms)
            expected += (rate * ms / 3_600_000).quantize(CENT, ROUND_HALF_UP)
        by_period = {totals(project, period=period) for period in ("", "day", "week", "month")}
        assert by_period | {sum(pay.sum_by_day(project).values(), Decimal(0))} == {expected}
        middle = NOW.date() + dt.timedelta(days=30)
        parts = totals(project, until=middle), totals(project, since=middle + dt.timedelta(days=1))
        assert sum(parts) == expected


pytestmark = pytest.mark.django_db


def test_a_new_rate_applies_from_its_day_and_the_first_one_to_all_earlier_work() -> None:
    project = factories.make_project()
    rater = factories.make_rater(project)
    days = [NOW.date() + dt.timedelta(days=n) for n in (-1, 0, 1, 2)]
    for day in days:
        work(rater, day, 3_600_000)
    for rate, after in ((10, 0), (20, 1), (30, 1), (15, 2)):
        now = NOW + dt.timedelta(days=after)
        lifecycle.change_settings(project=project, by=None, now=now, pay_per_hour=Decimal(rate))
    assert pay.sum_by_day(project) == dict(zip(days, map(Decimal, (10, 10, 30, 15)), strict=True))
    assert pay.sum_by_day(Project.objects.get(pk=project.pk)) == pay.sum_by_day(project)


def test_removed_members_are_paid_and_imported_labels_are_not() -> None:
    project = factories.make_project(pay_per_hour=36)
    gone, imported = factories.make_rater(project), factories.make_rater(project)
    factories.make_submitted(gone, factories.make_trace(project), ms=100_000)
    factories.make_submitted(gone, factories.make_trace(project), ms=100_000, purpose="gold")
    factories.make_submitted(imported, factories.make_trace(project), ms=100_000, origin="imported")
    raters.remove_rater(rater=gone, now=NOW)
    workdays.update_workdays(project_id=project.pk, now=NOW)
    row = pay.PayRow(gone.pk, None, days=1, traces=1, paid_ms=200_000, pay=Decimal("2.00"))
    assert pay.list_pay(project=project) == [row]
