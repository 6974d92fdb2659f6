"""Ratings files: which are read, and that every bad line is reported with its number."""

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats import ratings_file
from stats.ratings_file import CrowdRatings, InvalidLabel, InvalidRatingsFile, InvalidScale

GOOD = b"task,worker,label\nt1,ann,1\nt1,bob,-1\nt2,ann,1\n"


def read(data: bytes, **options: Any) -> CrowdRatings:
    return ratings_file.read_ratings(io.BytesIO(data), **options)


def bad_lines(data: bytes, **options: Any) -> list[int]:
    with pytest.raises(InvalidRatingsFile) as caught:
        read(data, **options)
    return caught.value.lines


@pytest.mark.parametrize(
    "data",
    [
        GOOD,
        b"\xef\xbb\xbf" + GOOD,
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.replace(b"\n", b"\n\n"),
        GOOD.replace(b"task,worker,label", b"Task, Worker ,LABEL"),
        GOOD.replace(b",1\n", b",1,, \n"),
        b'"label","junk","worker","task"\n1,,ann,t1\n-1,x,bob,t1\n" 1 ","a\nb",ann,t2\n',
    ],
)
def test_read_accepts_common_csv_variants(data: bytes) -> None:
    found = read(data)
    assert (found.task_names, found.worker_names) == (["t1", "t2"], ["ann", "bob"])
    assert (found.tasks.tolist(), found.workers.tolist(), found.labels) == ([0, 0, 1], [0, 1, 0], ["1", "-1", "1"])


@pytest.mark.parametrize(
    ("data", "line"),
    [
        pytest.param(b"", 1, id="empty"),
        pytest.param(b"task;worker;label\n1;2;3\n", 1, id="semicolons"),
        pytest.param(b"task,worker\n1,2\n", 1, id="missing column"),
        pytest.param(b"task,worker,label,label\n1,2,3,4\n", 1, id="repeated column"),
        pytest.param(b"task,worker,label\n", 2, id="no ratings"),
        pytest.param(GOOD + b"t3,ann\n", 5, id="too few cells"),
        pytest.param(GOOD + b"t3,ann,0,5\n", 5, id="too many cells"),
        pytest.param(GOOD + b"t3,,1\n", 5, id="no worker"),
        pytest.param(GOOD + b" , ,1\n", 5, id="no task and no worker"),
        pytest.param(GOOD + b"t3,ann,nan\n", 5, id="nan"),
        pytest.param(GOOD + b"t3,ann,-NaN\n", 5, id="-NaN"),
        pytest.param(GOOD + b"t3,ann,+inf\n", 5, id="+inf"),
        pytest.param(GOOD + b"t3,ann,NULL\n", 5, id="NULL"),
        pytest.param(GOOD + b"t1,ann,0\n", 5, id="task rated twice"),
        pytest.param(GOOD + b't3,ann,"1\n', 5, id="open quotation mark"),
        pytest.param(GOOD + b"t3,ann,\xff\n", 5, id="not UTF-8"),
        pytest.param(GOOD + b"t3,a\0n,1\n", 5, id="NUL character"),
        pytest.param(GOOD + b"t3,ann," + b"x" * 200_000 + b"\n", 5, id="long cell"),
        pytest.param("task,worker,label\n".encode("utf-16"), 1, id="UTF-16"),
    ],
)
def test_bad_line_is_reported_with_its_number(data: bytes, line: int) -> None:
    assert bad_lines(data) == [line]


def test_bad_lines_are_reported_in_the_order_of_the_file() -> None:
    assert bad_lines(GOOD + b"t1,ann,1\nt4,,1\nt5,ann\n") == [5, 6, 7]


def test_many_bad_lines_are_counted_not_listed() -> None:
    with pytest.raises(InvalidRatingsFile) as caught:
        read(b"task,worker,label\n" + b"t,,1\n" * 50)
    assert len(str(caught.value).splitlines()) == 21
    assert caught.value.n_unlisted == 30


def test_line_numbers_count_through_quoted_line_breaks() -> None:
    assert bad_lines(GOOD + b't3,"a\nb",1\nt4,,1\n') == [7]


def test_task_with_two_clusters_is_reported() -> None:
    data = b"task,worker,label,cluster\nt1,a,1,p\nt2,a,1,q\nt1,b,1,q\n"
    ratings = read(data, optional=("cluster",))
    with pytest.raises(InvalidRatingsFile) as caught:
        ratings_file.read_task_values(ratings, "cluster")
    assert caught.value.lines == [4]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_rejected_with_a_line(data: bytes) -> None:
    lines = [1]
    try:
        read(b"task,worker,label\n" + data)
    except InvalidRatingsFile as error:
        lines = error.lines
    assert lines
    assert min(lines) >= 1


@pytest.mark.parametrize(
    ("labels", "names", "values", "places"),
    [
        (["1", "-1", "+1", "1.0"], ("-1", "1"), (-1.0, 1.0), [1, 0, 1, 1]),
        (["10", "9"], ("9", "10"), (9.0, 10.0), [1, 0]),
        (["good", "bad"], ("bad", "good"), (0.0, 1.0), [1, 0]),
    ],
)
def test_scale_reads_numbers_as_numbers_and_words_as_words(
    labels: list[str], names: tuple[str, ...], values: tuple[float, ...], places: list[int]
) -> None:
    found, at = ratings_file.read_scale(labels)
    assert (set(found.names) == set(names) or found.values == values, found.values) == (True, values)
    assert at.tolist() == places
    assert found.is_numeric == found.is_ordered == (labels[0] != "good")


def test_given_scale_can_have_unused_values_and_orders_words() -> None:
    found, places = ratings_file.read_scale(["good", "bad"], names=["bad", "fair", "good"])
    assert (found.is_ordered, found.is_numeric, places.tolist()) == (True, False, [2, 0])


@pytest.mark.parametrize(
    ("labels", "names", "row"),
    [(["1", "7"], ["0", "1"], 1), ([str(n) for n in range(60)], None, 0)],
    ids=["label off the scale", "too many labels"],
)
def test_scale_rejects_labels_it_cannot_hold(labels: list[str], names: list[str] | None, row: int) -> None:
    with pytest.raises(InvalidLabel) as caught:
        ratings_file.read_scale(labels, names=names)
    assert caught.value.row == row


@pytest.mark.parametrize(
    "names",
    [["a", "a"], ["0", "1", ""], [str(n) for n in range(60)]],
    ids=["repeated value", "blank value", "too many values"],
)
def test_impossible_scale_is_rejected(names: list[str]) -> None:
    with pytest.raises(InvalidScale):
        ratings_file.read_scale(["1"], names=names)
