"""Measure for how many honest raters each flag is raised: `python -m bench.flags [--seeds 100] [--crowds 3]`.

The raters are the honest ones of `bench.protection`: eight in each campaign, 100 in each crowd. The flags are those of
the platform's own functions, at the end of the work. In addition, each rater here

    rates steps before the first error as neutral, with a probability of the rater's own between 0.02 and 0.15
    works in sessions of two hours with a break of one, and does not tire

Labels are compared with the majority of the other raters of a trace, if it is not tied. The gold threshold is the
project's own. All submissions are read; the platform reads the latest 2,000. `labeling.quality.signals.FALSE_FLAGS` has
the result, and pages show it beside each flag.
"""

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

import bench.configured_django  # noqa: F401  before modules that read settings
from bench import protection
from bench.protection import SimulatedProject
from dashboard import annotator_summaries
from dashboard.annotator_summaries import ShareOfCases
from labeling.quality import signals
from labeling.quality.signals import SubmissionRow
from stats import intervals, label_votes, rater_signals, sequential_tests

SESSION_SECONDS, BREAK_SECONDS = 7200, 3600


def list_raised_flags(project: SimulatedProject, n_raters: int, seed: int) -> list[set[str]]:
    """Return the flags of each rater."""
    found = signals.assess_submissions(_list_submissions(project, n_raters, seed), _list_times(project))
    shares = _compare_with_others(project)
    answers = [(rater, end == project.truth[trace]) for trace, rater, end in project.rows if _is_gold(project, trace)]
    baseline = sequential_tests.baseline_accuracy(
        raters=[rater for rater, _right in answers], right=[bool(right) for _rater, right in answers]
    )
    threshold = baseline if isinstance(baseline, float) else None
    raised = []
    for rater in range(n_raters):
        gold = Counter(bool(right) for each, right in answers if each == rater)
        flags = annotator_summaries.list_flags(
            signals=[],
            missed=_share(shares[rater]["missed"], shares[rater].total()),
            blamed=_share(shares[rater]["blamed"], shares[rater].total()),
            gold=_share(gold[True], gold.total()),
            threshold=threshold,
        )
        raised.append({flag.key for flag in flags} | set(signals.list_raised_kinds(found.get(rater, {}))))
    return raised


def run_campaign(seed: int) -> tuple[SimulatedProject, int]:
    """Return a campaign after the work of honest raters, and how many they are."""
    project = SimulatedProject.create(traces=398, gold=90, error_shares=[0.67], overlap=2, seed=seed)
    people = [protection.draw_honest(project.random) for _ in range(8)]
    protection.run_project(project, people, rounds=120, every=1000)
    return project, len(people)


def run_crowd(seed: int) -> tuple[SimulatedProject, int]:
    project = SimulatedProject.create(traces=20_000, gold=120, error_shares=[0.2, 0.4, 0.6, 0.8], overlap=2, seed=seed)
    people = [protection.draw_honest(project.random, is_varied=True) for _ in range(100)]
    protection.run_project(project, people, rounds=400, every=1000)
    return project, len(people)


def _is_gold(project: SimulatedProject, trace: int) -> bool:
    return trace >= len(project.lengths) - project.n_gold


def _share(part: int, n: int) -> ShareOfCases:
    if not n:
        return ShareOfCases(None, None, None, 0)
    interval = intervals.wilson_interval(right=part, n=n)
    return ShareOfCases(part / n, interval.low, interval.high, n)


def _list_submissions(project: SimulatedProject, n_raters: int, seed: int) -> Iterator[SubmissionRow]:
    random = np.random.default_rng([seed, 2])
    neutral = random.uniform(0.02, 0.15, n_raters)
    for number, (trace, rater, end) in enumerate(project.rows):
        if not _is_gold(project, trace):
            words, ms = project.words[number], 1000 * project.seconds[number]
            has_error = end < project.lengths[trace]
            is_unread = (ms < signals.UNREAD_MS) | (ms < signals.UNREAD_WORD_MS * words)
            yield SubmissionRow(
                assignment_id=number,
                rater_id=rater,
                first_error=int(end) if has_error else None,
                steps=len(words),
                fast=int((ms < rater_signals.FAST_MS).sum()),
                unread=int(is_unread.sum()),
                neutral=int(random.binomial(len(words) - has_error, neutral[rater])),
                ms=int(ms.sum()),
                words=int(words.sum()),
            )


def _list_times(project: SimulatedProject) -> list[tuple[int, float, str | None]]:
    """Return (rater, time, verdict on hidden gold or None) of all submissions, by rater and time."""
    rows, clocks, began = [], defaultdict[int, float](float), defaultdict[int, float](float)
    for number, (trace, rater, end) in enumerate(project.rows):
        clocks[rater] += float(project.seconds[number].sum())
        if clocks[rater] - began[rater] > SESSION_SECONDS:
            clocks[rater] += BREAK_SECONDS
            began[rater] = clocks[rater]
        verdict = "right" if end == project.truth[trace] else "missed"
        rows.append((rater, clocks[rater], verdict if _is_gold(project, trace) else None))
    return sorted(rows, key=lambda row: row[:2])


def _compare_with_others(project: SimulatedProject) -> dict[int, Counter[str]]:
    """Compare each report with the majority of the others on settled traces."""
    by_trace: dict[int, dict[int, int]] = defaultdict(dict)
    for trace, rater, end in project.rows:
        if not _is_gold(project, trace):
            by_trace[trace][rater] = end
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for reports in by_trace.values():
        place = label_votes.find_leading_place(list(reports.values()))
        if len(reports) < project.overlap or place is None or 2 * place.n <= place.n_votes:
            continue  # not settled
        for rater, end in reports.items():
            others = label_votes.find_leading_place([other for each, other in reports.items() if each != rater])
            if others is not None and others.place is not None and not others.is_tied:
                is_missed = end > others.place
                counts[rater]["right" if end == others.place else "missed" if is_missed else "blamed"] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--crowds", type=int, default=3)
    options = parser.parse_args()
    began = time.process_time()
    counts, n = Counter[str](), 0
    for seed in range(options.seeds):
        n += _add_flags(counts, list_raised_flags(*run_campaign(seed), seed))
    print(f"{n} raters of campaigns", dict(counts))
    for seed in range(options.crowds):
        n += _add_flags(counts, list_raised_flags(*run_crowd(seed), seed))
    seconds = round(time.process_time() - began)
    print(json.dumps({"honest": n, "flagged": dict(counts), "processor_seconds": seconds}))


def _add_flags(counts: Counter[str], raised: list[set[str]]) -> int:
    counts.update(flag for own in raised for flag in own)
    counts["any"] += sum(bool(own) for own in raised)
    return len(raised)


if __name__ == "__main__":
    main()
