"""The overview of a project: how far, until when, at what cost, how good. Reads what was computed behind the scenes:
one row of figures, one a day, and bounded counts; the same cost at ten traces and at a million."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from dashboard import money, statistics
from dashboard.charts import Chart
from dashboard.charts.progress import CompletionForecast
from dashboard.overview import charts as overview_charts
from dashboard.overview import forecast
from dashboard.overview.charts import OverviewDay
from labeling.models import Project
from labeling.quality.project_stats import StoredProjectStats, list_daily_stats, load_project_stats


@dataclass(frozen=True)
class OverviewPage:
    shown: StoredProjectStats
    settled: int
    total: int
    end: CompletionForecast | None
    pace: float
    alpha: statistics.StatisticEstimate
    exact: statistics.StatisticEstimate
    within_one: statistics.StatisticEstimate
    cost: str
    cost_in_all: str
    steps: int
    contested: int
    charts: dict[str, Chart]


def load_overview(project: Project, now: dt.datetime, *, weeks: int | None = None) -> OverviewPage | None:
    """None where nothing was submitted yet. With `weeks` the charts begin so long ago; figures stay as they are."""
    shown = load_project_stats(project_id=project.pk)
    if shown is None:
        return None
    content, today = shown.content, now.astimezone(dt.UTC).date()
    days = _list_days(content, today)
    settled, total = content["settled"]["traces"], content["settled"].get("of", 0)
    pace = [day.settled for day in days][-forecast.PACE_DAYS :]
    end = forecast.forecast_completion(pace, remaining=total - settled, today=today)
    headline = content["headline"]
    spent = money.compute_labor_cost(project, sum(day.paid_ms for day in days))
    steps = content["settled"]["steps"]
    return OverviewPage(
        shown=shown,
        settled=settled,
        total=total,
        end=end,
        pace=sum(pace) / max(len(pace), 1),
        alpha=statistics.build_estimate("alpha_nominal", headline["steps"].get("alpha_nominal")),
        exact=statistics.build_estimate("exact", headline["first_error"].get("exact")),
        within_one=statistics.build_estimate("within_one", headline["first_error"].get("within_one")),
        cost=money.format_amount(project, spent / steps if spent is not None and steps else None, 3),
        cost_in_all=money.format_amount(project, spent),
        steps=steps,
        contested=content["settlements"].get("contested", 0),
        charts=overview_charts.build_overview_charts(
            project, days, end, total, list(list_daily_stats(project_id=project.pk)), weeks
        ),
    )


def _list_days(content: dict[str, Any], today: dt.date) -> list[OverviewDay]:
    """Every day from the first to today: days of rest count in a pace."""
    settled = {each["day"]: each for each in content.get("settled_days", ())}
    worked = {each["day"]: each for each in content["days"]}
    known = sorted({*settled, *worked})
    if not known:
        return [OverviewDay(today, 0, 0, 0, 0)]
    first = min(dt.date.fromisoformat(known[0]), today)
    every = [first + dt.timedelta(days=n) for n in range((today - first).days + 1)]
    return [_build_day(each, settled.get(each.isoformat(), {}), worked.get(each.isoformat(), {})) for each in every]


def _build_day(day: dt.date, settled: dict[str, Any], worked: dict[str, Any]) -> OverviewDay:
    return OverviewDay(
        day,
        ended=settled.get("settled", 0),
        contested=settled.get("contested", 0),
        steps=settled.get("steps", 0),
        paid_ms=worked.get("paid_ms", 0),
    )
