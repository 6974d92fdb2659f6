"""The commands for CSV files of ratings, which use no database."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from bench import simulated_raters
from stats.estimates import Reason
from stats.ratings_file import InvalidRatingsFile, InvalidScale, TableTooLarge
from tests.stats import anesthetists, published_tables


def run(command: str, path: Path, **options: Any) -> str:
    out = io.StringIO()
    call_command(command, csv=str(path), stdout=out, **options)
    return out.getvalue()


def agreement(path: Path, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("agreement", path, **options))
    return found


def rejection(command: str, path: Path, **options: Any) -> BaseException:
    """Return the exception behind the error that the command reports."""
    with pytest.raises(CommandError) as caught:
        run(command, path, **options)
    assert caught.value.__cause__ is not None
    return caught.value.__cause__


def bad_lines(command: str, path: Path, **options: Any) -> list[int]:
    error = rejection(command, path, **options)
    assert isinstance(error, InvalidRatingsFile)
    return error.lines


def size_limit(command: str, path: Path, **options: Any) -> tuple[int, int]:
    """Return how many items the file has, and how many are allowed."""
    error = rejection(command, path, **options)
    assert isinstance(error, TableTooLarge)
    return error.number, error.limit


def consensus(path: Path, **options: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(run("consensus", path, **options))))


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """Krippendorff's 4 × 12 table, one rating per line."""
    table = [
        (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
        (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
        (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
        (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
    ]
    lines = [f"u{u},r{r},{v}" for r, row in enumerate(table) for u, v in enumerate(row) if v is not None]
    return written(tmp_path, ["task,worker,label", *lines])


def written(folder: Path, lines: list[str]) -> Path:
    path = folder / "ratings.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_agreement_prints_the_published_values(ratings: Path) -> None:
    found = agreement(ratings)
    expected = {
        "alpha_nominal": 0.743421,
        "alpha_ordinal": 0.815388,
        "alpha_interval": 0.849107,
        "gwet_ac1": 0.775444,
        "pairwise_agreement": 0.781818,
    }
    assert {name: round(found[name], 6) for name in expected} == expected
    assert found["counts"] == {
        "ratings": 41,
        "tasks": 12,
        "tasks_rated_twice_or_more": 11,
        "workers": 4,
        "clusters": 12,
        "clusters_with_something_to_compare": 11,
    }
    low, high = found["intervals"]["alpha_nominal"]
    assert low < found["alpha_nominal"] < high
    assert found["values"] == ["1", "2", "3", "4", "5"]


def test_agreement_equals_every_oracle(shared_data: Path, tmp_path: Path) -> None:
    for table in published_tables.load_tables(shared_data):
        counts = published_tables.table_patterns(table)
        lines, unit = ["task,worker,label"], 0
        for row, units in zip(counts.counts.tolist(), counts.all_units.tolist(), strict=True):
            votes = [value for value, n in zip(table["values"], row, strict=True) for _ in range(n)]
            for unit in range(unit + 1, unit + 1 + units):  # noqa: B020  numbers continue from row to row
                lines += [f"{unit},{rater},{value}" for rater, value in enumerate(votes)]
        values = ",".join(map(str, table["values"]))
        found = agreement(written(tmp_path, lines), values=values)
        for name in ("alpha_nominal", "alpha_ordinal", "alpha_interval"):
            assert found[name] == pytest.approx(table["expect"][name], abs=5.1e-7), (table["name"], name)
        assert found["gwet_ac1"] == pytest.approx(table["expect"]["gwet_AC1"], abs=5.1e-7)


def test_agreement_clusters_by_the_cluster_column(tmp_path: Path) -> None:
    lines = [f"t{n},{w},{(n * 7 + (w == 'b') * (n % 5 == 0)) % 3},p{n // 10}" for n in range(60) for w in "ab"]
    found = agreement(written(tmp_path, ["task,worker,label,cluster", *lines]))
    assert (found["clustered_by"], found["counts"]["clusters"]) == ("cluster", 6)


def test_agreement_of_words_has_no_distances_and_gives_the_reason(tmp_path: Path) -> None:
    path = written(tmp_path, ["task,worker,label", "1,a,good", "1,b,bad", "2,a,bad", "2,b,bad"])
    found = agreement(path)
    assert found["alpha_nominal"] is not None
    assert found["alpha_interval"] is None
    assert found["reasons"]["alpha_interval"] == Reason.NOT_NUMBERS
    assert found["reasons"]["alpha_ordinal"] == Reason.NO_ORDER
    assert agreement(path, values="bad,good")["alpha_ordinal"] is not None


def test_agreement_over_one_category_gives_the_reason_for_missing_alpha(tmp_path: Path) -> None:
    found = agreement(written(tmp_path, ["task,worker,label", "1,a,1", "1,b,1", "2,a,1", "2,b,1"]))
    assert (found["alpha_nominal"], found["gwet_ac1"], found["pairwise_agreement"]) == (None, 1.0, 1.0)
    assert found["reasons"]["alpha_nominal"] == Reason.NO_VARIATION


@pytest.mark.parametrize("command", ["agreement", "consensus"])
def test_bad_line_stops_the_command_and_is_reported(command: str, tmp_path: Path) -> None:
    path = written(tmp_path, ["task,worker,label", "1,a,1", "1,,1"])
    options = {"method": "majority"} if command == "consensus" else {}
    assert bad_lines(command, path, **options) == [3]


def test_label_off_the_given_scale_is_reported_with_its_line(ratings: Path) -> None:
    assert bad_lines("agreement", ratings, values="1,2,3,5") == [8]


def test_missing_file_is_reported(tmp_path: Path) -> None:
    assert isinstance(rejection("agreement", tmp_path / "none.csv"), FileNotFoundError)


@pytest.mark.parametrize("values", ["1,2,", "1,1,2"])
def test_invalid_scale_is_rejected(values: str, ratings: Path) -> None:
    assert isinstance(rejection("agreement", ratings, values=values), InvalidScale)


def test_scale_is_rejected_for_first_errors(ratings: Path) -> None:
    with pytest.raises(CommandError, match="--values"):
        run("consensus", ratings, method="first_error", values="-1,0")


@pytest.mark.fault
def test_too_many_labels_and_workers_for_memory_are_rejected(tmp_path: Path) -> None:
    """Fifty labels of forty thousand workers are tables of a hundred million numbers; agreement needs none of them."""
    rows = [f"t{n // 2},w{n},{n % 50}" for n in range(40_001)]
    path = written(tmp_path, ["task,worker,label", *rows])
    assert size_limit("consensus", path, method="dawid_skene") == (40_001, 40_000)
    assert agreement(path)["counts"]["workers"] == 40_001


@pytest.mark.fault
def test_too_many_labels_and_clusters_for_memory_are_rejected(tmp_path: Path) -> None:
    rows = [f"t{n},w,{n % 50},c{n}" for n in range(38_432)]
    assert size_limit("agreement", written(tmp_path, ["task,worker,label,cluster", *rows])) == (38_432, 38_431)


def test_too_many_steps_for_memory_are_rejected(tmp_path: Path) -> None:
    rows = [f"t{n},w,1,10000" for n in range(1_667)]
    path = written(tmp_path, ["task,worker,label,steps", *rows])
    assert size_limit("consensus", path, method="first_error") == (16_671_667, 16_666_666)


def shell(line: str, ratings: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a shell line that can use `agreement` and `consensus`, in the folder of the ratings."""
    manage = Path(__file__).resolve().parents[3] / "manage.py"
    commands = "".join(
        f'{name}() {{ "{sys.executable}" "{manage}" {name} {option} "$@"; }}\n'
        for name, option in (("agreement", ""), ("consensus", "--method majority"))
    )
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail\n{commands}{line}"],
        cwd=ratings.parent,
        env=os.environ | {"SECRET_KEY": "for tests", "STEPMARK_DATA": str(ratings.parent)} | environment,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.fault
@pytest.mark.parametrize("line", ["agreement --csv - <&-", "agreement --csv .", "agreement --csv ratings.csv >&-"])
def test_unreadable_input_or_closed_output_is_reported_in_one_line(line: str, ratings: Path) -> None:
    found = shell(line, ratings)
    assert (found.returncode, found.stdout) == (1, b"")
    [error] = found.stderr.decode().splitlines()
    assert error.startswith("CommandError: ")


@pytest.mark.fault
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full, which simulates a full disk")
def test_full_disk_is_reported_in_one_line(ratings: Path) -> None:
    found = shell("agreement --csv ratings.csv > /dev/full", ratings)
    assert found.returncode == 1
    [error] = found.stderr.decode().splitlines()
    assert error.startswith("CommandError: ")


@pytest.mark.fault
def test_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, ["task,worker,label", *(f"t{n},w,1" for n in range(20_000))])
    found = shell("consensus --csv ratings.csv | head -n 1", path)
    assert (found.returncode, found.stdout, found.stderr) == (141, b"task,label,probability,votes\n", b"")


@pytest.mark.fault
def test_any_command_may_lose_the_reader_of_its_output(ratings: Path) -> None:
    manage = Path(__file__).resolve().parents[3] / "manage.py"
    found = shell(f'"{sys.executable}" "{manage}" help > >(exit 0)', ratings)
    assert (found.returncode, found.stderr) == (141, b"")


@pytest.mark.fault
def test_output_is_utf_8_in_any_terminal(tmp_path: Path) -> None:
    path = written(tmp_path, ["task,worker,label", "t€,a,ja", "t€,b,ja"])
    found = shell("agreement --csv - < ratings.csv && consensus --csv ratings.csv", path, PYTHONIOENCODING="latin-1")
    assert (found.returncode, found.stderr) == (0, b"")
    assert found.stdout.decode().endswith("t€,ja,1.000000,2\n")


@pytest.mark.parametrize("level", [95.0, 0.0, float("nan"), 0.9999999999999999])
def test_level_outside_its_range_is_rejected(level: float, ratings: Path) -> None:
    with pytest.raises(CommandError, match="--level"):
        run("agreement", ratings, level=level)


def test_consensus_by_majority_reports_the_share(ratings: Path) -> None:
    found = {row["task"]: row for row in consensus(ratings, method="majority")}
    assert len(found) == 12
    assert found["u0"] == {"task": "u0", "label": "1", "probability": "1.000000", "votes": "3"}
    assert (found["u1"]["label"], found["u1"]["probability"]) == ("2", "0.750000")


def test_consensus_by_dawid_skene_labels_the_anesthetists_patients(tmp_path: Path) -> None:
    votes = anesthetists.load_votes()
    once = votes.workers != 0  # a file holds one rating per worker and task
    rows = zip(votes.tasks[once], votes.workers[once], votes.labels[once], strict=True)
    path = written(tmp_path, ["task,worker,label", *(f"{t},{w},{label + 1}" for t, w, label in rows)])
    found = consensus(path, method="dawid_skene")
    assert len(found) == 45
    assert {row["label"] for row in found} == {"1", "2", "3", "4"}
    assert all(0.4 < float(row["probability"]) <= 1 for row in found)


def test_consensus_on_first_errors_finds_most_of_them(tmp_path: Path) -> None:
    crowd = simulated_raters.simulate_crowd(traces=300, raters_per_trace=5, seed=3)
    reports = crowd.reports
    rows = [
        f"{trace},{rater},{-1 if end == reports.lengths[trace] else end},{reports.lengths[trace]}"
        for trace, rater, end in zip(reports.traces, reports.raters, reports.ends, strict=True)
    ]
    found = consensus(written(tmp_path, ["task,worker,label,steps", *rows]), method="first_error")
    truth = [-1 if error == length else int(error) for error, length in zip(crowd.truth, reports.lengths, strict=True)]
    right = sum(int(row["label"]) == first for row, first in zip(found, truth, strict=True))
    assert right >= 0.9 * len(truth)


def test_consensus_prints_json_when_asked(ratings: Path) -> None:
    found = json.loads(run("consensus", ratings, method="majority", json=True))
    assert found[0] == {"task": "u0", "label": "1", "probability": 1.0, "votes": 3}


def test_report_that_stopped_early_does_not_vote_for_none(tmp_path: Path) -> None:
    rows = ["a,w,3,6,", "a,v,3,6,", "a,x,,6,2"]
    [found] = consensus(written(tmp_path, ["task,worker,label,steps,seen", *rows]), method="first_error")
    assert found["label"] == "3"


@pytest.mark.parametrize(
    "row",
    [
        pytest.param("a,w,x,4,", id="not a number"),
        pytest.param("a,w,-2,4,", id="negative"),
        pytest.param("a,w,0_1,4,", id="underscore"),
        pytest.param("a,w,4,4,", id="after the last step"),
        pytest.param("a,w,1,0,", id="no steps"),
        pytest.param("a,w,,4,", id="neither label nor seen"),
        pytest.param("a,w,,4,5", id="seen after the last step"),
        pytest.param("a,w,1,9999999,", id="too many steps"),
    ],
)
def test_impossible_first_error_is_reported_with_its_line(row: str, tmp_path: Path) -> None:
    path = written(tmp_path, ["task,worker,label,steps,seen", "b,w,1,4,", row])
    assert bad_lines("consensus", path, method="first_error") == [3]


def test_raters_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(
        "task,worker,label\n" + "".join(f"{n},{who},{n % 2 if who != 'c' else 0}\n" for n in range(8) for who in "abc")
    )
    labels = {row["votes"] for row in csv.DictReader(io.StringIO(run("consensus", path, method="majority")))}
    assert labels == {"3"}
    without = run("consensus", path, method="majority", without_rater=["c"])
    assert without == run("consensus", path, method="majority", rater=["a", "b"])
    assert {row["probability"] for row in csv.DictReader(io.StringIO(without))} == {"1.000000"}
    assert agreement(path, without_rater=["c"]) != agreement(path)
    with pytest.raises(CommandError):
        run("consensus", path, method="majority", without_rater=["nobody"])
