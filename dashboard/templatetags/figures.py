"""Template tags and filters for charts, tables and numbers."""

from typing import Any

from django import template
from django.template import Context

from charts import number_format, sparklines
from charts.matrix import Matrix
from charts.svg import Svg
from dashboard import audits, statistics
from dashboard.chart import Chart
from dashboard.tables import DataTable

register = template.Library()
register.filter("share", number_format.format_share)
register.filter("percent", number_format.format_percent)
register.filter("alarms", audits.list_alarms)


@register.inclusion_tag("dashboard/_chart.html", takes_context=True)
def chart(
    context: Context, drawn: Chart, title: str, what: str, span: int = 4, more: str = "", link: str = ""
) -> dict[str, Any]:
    """Print a panel with a chart, a sentence that explains it, its table, and an optional `link` labeled `more`."""
    panel = {"chart": drawn, "title": title, "what": what, "span": span, "more": more, "link": link}
    return {"request": context["request"], **panel}


@register.inclusion_tag("dashboard/_chart_data.html", takes_context=True)
def behind(context: Context, table: DataTable) -> dict[str, Any]:
    """Print the table of a chart, folded, with a link to download it."""
    return {"request": context["request"], "table": table}


@register.inclusion_tag("dashboard/_matrix.html")
def matrix(drawn: Matrix, css: str = "") -> dict[str, Any]:
    return {"matrix": drawn, "css": css}


@register.simple_tag
def interval(value: float, low: float | None, high: float | None, name: str, mark: float | None = None) -> Svg:
    return sparklines.draw_interval(value, low, high, name=name, mark=mark)


@register.filter
def brackets(pair: Any) -> str:
    """Format the interval of an object with `low` and `high`: [0.65, 0.71]."""
    return "" if pair is None else number_format.format_interval(pair.low, pair.high)


@register.filter
def undefined(reason: str) -> str:
    """Explain why a number is missing."""
    return statistics.explain_missing_value(reason)
