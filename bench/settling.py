"""Measure how many settled traces of a project are wrong, and how many labels they took: `python -m bench.settling`.

The campaign of `bench.protection`: 398 traces, overlap 2, at most five labels, hidden gold, eight raters of whom one
calls every step positive and one finds 30 % of the errors ("repaired"), the same with honest raters in place of these
two ("clean"), or the six others alone ("six"). A rater gives the same result on a trace in all three. Labels of raters
whom the evidence pauses are set aside at once. Traces are settled by votes alone, or as the platform does it, by its
own functions: the rater model is fitted to work and gold whenever the work has grown by a quarter, and twice when
nothing is left to label; it asks for a label where it doubts the votes or what it settled before, and settles traces
once it is calibrated on gold.
"""

import argparse
import datetime as dt
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

import bench.configured_django  # noqa: F401  before modules that read settings
from bench import protection
from bench.protection import SimulatedProject, SimulatedRater
from labeling.models import Project, RaterModelFit
from labeling.models.consensus import FitBasis
from labeling.quality import posteriors, rater_model, redundancy
from labeling.quality.posteriors import Posterior, TraceShape
from labeling.quality.redundancy import ResolutionCourse, WeighedVotes
from labeling.quality.submitted_reports import RevisionReport
from stats import rater_protection

