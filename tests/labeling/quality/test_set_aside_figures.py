"""All figures, before labels are set aside, while they are, and afterwards."""

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from labeling.models import Assignment, Project, Rater, Trace
from labeling.models.gold import GoldUse
from labeling.quality import consensus, pay, project_stats, protection, signals, workdays
from labeling.quality.gold import make_gold
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.labeling.quality import submitted_work
from tests.labeling.quality.test_set_aside import label, make_project, put_aside, undo

pytestmark = [pytest.mark.django_db, pytest.mark.fault]
NOW = factories.NOW
GOOD, EARLY, LATE = [1, 1, 1], [1, -1], [1, 1, -1]
N_TRACES, N_GOLD = 24, 12


@pytest.fixture(autouse=True)
def _snapshots_in_a_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path


class Campaign:
    """Two good annotators and perhaps a bad one, whose labels are set aside before the others start."""

    def __init__(self, *, has_bad_rater: bool) -> None:
        self.project, self.traces = make_project(N_TRACES)
        self.gold = [factories.make_trace(self.project) for _ in range(N_GOLD)]
        for trace in self.gold:
            make_gold(trace=trace, use=GoldUse.HIDDEN, accepted_first_errors=[1], by=None, now=NOW)
        bad, one, other = self.people = submitted_work.make_raters(self.project, 3)
        if has_bad_rater:
            self.work(bad, [GOOD], begins=1)
            put_aside(bad, now=minute(100))
        self.work(one, [GOOD, EARLY, LATE], begins=101)
        self.work(other, [GOOD, EARLY, EARLY], begins=201)

    def work(self, rater: Rater, results: Sequence[Sequence[int]], *, begins: int) -> None:
        for number, trace in enumerate(self.traces):
            label(rater, trace, results[number % len(results)], now=minute(begins + number))
        for number, trace in enumerate(self.gold):
            submitted_work.submit_trace(
                rater, trace, results[-1], purpose="gold", now=minute(begins + N_TRACES + number)
            )


def minute(number: int) -> dt.datetime:
    return NOW + dt.timedelta(minutes=number)


def load_figures(project: Project) -> dict[str, Any]:
    """Return what the pages, the API and the exports say about a project, and what people are paid."""
    stats = project_stats.compute_project_stats(project_id=project.pk, now=minute(600))
    submissions = signals.load_submission_rows(project_id=project.pk)
    exported = read_file(build_snapshot(project, "steps"), "data/steps/train.jsonl").splitlines()
    workdays.update_workdays(project_id=project.pk, now=minute(600), from_first=True)
    return {
        "stats": stats,
        "headline": project_stats.compute_headline_by_raters(project_id=project.pk),
        "protection": protection.weigh_raters(project_id=project.pk, submissions=submissions),
        "consensus": [
            [row.trace_id, row.first_error, row.labels, row.confidence, row.n_votes]
            for row in consensus.current_revisions(project_id=project.pk).order_by("trace")
        ],
        "export": [json.loads(line) for line in exported],
        "pay": pay.list_pay(project=project, period="day"),
    }


def test_undoing_restores_all_figures_and_pay_never_changes() -> None:
    campaign = Campaign(has_bad_rater=False)
    before = load_figures(campaign.project)
    made = put_aside(campaign.people[1], now=minute(500))
    aside = load_figures(campaign.project)
    undo(made, now=minute(501))
    assert load_figures(campaign.project) == before
    assert aside.pop("pay") == before["pay"] != []
    assert [name for name in aside if aside[name] == before[name]] == []


def test_labels_that_are_set_aside_leave_the_figures_of_a_project_without_them() -> None:
    spoiled, clean = (Campaign(has_bad_rater=has) for has in (True, False))
    assert Assignment.objects.filter(set_aside__isnull=False).count() == N_TRACES + N_GOLD
    with_them, without_them = (describe(campaign) for campaign in (spoiled, clean))
    assert with_them["consensus"] != []
    for one, other in zip(with_them.pop("export"), without_them.pop("export"), strict=True):
        assert one == other
    for name, figures in without_them.items():
        assert (name, with_them[name]) == (name, figures)


def describe(campaign: Campaign) -> dict[str, Any]:
    """Return the figures without pay, with numbers that count from 0 in place of ids."""
    figures = load_figures(campaign.project)
    del figures["pay"]
    people = [rater.pk for rater in campaign.people]
    traces = list(Trace.objects.filter(project=campaign.project).order_by("pk").values_list("pk", flat=True))
    names = [rater.labeler for rater in campaign.people]
    own = figures["stats"].pop("raters")
    of_pay = ("active_ms", "paid_ms", "set_aside_ms")
    by_rater = {people.index(int(pk)): _without(row, *of_pay) for pk, row in own.items()}
    figures["raters"] = {number: row for number, row in by_rater.items() if row}
    figures["pairs"] = [
        {**row, "raters": [people.index(pk) for pk in row["raters"]]} for row in figures["stats"].pop("pair")
    ]
    del figures["stats"]["days"]
    figures["protection"] = {people.index(pk): row for pk, row in figures["protection"].items()}
    figures["consensus"] = [[traces.index(row[0]), *row[1:]] for row in figures["consensus"]]
    # A slot that was given back is served from another lane.
    figures["export"] = [_without(row, "problem", "problem_digest", "arm") for row in figures["export"]]
    for row in figures["export"]:
        row["trace"] = traces.index(row["trace"])
        row["ratings"] = [
            {**_without(each, "submission"), "rater": names.index(each["rater"])} for each in row["ratings"]
        ]
    return figures


def _without(row: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in keys}
