"""Figures in templates: charts with their tables, small drawings, numbers as they are written here."""

from typing import Any

from django import template
from django.template import Context

from dashboard import audits, statistics
from dashboard.charts import Chart, small, words
from dashboard.charts.drawing import Svg
from dashboard.charts.matrix import Matrix
from dashboard.tables import Table

register = template.Library()
register.filter("share", words.share)
register.filter("percent", words.percent)
register.filter("alarms", audits.alarms)


@register.inclusion_tag("dashboard/parts/chart.html", takes_context=True)
def chart(
    context: Context, drawn: Chart, title: str, what: str, span: int = 4, more: str = "", link: str = ""
) -> dict[str, Any]:
    """A panel with a chart: its title, the line that says what it is and what is good, and the table behind it; perhaps
    with a `link` to where there is `more` of it."""
    told = {"chart": drawn, "title": title, "what": what, "span": span, "more": more, "link": link}
    return {"request": context["request"], **told}


@register.inclusion_tag("dashboard/parts/data.html", takes_context=True)
def behind(context: Context, table: Table) -> dict[str, Any]:
    """The table behind a drawing, folded, with its file: the same rows, whatever the address asks for besides."""
    return {"request": context["request"], "table": table}


@register.inclusion_tag("dashboard/parts/matrix.html")
def matrix(drawn: Matrix, css: str = "") -> dict[str, Any]:
    return {"matrix": drawn, "css": css}


@register.simple_tag
def interval(value: float, low: float | None, high: float | None, name: str, mark: float | None = None) -> Svg:
    return small.interval(value, low, high, name=name, mark=mark)


@register.filter
def brackets(pair: Any) -> str:
    """ "[.65, .71]" of whatever has a low and a high end."""
    return "" if pair is None else words.interval(pair.low, pair.high)


@register.filter
def undefined(reason: str) -> str:
    """Why a number is missing, in words for people."""
    return statistics.why(reason)
