"""Drawings are well-formed XML, and all text in them is escaped."""

import datetime as dt
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from charts import bars, cells, number_format, series
from charts.svg import Svg, choose_ticks

HOSTILE = "\"'></text><script>alert(1)</script>&{{ x }}"
values = st.one_of(st.none(), st.floats(-1e6, 1e6))
DAY = dt.date(2026, 11, 18)


def parse(svg: Svg) -> ElementTree.Element:
    """Check that the drawing parses, has a name and contains finite numbers only."""
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label")
    assert "nan" not in svg
    assert "inf" not in svg
    return root


@pytest.mark.parametrize("only", [0.0, 0.1, 1.0])
def test_single_share_gets_an_axis_from_zero_to_one(only: float) -> None:
    labels = [
        text.text
        for text in parse(
            series.draw_dots([series.SeriesPoint("1", only)], name="n", reads=number_format.format_share)
        ).iter()
    ]
    assert number_format.format_share(1.0) in labels
    assert number_format.format_share(1.25) not in labels
    assert number_format.format_share(2.0) not in labels


@given(st.lists(st.tuples(values, values, values), max_size=12))
@settings(max_examples=60, deadline=None)
def test_series_accept_missing_values(rows: list[tuple[float | None, float | None, float | None]]) -> None:
    places = [series.SeriesPoint(HOSTILE, *row) for row in rows]
    for draw in (series.draw_dots, series.draw_band):
        root = parse(draw(places, name=HOSTILE, reads=number_format.format_share))
        assert not [each for each in root.iter() if each.tag == "script"]


@given(st.lists(st.floats(0, 1e9), max_size=12))
@settings(max_examples=40, deadline=None)
def test_bars_accept_any_amounts(amounts: list[float]) -> None:
    named = [bars.BarValue(HOSTILE, amount, HOSTILE) for amount in amounts]
    for draw in (bars.draw_columns, bars.draw_horizontal_bars):
        parse(draw(named, name=HOSTILE, reads=number_format.format_count))
    shares = [amount / max(sum(amounts), 1) for amount in amounts]
    layer = bars.StackLayer("fn-l", HOSTILE, shares, HOSTILE)
    parse(
        bars.draw_stacked_columns(
            [HOSTILE] * len(shares), [layer, layer], name="x", reads=number_format.format_percent, rest=(HOSTILE, "")
        )
    )


@pytest.mark.parametrize("days", [1, 2, 40])
@pytest.mark.parametrize(
    "end",
    [None, series.CompletionForecast(DAY, DAY, DAY), series.CompletionForecast(DAY, DAY, DAY.replace(year=2999))],
)
def test_progress_accepts_any_span(days: int, end: series.CompletionForecast | None) -> None:
    done = [(DAY - dt.timedelta(days=days - n), n) for n in range(1, days + 1)]
    for width in (series.PROGRESS_WIDTH, bars.WIDTH):
        root = parse(
            series.draw_progress(done, goal=10, end=end, name="x", dates=str, words=("5 settled", "now"), width=width)
        )
        assert all(0 <= float(x) <= width - 10 for each in root.iter() if (x := each.get("x")))
        assert all(float(each.get("x", 0)) > 60 for each in root.iter() if each.text == "5 settled")


def test_horizontal_bars_fit_a_narrow_drawing() -> None:
    root = parse(
        bars.draw_horizontal_bars(
            [bars.BarValue("uniform", 9000, "generation 3")],
            name="x",
            reads=number_format.format_count,
            width=bars.WIDTH,
        )
    )
    assert all(float(each.get("x", 0)) <= 262 for each in root.iter() if each.text == "9,000")  # clear of the note


def test_sparklines_clamp_values_out_of_range() -> None:
    root = parse(cells.draw_interval(1.7, -3, 2, name=HOSTILE, mark=0.75))
    assert [float(place) for each in root.iter() if (place := each.get("cx"))] == [cells.WIDTH]
    parse(
        cells.draw_forest(
            [cells.ForestRow(None, None, None), cells.ForestRow(-0.2, -0.4, 0.1, 0.67)], name="x", of=(-0.5, 1.0)
        )
    )
    parse(cells.draw_bar_sparkline([], name="x"))
    parse(cells.draw_line_sparkline([None, 1.0, None], name="x"))


def test_interval_is_highlighted_when_all_of_it_is_below_its_mark() -> None:
    assert "ci--bad" in cells.draw_interval(0.6, 0.5, 0.7, name="x", mark=0.75)
    assert "ci--bad" not in cells.draw_interval(0.6, 0.5, 0.8, name="x", mark=0.75)


def test_ticks_are_round_and_cover_the_range() -> None:
    assert choose_ticks(0, 12_000) == [0, 3000, 6000, 9000, 12000] or choose_ticks(0, 12_000)[-1] >= 12_000
    assert choose_ticks(0.58, 0.71)[0] <= 0.58
    assert choose_ticks(5, 5)[-1] > 5


@pytest.mark.parametrize(("low", "n_labels"), [(0.3, 8), (0.0, 11), (-0.15, 7), (-0.25, 7), (-1.0, 11)])
def test_only_legible_tenths_of_a_forest_plot_are_labeled(low: float, n_labels: int) -> None:
    svg = cells.draw_forest([cells.ForestRow(0.5, None, None)], name="One", of=cells.choose_axis_range(low, 1.0))
    labels = re.findall(r"<text[^>]*>([^<]+)</text>", str(svg))
    assert len(labels) == n_labels
    assert labels[-1] == "1.0"


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=24))
def test_columns_of_hours_fit_and_grow_with_the_count(steps: list[int]) -> None:
    root = parse(bars.draw_hours(dict(enumerate(steps)), now=0, name="x"))
    boxes = [{name: float(box.get(name, "")) for name in ("x", "y", "width", "height")} for box in root.iter("rect")]
    assert len(boxes) == len(steps)
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= bars.HOURS_WIDTH for box in boxes)
    assert all(16 <= box["y"] <= 80 for box in boxes)
    heights = [box["height"] for box in boxes]
    assert [height for _, height in sorted(zip(steps, heights, strict=True))] == sorted(heights)
    assert [box.get("class") for box in root.iter("rect")] == ["is-now", *[None] * (len(steps) - 1)]
    assert next(text.text for text in root.iter("text") if text.get("y") == "93") == "0"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.684, "0.68"), (1.0, "1.00"), (-0.12, "−0.12"), (-0.001, "0.00"), (None, "–"), (0.999, "1.00")],
)
def test_share_has_two_decimals(value: float | None, text: str) -> None:
    assert number_format.format_share(value) == text
