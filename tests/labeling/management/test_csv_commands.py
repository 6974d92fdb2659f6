"""The command lines for anybody's ratings: a CSV file in, numbers or labels out, no database."""

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
from tests.stats import anesthetists, published_tables


def run(command: str, path: Path, **options: Any) -> str:
    out = io.StringIO()
    call_command(command, csv=str(path), stdout=out, **options)
    return out.getvalue()


def agreement(path: Path, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("agreement", path, **options))
    return found


def consensus(path: Path, **options: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(run("consensus", path, **options))))


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """The 4 × 12 table of Krippendorff, written as a crowd writes."""
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
            said = [value for value, n in zip(table["values"], row, strict=True) for _ in range(n)]
            for unit in range(unit + 1, unit + 1 + units):  # noqa: B020  numbers go on from row to row
                lines += [f"{unit},{rater},{value}" for rater, value in enumerate(said)]
        values = ",".join(map(str, table["values"]))
        found = agreement(written(tmp_path, lines), values=values)
        for name in ("alpha_nominal", "alpha_ordinal", "alpha_interval"):
            assert found[name] == pytest.approx(table["expect"][name], abs=5.1e-7), (table["name"], name)
        assert found["gwet_ac1"] == pytest.approx(table["expect"]["gwet_AC1"], abs=5.1e-7)


def test_agreement_clusters_by_the_column_where_there_is_one(tmp_path: Path) -> None:
    lines = [f"t{n},{w},{(n * 7 + (w == 'b') * (n % 5 == 0)) % 3},p{n // 10}" for n in range(60) for w in "ab"]
    found = agreement(written(tmp_path, ["task,worker,label,cluster", *lines]))
    assert (found["clustered_by"], found["counts"]["clusters"]) == ("cluster", 6)


def test_agreement_of_words_has_no_distances_and_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, ["task,worker,label", "1,a,good", "1,b,bad", "2,a,bad", "2,b,bad"])
    found = agreement(path)
    assert found["alpha_nominal"] is not None
    assert found["alpha_interval"] is None
    assert found["reasons"]["alpha_interval"] == "the labels are not numbers"
    assert found["reasons"]["alpha_ordinal"] == "the labels have no order"
    assert agreement(path, values="bad,good")["alpha_ordinal"] is not None


def test_agreement_over_one_category_says_why_alpha_is_missing(tmp_path: Path) -> None:
    found = agreement(written(tmp_path, ["task,worker,label", "1,a,1", "1,b,1", "2,a,1", "2,b,1"]))
    assert (found["alpha_nominal"], found["gwet_ac1"], found["pairwise_agreement"]) == (None, 1.0, 1.0)
    assert found["reasons"]["alpha_nominal"].startswith("no variation")


@pytest.mark.parametrize("command", ["agreement", "consensus"])
def test_bad_line_stops_the_command_and_is_told(command: str, tmp_path: Path) -> None:
    path = written(tmp_path, ["task,worker,label", "1,a,1", "1,,1"])
    options = {"method": "majority"} if command == "consensus" else {}
    with pytest.raises(CommandError, match="line 3: no worker"):
        run(command, path, **options)


def test_label_off_a_told_scale_is_told_with_its_line(ratings: Path) -> None:
    with pytest.raises(CommandError, match=r"line 8: the scale has no '4'"):
        run("agreement", ratings, values="1,2,3,5")


def test_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot read"):
        run("agreement", tmp_path / "none.csv")


@pytest.mark.parametrize("values", ["1,2,", "1,1,2"])
def test_scale_that_cannot_be_one_is_told_by_its_option(values: str, ratings: Path) -> None:
    with pytest.raises(CommandError, match=f"--values {values}: a value is "):
        run("agreement", ratings, values=values)


def test_scale_is_refused_where_labels_are_places(ratings: Path) -> None:
    with pytest.raises(CommandError, match="--values is not for first_error"):
        run("consensus", ratings, method="first_error", values="-1,0")


def test_more_labels_and_workers_than_fit_into_memory_are_refused(tmp_path: Path) -> None:
    """Fifty labels of forty thousand workers are tables of a hundred million numbers; agreement needs none of them."""
    rows = [f"t{n // 2},w{n},{n % 50}" for n in range(40_001)]
    path = written(tmp_path, ["task,worker,label", *rows])
    with pytest.raises(CommandError, match="50 different labels and 40,001 workers: at most 40,000 workers"):
        run("consensus", path, method="dawid_skene")
    assert agreement(path)["counts"]["workers"] == 40_001


