"""Template tags and filters for charts, tables and numbers."""

import json
from typing import Any

from django import template
from django.template import Context
from django.utils.translation import gettext as _

from charts import cells, number_format
from charts.cells import Matrix
from charts.svg import Svg
from dashboard import statistics
from dashboard.figures import Chart, DataTable
from dashboard.views import prms

register = template.Library()
register.filter("share", number_format.format_share)
register.filter("percent", number_format.format_percent)
register.filter("alarms", prms.list_alarms)


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
    return cells.draw_interval(value, low, high, name=name, mark=mark)


@register.filter
def rarity(rate: float) -> str:
    """Return "1 in 2,300", or "1 in 1" for a rate that says nothing."""
    n = min(1 / max(rate, 1e-12), 1e9)
    digits = max(len(str(int(n))) - 2, 0)
    return _("1 in %(n)s") % {"n": f"{round(n, -digits):,.0f}"}


@register.filter
def plain(value: object) -> str:
    """Return text as it is, and any other JSON value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@register.filter
def undefined(reason: str) -> str:
    """Explain why a number is missing."""
    return statistics.explain_missing_value(reason)