TRACES, GOLD, OVERLAP, LIMIT, RATERS, BAD = 398, 90, 2, 5, 8, 2
EVERY, SOON, NIGHTS = 5, 60, 2  # EVERY and SOON in rounds: bad raters are paused soon
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@dataclass
class SettledProject:
    project: SimulatedProject
    uses_model: bool
    settings: Project = field(default_factory=lambda: Project(overlap=OVERLAP, overlap_limit=LIMIT))
    votes: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))  # end by trace and rater
    settled: dict[int, int] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)  # settled or contested
    n_requested: dict[int, int] = field(default_factory=lambda: defaultdict(lambda: OVERLAP))
    due: set[int] = field(default_factory=set)
    paused: set[int] = field(default_factory=set)
    fit: RaterModelFit | None = None
    n_fitted: int = 0
    all_reports: list[RevisionReport] = field(default_factory=list)  # those that were set aside included

    @property
    def n_live(self) -> int:
        return sum(len(self.votes[trace]) for trace in range(TRACES))

    def work(self, number: int, rater: SimulatedRater) -> bool:
        """Label one trace, of gold or work. All raters see gold in the same order."""
        seen, traces = self.project.seen[number], range(len(self.project.lengths))
        gold = next((trace for trace in traces[TRACES:] if trace not in seen), None)
        if gold is not None and self.project.random.random() < protection.GOLD_SHARE:
            trace = gold
        else:
            free = (t for t in traces[:TRACES] if t not in self.closed and len(self.votes[t]) < self.n_requested[t])
            found = next((t for t in free if t not in seen), None)
            if found is None:
                return False
            trace = found
        self.record(number, rater, trace)
        return True

    def record(self, number: int, rater: SimulatedRater, trace: int) -> None:
        self.votes[trace][number] = self.project.record(number, rater, trace)
        self.all_reports.append(self._make_report(trace, number))
        if trace < TRACES:
            self.due.add(trace)

    def settle_due(self) -> None:
        self.settle(sorted(self.due))
        self.due.clear()

    def settle(self, traces: Iterable[int]) -> None:
        found = self._compute_posteriors(traces)
        for trace in traces:
            self.settled.pop(trace, None)
            self.closed.discard(trace)
            weighed = self._weigh(trace, found.get(trace))
            n_votes = len(self.votes[trace])
            if weighed.course == ResolutionCourse.ASK and n_votes >= LIMIT and weighed.otherwise:
                weighed = weighed.otherwise
            if weighed.course == ResolutionCourse.SETTLED:
                end = weighed.first_error
                self.settled[trace] = int(self.project.lengths[trace]) if end is None else end
            if weighed.course in (ResolutionCourse.SETTLED, ResolutionCourse.CONTESTED) or n_votes >= LIMIT:
                self.closed.add(trace)
            self.n_requested[trace] = max(OVERLAP, n_votes + (weighed.course == ResolutionCourse.ASK))

    def _weigh(self, trace: int, posterior: Posterior | None) -> WeighedVotes:
        reports = self._list_reports([trace])
        weighed = redundancy.weigh_votes(reports, overlap=OVERLAP, added=max(0, len(reports) - OVERLAP))
        if posterior is None or self.fit is None:
            return weighed
        return redundancy.settle_by_model(
            weighed,
            reports,
            posterior.probability_at,
            decides=self.fit.settles_traces,
            can_ask=len(reports) < LIMIT,
            overlap=OVERLAP,
            n_requested=max(OVERLAP, len(reports)),
        )

    def _compute_posteriors(self, traces: Iterable[int]) -> dict[int, Posterior]:
        reports = self._list_reports(traces)
        if self.fit is None or not reports:
            return {}
        return posteriors.compute_posteriors(self.fit, self.load_shapes(reports), reports)

    def _list_reports(self, traces: Iterable[int]) -> list[RevisionReport]:
        return [self._make_report(trace, rater) for trace in traces for rater in self.votes[trace]]

    def _make_report(self, trace: int, rater: int) -> RevisionReport:
        end = self.votes[trace][rater]
        return RevisionReport(RATERS * trace + rater, 1, trace, rater, self.find_first_error(trace, end), end)

    def find_first_error(self, trace: int, end: int) -> int | None:
        return None if end == self.project.lengths[trace] else end

    def load_shapes(self, reports: Iterable[RevisionReport]) -> dict[int, TraceShape]:
        lengths = {report.trace_id: int(self.project.lengths[report.trace_id]) for report in reports}
        return {trace: TraceShape(list(range(n)), n, "", trace) for trace, n in lengths.items()}

    def pause_raters(self) -> None:
        evidence = rater_protection.weigh_evidence(self.project.observe())
        for number in {n for n, each in enumerate(evidence) if each.is_overwhelming} - self.paused:
            self.paused.add(number)
            self.set_labels_aside(number)

    def set_labels_aside(self, number: int) -> None:
        mine = [trace for trace, votes in self.votes.items() if votes.pop(number, None) is not None]
        self.settle([trace for trace in mine if trace < TRACES])

    def fit_if_grown(self) -> None:
        if self.n_live >= max(rater_model.MIN_SUBMISSIONS, rater_model.MIN_GROWTH * self.n_fitted):
            self.fit_raters()

    def fit_raters(self) -> None:
        self.n_fitted = self.n_live
        if not self.uses_model:
            return
        labeled = [trace for trace, votes in self.votes.items() if votes]
        gold = {}
        for trace in (each for each in labeled if each >= TRACES):
            truth = self.find_first_error(trace, int(self.project.truth[trace]))
            gold[trace] = rater_model.group_gold_answers([truth], self._list_reports([trace]), self.settings)
        reports, before = self._list_reports(labeled), self.fit
        shapes = self.load_shapes(reports)
        self.fit = rater_model.build_fit(
            self.settings, reports, gold=gold, shapes=shapes, basis=FitBasis.BLIND, now=NOW
        )
        settles_now = self.fit.settles_traces and not (before and before.settles_traces)
        if before is None or settles_now:
            self.settle(list(self.settled))
        elif self.fit.settles_traces:
            found = self._compute_posteriors(self.settled)
            places = {trace: self.find_first_error(trace, end) for trace, end in self.settled.items()}
            self.settle([t for t in places if found[t].probability_at(places[t]) < redundancy.DOUBTFUL])


class CampaignResult(NamedTuple):
    n_labels: int  # of work, those that were set aside included
    n_settled: int
    n_wrong: int  # settled traces
    n_right_by_consensus: int  # of the same traces, by first-error Dawid-Skene over all labels, without gold

    @property
    def n_right(self) -> int:
        return self.n_settled - self.n_wrong

    @property
    def share_wrong(self) -> float:
        return self.n_wrong / self.n_settled


