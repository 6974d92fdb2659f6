"""The overview of a project: progress, forecast, cost, agreement. Reads stored figures, so its cost does not depend on
the number of traces."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from charts.progress import CompletionForecast
from dashboard import money, statistics
from dashboard.chart import Chart
from dashboard.overview import charts as overview_charts
from dashboard.overview import forecast
from dashboard.overview.charts import OverviewDay
from labeling.models import Project
from labeling.quality.project_stats import StoredProjectStats, list_daily_stats, load_project_stats


@dataclass(frozen=True)
class OverviewPage:
    stats: StoredProjectStats
    settled: int
    total: int
    end: CompletionForecast | None
    pace: float
    alpha: statistics.StatisticEstimate
    exact: statistics.StatisticEstimate
    step_cost: str
    total_cost: str
    n_steps: int
    n_contested: int
    charts: dict[str, Chart]


def load_overview(project: Project, now: dt.datetime, *, weeks: int | None = None) -> OverviewPage | None:
    """Return None before the first submission. `weeks` shortens the charts; the figures cover the whole project."""
    stats = load_project_stats(project_id=project.pk)
    if stats is None:
        return None
    content, today = stats.content, now.astimezone(dt.UTC).date()
    days = _list_days(content, today)
    settled, total = content["settled"]["traces"], content["settled"].get("of", 0)
    pace = [day.settled for day in days][-forecast.PACE_DAYS :]
    end = forecast.forecast_completion(pace, remaining=total - settled, today=today)
    headline = content["headline"]
    cost = money.compute_labor_cost(project, sum(day.paid_ms for day in days))
    n_steps = content["settled"]["steps"]
    return OverviewPage(
        stats=stats,
        settled=settled,
        total=total,
        end=end,
        pace=sum(pace) / max(len(pace), 1),
        alpha=statistics.build_estimate("alpha_nominal", headline["steps"].get("alpha_nominal")),
        exact=statistics.build_estimate("exact", headline["first_error"].get("exact")),
        step_cost=money.format_amount(project, cost / n_steps if cost is not None and n_steps else None, 3),
        total_cost=money.format_amount(project, cost),
        n_steps=n_steps,
        n_contested=content["settlements"].get("contested", 0),
        charts=overview_charts.build_overview_charts(
            project, days, end, total, list(list_daily_stats(project_id=project.pk)), weeks
        ),
    )


def _list_days(content: dict[str, Any], today: dt.date) -> list[OverviewDay]:
    """Return every day from the first one to today: idle days count in the pace."""
    settled = {row["day"]: row for row in content.get("settled_days", ())}
    worked = {row["day"]: row for row in content["days"]}
    known = sorted({*settled, *worked})
    first = min(dt.date.fromisoformat(known[0]), today) if known else today
    days = [first + dt.timedelta(days=n) for n in range((today - first).days + 1)]
    return [_build_day(day, settled.get(day.isoformat(), {}), worked.get(day.isoformat(), {})) for day in days]


def _build_day(day: dt.date, settled: dict[str, Any], worked: dict[str, Any]) -> OverviewDay:
    return OverviewDay(
        day,
        ended=settled.get("settled", 0),
        contested=settled.get("contested", 0),
        steps=settled.get("steps", 0),
        paid_ms=worked.get("paid_ms", 0),
    )
