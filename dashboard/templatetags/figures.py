"""Figures in templates: charts with their tables, small drawings, numbers as they are written here."""

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
    """A panel with a chart: its title, the line that says what it is and what is good, and the table behind it; perhaps
    with a `link` to where there is `more` of it."""
    told = {"chart": drawn, "title": title, "what": what, "span": span, "more": more, "link": link}
    return {"request": context["request"], **told}


@register.inclusion_tag("dashboard/_chart_data.html", takes_context=True)
def behind(context: Context, table: DataTable) -> dict[str, Any]:
    """The table behind a drawing, folded, with its file: the same rows, whatever the address asks for besides."""
    return {"request": context["request"], "table": table}


@register.inclusion_tag("dashboard/_matrix.html")
def matrix(drawn: Matrix, css: str = "") -> dict[str, Any]:
    return {"matrix": drawn, "css": css}


@register.simple_tag
def interval(value: float, low: float | None, high: float | None, name: str, mark: float | None = None) -> Svg:
    return sparklines.draw_interval(value, low, high, name=name, mark=mark)


@register.filter
def brackets(pair: Any) -> str:
    """ "[.65, .71]" of whatever has a low and a high end."""
    return "" if pair is None else number_format.format_interval(pair.low, pair.high)


@register.filter
def undefined(reason: str) -> str:
    """Why a number is missing, in words for people."""
    return statistics.explain_missing_value(reason)
