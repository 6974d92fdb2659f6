"""Where raters go wrong on hidden gold: errors missed by their step, sound traces blamed by their length. Each a
drawing with its table. Reads nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from dashboard import statistics
from dashboard.charts import Chart, series, words
from dashboard.tables import Column, Table

FEWEST = 5  # answers below which nothing is drawn; the table has them all


def of(told: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Chart]:
    """What there is anything to tell of, missed errors first."""
    found = (
        _chart(
            [(str(row["step"] + 1), row) for row in told.get("missed", ())],
            key="missed",
            name=_(
                "Errors of hidden gold that were missed, by the step they are at, with 95 percent intervals by problem"
            ),
            first=Column(_("Step of the error")),
        ),
        _chart(
            [(_length(row), row) for row in told.get("blamed", ())],
            key="blamed",
            name=_(
                "Sound traces of hidden gold that were blamed, by their steps, with 95 percent intervals by problem"
            ),
            first=Column(_("Steps of the trace")),
        ),
    )
    return [chart for chart in found if chart is not None]


def _length(row: Mapping[str, Any]) -> str:
    return f"{row['from']}–{row['to']}" if row["to"] else _("%(n)d or more") % {"n": row["from"]}


def _chart(rows: Sequence[tuple[str, Mapping[str, Any]]], *, key: str, name: str, first: Column) -> Chart | None:
    if not rows:
        return None
    drawn = [(label, row) for label, row in rows if row["n"] >= FEWEST]
    places = [series.Place(label, row["value"], row["low"], row["high"]) for label, row in drawn]
    columns = (
        first,
        *(Column(each, is_number=True, reads=words.share) for each in (_("share"), _("from"), _("to"))),
        *(Column(each, is_number=True) for each in (_("answers"), _("problems"))),
        Column(_("what is missing, and why")),
    )
    cells = [
        (label, row["value"], row["low"], row["high"], row["n"], row["n_problems"], _why(row)) for label, row in rows
    ]
    return Chart(series.dots(places, name=name, reads=words.share), Table(key, name, columns, cells))


def _why(row: Mapping[str, Any]) -> str:
    return statistics.why(row["reason"] or row["interval_reason"])
