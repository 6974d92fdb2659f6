"""The overview of a project: how far, until when, at what cost, how good. Reads what was computed behind the scenes:
one row of figures, one a day, and bounded counts; the same cost at ten traces and at a million."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from dashboard import forecast, money, overview_charts, statistics
from dashboard.charts import Chart
from dashboard.charts.progress import End
from dashboard.overview_charts import Day
from labeling import quality
from labeling.models import Project
from labeling.quality.figures import Shown


@dataclass(frozen=True)
class Overview:
    shown: Shown
    settled: int
    total: int
    end: End | None
    pace: float
    alpha: statistics.Figure
    exact: statistics.Figure
    within_one: statistics.Figure
    cost: str
    cost_in_all: str
    steps: int
    contested: int
    charts: dict[str, Chart]


def of(project: Project, now: dt.datetime, *, weeks: int | None = None) -> Overview | None:
    """None where nothing was submitted yet. With `weeks` the charts begin so long ago; figures stay as they are."""
    shown = quality.figures_of(project_id=project.pk)
    if shown is None:
        return None
    content, today = shown.content, now.astimezone(dt.UTC).date()
    days = _days(content, today)
    settled, total = content["settled"]["traces"], content["settled"].get("of", 0)
    pace = [day.settled for day in days][-forecast.DAYS :]
    end = forecast.end(pace, remaining=total - settled, today=today)
    headline = content["headline"]
    spent = money.cost(project, sum(day.paid_ms for day in days))
    steps = content["settled"]["steps"]
    return Overview(
        shown=shown,
        settled=settled,
        total=total,
        end=end,
        pace=sum(pace) / max(len(pace), 1),
        alpha=statistics.figure("alpha_nominal", headline["steps"].get("alpha_nominal")),
        exact=statistics.figure("exact", headline["first_error"].get("exact")),
        within_one=statistics.figure("within_one", headline["first_error"].get("within_one")),
        cost=money.told(project, spent / steps if spent is not None and steps else None, 3),
        cost_in_all=money.told(project, spent),
        steps=steps,
        contested=content["settlements"].get("contested", 0),
        charts=overview_charts.of(project, days, end, total, list(quality.course(project_id=project.pk)), weeks),
    )


def _days(content: dict[str, Any], today: dt.date) -> list[Day]:
    """Every day from the first to today: days of rest count in a pace."""
    settled = {each["day"]: each for each in content.get("settled_days", ())}
    worked = {each["day"]: each for each in content["days"]}
    known = sorted({*settled, *worked})
    if not known:
        return [Day(today, 0, 0, 0, 0)]
    first = min(dt.date.fromisoformat(known[0]), today)
    every = [first + dt.timedelta(days=n) for n in range((today - first).days + 1)]
    return [_day(each, settled.get(each.isoformat(), {}), worked.get(each.isoformat(), {})) for each in every]


def _day(day: dt.date, settled: dict[str, Any], worked: dict[str, Any]) -> Day:
    return Day(
        day,
        ended=settled.get("settled", 0),
        contested=settled.get("contested", 0),
        steps=settled.get("steps", 0),
        paid_ms=worked.get("paid_ms", 0),
    )