def create_project(seed: int, *, is_clean: bool) -> tuple[SimulatedProject, list[SimulatedRater]]:
    """Return the traces of a campaign and its raters, the bad ones first."""
    project = SimulatedProject.create(traces=TRACES, gold=GOLD, error_shares=[0.67], overlap=OVERLAP, seed=seed)
    people = [protection.draw_honest(project.random) for _ in range(RATERS)]
    project.answer_seed = seed
    if not is_clean:
        people[:BAD] = [protection.ALL_POSITIVE, protection.FINDS_FEW]
    return project, people


def run_campaign(seed: int, *, uses_model: bool = True, is_clean: bool = False, has_bad: bool = True) -> CampaignResult:
    """Run a campaign until nothing is left to label. Without `has_bad`, the six other raters work alone."""
    project, people = create_project(seed, is_clean=is_clean)
    campaign, number, n_idle, nights = SettledProject(project, uses_model), 0, 0, 0
    first = 0 if has_bad or is_clean else BAD
    while True:
        number += 1
        order = [n for n in project.random.permutation(RATERS).tolist() if n >= first and n not in campaign.paused]
        n_idle = 0 if sum([campaign.work(n, people[n]) for n in order]) else n_idle + 1
        campaign.settle_due()
        if n_idle == 2:
            if nights == NIGHTS:
                return measure(campaign)
            nights, n_idle = nights + 1, 1
            campaign.fit_raters()
        if n_idle or number % (EVERY if number <= SOON else 5 * EVERY) == 0:
            campaign.pause_raters()
        if n_idle or number % EVERY == 0:
            campaign.fit_if_grown()


def measure(campaign: SettledProject) -> CampaignResult:
    truth = campaign.project.truth
    work = [report for report in campaign.all_reports if report.trace_id < TRACES]
    shapes = campaign.load_shapes(work)
    fit = rater_model.build_fit(campaign.settings, work, gold={}, shapes=shapes, basis=FitBasis.BLIND, now=NOW)
    found = posteriors.compute_posteriors(fit, shapes, work)
    return CampaignResult(
        n_labels=len(work),
        n_settled=len(campaign.settled),
        n_wrong=sum(bool(end != truth[trace]) for trace, end in campaign.settled.items()),
        n_right_by_consensus=sum(
            found[trace].leading == campaign.find_first_error(trace, int(truth[trace])) for trace in campaign.settled
        ),
    )


def compare(seed: int, *, uses_model: bool = True) -> dict[str, CampaignResult]:
    """Return the results of the repaired campaign, of the clean one, and of the six honest raters alone."""
    return {
        "repaired": run_campaign(seed, uses_model=uses_model),
        "clean": run_campaign(seed, uses_model=uses_model, is_clean=True),
        "six": run_campaign(seed, uses_model=uses_model, has_bad=False),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    for uses_model in (False, True):
        rows = []
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            results = compare(seed, uses_model=uses_model)
            repaired, clean, six = results.values()
            row = {f"{name}, wrong": result.share_wrong for name, result in results.items()}
            row |= {f"{name}, settled": result.n_settled / TRACES for name, result in results.items()}
            row |= {f"{name}, labels": result.n_labels / TRACES for name, result in results.items()}
            row |= {
                "labels to clean": repaired.n_labels / clean.n_labels,
                "labels to six": repaired.n_labels / six.n_labels,
            }
            row["right beyond consensus"] = repaired.n_right - repaired.n_right_by_consensus
            rows.append(row)
            print(seed, {name: round(value, 4) for name, value in row.items()}, flush=True)
        figures = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        summary = {
            name: {"mean": round(float(each.mean()), 4), "highest": round(float(each.max()), 4)}
            for name, each in figures.items()
        }
        print(json.dumps({"bench": "settling", "by": "model" if uses_model else "votes", **summary}), flush=True)


if __name__ == "__main__":
    main()
