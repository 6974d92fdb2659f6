"""Files of anybody's ratings: what is read, and that every bad line is told by its number."""

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


def complaints(data: bytes, **options: Any) -> list[str]:
    with pytest.raises(InvalidRatingsFile) as caught:
        read(data, **options)
    return caught.value.complaints


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
def test_read_takes_every_ordinary_way_of_writing(data: bytes) -> None:
    found = read(data)
    assert (found.task_names, found.worker_names) == (["t1", "t2"], ["ann", "bob"])
    assert (found.tasks.tolist(), found.workers.tolist(), found.labels) == ([0, 0, 1], [0, 1, 0], ["1", "-1", "1"])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "line 1: no column task, worker, label"),
        (b"task;worker;label\n1;2;3\n", "line 1: no column task, worker, label"),
        (b"task,worker\n1,2\n", "line 1: no column label"),
        (b"task,worker,label,label\n1,2,3,4\n", "line 1: the column label is there twice"),
        (b"task,worker,label\n", "line 2: no ratings"),
        (GOOD + b"t3,ann\n", "line 5: 2 cells where the header has at least 3"),
        (GOOD + b"t3,ann,0,5\n", "line 5: 4 cells where the header has 3"),
        (GOOD + b"t3,,1\n", "line 5: no worker"),
        (GOOD + b" , ,1\n", "line 5: no task; no worker"),
        (GOOD + b"t3,ann,nan\n", "line 5: 'nan' is no label"),
        (GOOD + b"t3,ann,-NaN\n", "line 5: '-NaN' is no label"),
        (GOOD + b"t3,ann,+inf\n", "line 5: '+inf' is no label"),
        (GOOD + b"t3,ann,NULL\n", "line 5: 'NULL' is no label"),
        (GOOD + b"t1,ann,0\n", "line 5: worker 'ann' has rated task 't1' on line 2 already"),
        (GOOD + b't3,ann,"1\n', "line 5: not CSV"),
        (GOOD + b"t3,ann,\xff\n", "line 5: not UTF-8 (byte 0xff)"),
        (GOOD + b"t3,a\0n,1\n", "line 5: a NUL character"),
        (GOOD + b"t3,ann," + b"x" * 200_000 + b"\n", "line 5: not CSV"),
        ("task,worker,label\n".encode("utf-16"), "line 1: not UTF-8"),
    ],
)
def test_bad_line_is_told_by_its_number(data: bytes, expected: str) -> None:
    assert complaints(data)[0].startswith(expected)


def test_every_bad_line_is_told_in_the_order_of_the_file() -> None:
    found = complaints(GOOD + b"t1,ann,1\nt4,,1\nt5,ann\n")
    assert [line.split(":")[0] for line in found] == ["line 5", "line 6", "line 7"]


def test_many_bad_lines_are_counted_not_listed() -> None:
    with pytest.raises(InvalidRatingsFile) as caught:
        read(b"task,worker,label\n" + b"t,,1\n" * 50)
    assert len(str(caught.value).splitlines()) == 21
    assert str(caught.value).endswith("and 30 more lines")


def test_line_numbers_count_through_quoted_line_breaks() -> None:
    assert complaints(GOOD + b't3,"a\nb",1\nt4,,1\n')[0].startswith("line 7: no worker")


def test_task_with_two_clusters_is_told() -> None:
    data = b"task,worker,label,cluster\nt1,a,1,p\nt2,a,1,q\nt1,b,1,q\n"
    found = read(data, optional=("cluster",))
    with pytest.raises(InvalidRatingsFile, match="line 4: task 't1' has cluster 'q', before it was 'p'"):
        ratings_file.read_task_values(found, "cluster")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_a_line(data: bytes) -> None:
    told = ["line 0"]
    try:
        read(b"task,worker,label\n" + data)
    except InvalidRatingsFile as error:
        told = error.complaints
    assert told
    assert all(complaint.startswith("line ") for complaint in told)


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


def test_told_scale_may_hold_values_that_nobody_used_and_gives_words_an_order() -> None:
    found, places = ratings_file.read_scale(["good", "bad"], told=["bad", "fair", "good"])
    assert (found.is_ordered, found.is_numeric, places.tolist()) == (True, False, [2, 0])


@pytest.mark.parametrize(
    ("labels", "told", "message"),
    [
        (["1", "7"], ["0", "1"], "no '7'"),
        ([str(n) for n in range(60)], None, "60 different labels"),
    ],
)
def test_scale_refuses_what_it_cannot_hold(labels: list[str], told: list[str] | None, message: str) -> None:
    with pytest.raises(InvalidLabel, match=message):
        ratings_file.read_scale(labels, told=told)


@pytest.mark.parametrize(
    ("told", "message"),
    [(["a", "a"], "twice"), (["0", "1", ""], "blank"), ([str(n) for n in range(60)], "60 values, at most 50")],
)
def test_told_scale_that_cannot_be_one_is_refused_as_such(told: list[str], message: str) -> None:
    with pytest.raises(InvalidScale, match=message):
        ratings_file.read_scale(["1"], told=told)
