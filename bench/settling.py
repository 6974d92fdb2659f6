"""Measure how many settled traces of a project are wrong, and how many labels they took: `python -m bench.settling`.

The campaign of `bench.protection`: 398 traces, overlap 2, at most five labels, hidden gold, eight raters of whom one
calls every step positive and one finds 30 % of the errors, or eight honest ones. Labels of raters whom the evidence
pauses are set aside at once. Traces are settled by votes alone, or as the platform does it: the rater model is fitted
whenever the work has grown by a quarter, asks for a label where it doubts the votes or what it settled before, and
settles traces once it is calibrated on gold (here: from `GOLD` answers on; the platform tests it).
"""

import argparse
import json
import os
from collections import defaultdict
from dataclasses import dataclass, field

import django
import numpy as np

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("SECRET_KEY", "only for the benchmark")
os.environ.setdefault("STEPMARK_LOG_LEVEL", "ERROR")
django.setup()

from bench import protection  # noqa: E402  needs the setup above
from bench.protection import SimulatedProject, SimulatedRater  # noqa: E402  as above
from labeling.quality import redundancy  # noqa: E402  as above
from labeling.quality.redundancy import ResolutionCourse, WeighedVotes  # noqa: E402  as above
from labeling.quality.submitted_reports import RevisionReport  # noqa: E402  as above
from stats import first_error_dawid_skene, first_error_reports, rater_protection  # noqa: E402  as above
from stats.arrays import Bools  # noqa: E402  as above
from stats.first_error_dawid_skene import FirstErrorFit  # noqa: E402  as above
from stats.first_error_reports import ReportArrays  # noqa: E402  as above

TRACES, OVERLAP, LIMIT, RATERS, GOLD, EVERY = 398, 2, 5, 8, 30, 5


@dataclass
class SettledProject:
    project: SimulatedProject
    uses_model: bool
    votes: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))  # end by trace and rater
    settled: dict[int, int] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)  # settled or contested
    paused: set[int] = field(default_factory=set)
    fit: FirstErrorFit | None = None
    n_fitted: int = 0
    n_set_aside: int = 0

    @property
    def n_labels(self) -> int:
        return self.n_set_aside + sum(map(len, self.votes.values()))

    def work(self, number: int, rater: SimulatedRater) -> bool:
        project, random = self.project, self.project.random
        unseen = [t for t in range(TRACES, len(project.lengths)) if t not in project.seen[number]]
        if unseen and random.random() < protection.GOLD_SHARE:
            trace = int(random.choice(unseen))
        else:
            open_traces = (t for t in range(TRACES) if t not in self.closed and t not in project.seen[number])
            found = next(open_traces, None)
            if found is None:
                return False
            trace = found
        end = project.record(number, rater, trace)
        if trace < TRACES:
            self.votes[trace][number] = end
            self.settle([trace])
        return trace < TRACES

    def settle(self, traces: list[int]) -> None:
        chances = self._posteriors(traces)
        for trace in traces:
            self.settled.pop(trace, None)
            self.closed.discard(trace)
            weighed = self._weigh(trace, chances.get(trace))
            is_full = len(self.votes[trace]) >= LIMIT
            if weighed.course == ResolutionCourse.ASK and is_full and weighed.otherwise:
                weighed = weighed.otherwise
            if weighed.course == ResolutionCourse.SETTLED:
                end = weighed.first_error
                self.settled[trace] = int(self.project.lengths[trace]) if end is None else end
            if weighed.course == ResolutionCourse.SETTLED or is_full:
                self.closed.add(trace)

    def _weigh(self, trace: int, chances: list[float] | None) -> WeighedVotes:
        length = int(self.project.lengths[trace])
        reports = [
            RevisionReport(n, 1, trace, n, None if end == length else end, 0) for n, end in self.votes[trace].items()
        ]
        weighed = redundancy.weigh_votes(reports, overlap=OVERLAP, added=max(0, len(reports) - OVERLAP))
        if chances is None:
            return weighed
        return redundancy.settle_by_model(
            weighed,
            reports,
            lambda place: chances[length if place is None else place],
            decides=sum(row[0] >= TRACES and row[1] not in self.paused for row in self.project.rows) >= GOLD,
            can_ask=len(reports) < LIMIT,
            overlap=OVERLAP,
            n_requested=max(OVERLAP, len(reports)),
        )

    def _posteriors(self, traces: list[int]) -> dict[int, list[float]]:
        rows = [(trace, rater, end) for trace in traces for rater, end in self.votes[trace].items()]
        if self.fit is None or not rows:
            return {}
        reports, used = self._arrays(rows)
        rates = np.tile(self.fit.common, (RATERS, 1))
        rates[: len(self.fit.rates)] = self.fit.rates
        places, posterior = first_error_dawid_skene.compute_posterior(reports, rates=rates, hazards=self.fit.hazards)
        parts = np.split(posterior, places.starts[1:])
        return {trace: part.tolist() for trace, part in zip(used, parts, strict=True)}

    def _arrays(self, rows: list[tuple[int, int, int]]) -> tuple[ReportArrays, list[int]]:
        traces, raters, ends = np.array(rows).T
        used, index = np.unique(traces, return_inverse=True)
        positions = np.where(ends == self.project.lengths[traces], -1, ends)
        lengths = self.project.lengths[used]
        reports = first_error_reports.reports_from_positions(
            traces=index, raters=raters, positions=positions, lengths=lengths
        )
        return reports, used.tolist()

    def refresh(self) -> None:
        evidence = rater_protection.weigh_evidence(self.project.observe())
        for number in {n for n, each in enumerate(evidence) if each.is_overwhelming} - self.paused:
            self.paused.add(number)
            mine = [trace for trace in range(TRACES) if self.votes[trace].pop(number, None) is not None]
            self.n_set_aside += len(mine)
            self.settle(mine)
        if self.uses_model and self.n_labels >= max(100, 1.25 * self.n_fitted):
            self.n_fitted, is_first = self.n_labels, self.fit is None
            rows = [row for row in self.project.rows if row[1] not in self.paused]
            reports, used = self._arrays(rows)
            self.fit = first_error_dawid_skene.fit_reports(reports, possible=self._find_possible(reports, used))
            labeled = [trace for trace in range(TRACES) if self.votes[trace]]
            chances = self._posteriors(labeled)
            self.settle([trace for trace in labeled if is_first or self._is_doubtful(trace, chances[trace])])

    def _find_possible(self, reports: ReportArrays, used: list[int]) -> Bools:
        """Return which places can be the first error: the answers of gold are known."""
        places, traces = first_error_reports.enumerate_places(reports.lengths), np.array(used)
        is_gold = traces >= TRACES
        return np.asarray(~is_gold[places.traces] | (places.steps == self.project.truth[traces][places.traces]))

    def _is_doubtful(self, trace: int, chances: list[float]) -> bool:
        return trace not in self.settled or chances[self.settled[trace]] < redundancy.DOUBTFUL