def test_more_labels_and_clusters_than_fit_into_memory_are_refused(tmp_path: Path) -> None:
    rows = [f"t{n},w,{n % 50},c{n}" for n in range(38_432)]
    with pytest.raises(CommandError, match="50 different labels and 38,432 clusters: at most 38,431 clusters"):
        run("agreement", written(tmp_path, ["task,worker,label,cluster", *rows]))


def test_more_steps_than_fit_into_memory_are_refused(tmp_path: Path) -> None:
    rows = [f"t{n},w,1,10000" for n in range(1_667)]
    with pytest.raises(CommandError, match="16,671,667 steps in all reports together: at most 16,666,666"):
        run("consensus", written(tmp_path, ["task,worker,label,steps", *rows]), method="first_error")


def shell(line: str, ratings: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A line of a shell in which `agreement` and `consensus` are the commands, with a file of ratings."""
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


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("agreement --csv - <&-", "cannot read standard input: it is closed"),
        ("agreement --csv .", "cannot read .: Is a directory"),
        ("agreement --csv ratings.csv >&-", "cannot print: standard output is closed"),
    ],
)
def test_what_cannot_be_read_or_printed_is_told_in_a_line(line: str, told: str, ratings: Path) -> None:
    found = shell(line, ratings)
    assert (found.returncode, found.stdout) == (1, b"")
    assert found.stderr.decode().splitlines() == [f"CommandError: {told}"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here, which stands for a full disk")
def test_full_disk_is_told_in_a_line(ratings: Path) -> None:
    found = shell("agreement --csv ratings.csv > /dev/full", ratings)
    assert (found.returncode, found.stderr) == (1, b"CommandError: cannot print: No space left on device\n")


def test_reader_who_has_seen_enough_is_no_fault(tmp_path: Path) -> None:
    path = written(tmp_path, ["task,worker,label", *(f"t{n},w,1" for n in range(20_000))])
    found = shell("consensus --csv ratings.csv | head -n 1", path)
    assert (found.returncode, found.stdout, found.stderr) == (141, b"task,label,probability,votes\n", b"")


def test_what_is_printed_is_utf_8_whatever_the_terminal_says(tmp_path: Path) -> None:
    path = written(tmp_path, ["task,worker,label", "t€,a,ja", "t€,b,ja"])
    found = shell("agreement --csv - < ratings.csv && consensus --csv ratings.csv", path, PYTHONIOENCODING="latin-1")
    assert (found.returncode, found.stderr) == (0, b"")
    assert found.stdout.decode().endswith("t€,ja,1.000000,2\n")


@pytest.mark.parametrize("level", [95.0, 0.0, float("nan"), 0.9999999999999999])
def test_level_outside_its_range_is_told(level: float, ratings: Path) -> None:
    with pytest.raises(CommandError, match="between 0 and 1"):
        run("agreement", ratings, level=level)


def test_consensus_by_majority_tells_the_share(ratings: Path) -> None:
    found = {row["task"]: row for row in consensus(ratings, method="majority")}
    assert len(found) == 12
    assert found["u0"] == {"task": "u0", "label": "1", "probability": "1.000000", "votes": "3"}
    assert (found["u1"]["label"], found["u1"]["probability"]) == ("2", "0.750000")


def test_consensus_by_dawid_skene_is_surer_of_the_anaesthetists_than_the_majority(tmp_path: Path) -> None:
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
    told = crowd.told
    rows = [
        f"{trace},{rater},{-1 if end == told.lengths[trace] else end},{told.lengths[trace]}"
        for trace, rater, end in zip(told.traces, told.raters, told.ends, strict=True)
    ]
    found = consensus(written(tmp_path, ["task,worker,label,steps", *rows]), method="first_error")
    truth = [-1 if error == length else int(error) for error, length in zip(crowd.truth, told.lengths, strict=True)]
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
    ("row", "message"),
    [
        ("a,w,x,4,", "'x' is no place"),
        ("a,w,-2,4,", "'-2' is no place"),
        ("a,w,0_1,4,", "'0_1' is no place"),
        ("a,w,4,4,", "4 lies outside a trace of 4 steps"),
        ("a,w,1,0,", "steps is '0'"),
        ("a,w,,4,", "no number of steps in seen"),
        ("a,w,,4,5", "5 lies outside"),
        ("a,w,1,9999999,", "steps is '9999999'"),
    ],
)
def test_first_error_that_cannot_be_is_told_with_its_line(row: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, ["task,worker,label,steps,seen", "b,w,1,4,", row])
    with pytest.raises(CommandError, match=f"line 3: .*{message}"):
        run("consensus", path, method="first_error")