def run_campaign(seed: int, *, uses_model: bool, is_clean: bool) -> tuple[float, float, float]:
    """Return the labels per trace, the share of settled traces that are wrong, and the share of traces without a
    result."""
    project = SimulatedProject.create(traces=TRACES, gold=90, error_shares=[0.67], overlap=OVERLAP, seed=seed)
    people = [protection.draw_honest(project.random) for _ in range(RATERS)]
    if not is_clean:
        people[:2] = [protection.ALL_POSITIVE, protection.FINDS_FEW]
    campaign, number, has_worked = SettledProject(project, uses_model), 0, True
    while has_worked or number % EVERY:
        number += 1
        order = [n for n in project.random.permutation(RATERS).tolist() if n not in campaign.paused]
        has_worked = sum(campaign.work(n, people[n]) for n in order) > 0  # everyone works
        if number % EVERY == 0:
            campaign.refresh()
    wrong = sum(end != project.truth[trace] for trace, end in campaign.settled.items())
    n_settled = len(campaign.settled)
    return campaign.n_labels / TRACES, wrong / n_settled, 1 - n_settled / TRACES


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    found = {}
    for uses_model in (False, True):
        for is_clean in (True, False):
            seeds = range(options.first_seed, options.first_seed + options.seeds)
            runs = np.array([run_campaign(seed, uses_model=uses_model, is_clean=is_clean) for seed in seeds])
            name = f"{'model' if uses_model else 'votes'}, {'clean' if is_clean else 'repaired'}"
            labels, wrong, unsettled = runs.mean(axis=0).round(4).tolist()
            worst = float(np.quantile(runs[:, 1], 0.9).round(4))
            found[name] = {"labels": labels, "wrong": wrong, "wrong, 90th percentile": worst, "unsettled": unsettled}
            print(f"{name:18} {found[name]}", flush=True)
    print(json.dumps({"bench": "settling", **found}))


if __name__ == "__main__":
    main()
