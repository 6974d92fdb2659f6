"""Concurrent raters who also skip, abandon, submit late and release traces. The queue benchmark and the test that every
trace gets exactly its number of labels use them."""

import datetime as dt
import multiprocessing
import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connections, transaction
from django.db.models import Count, Q, Sum

from labeling import queue
from labeling.models import Assignment, Lane, Problem, Project, QueueEntry, Rater, Trace

START = dt.datetime(2026, 1, 5, 9, 0, tzinfo=dt.UTC)
TIMEOUT_SECONDS = 60.0
# The outcomes of an assignment, with their shares; all others are submitted.
SKIPPED, ABANDONED, LATE, CLOSED = 0.04, 0.03, 0.02, 0.03


@dataclass
class ClaimerResult:
    """The actions and errors of one rater."""

    counts: Counter[str] = field(default_factory=Counter)
    waits: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def set_up_project(*, n_traces: int, n_raters: int, overlap: int) -> Project:
    """Create a project with this many traces in its uniform lane."""
    project = Project.objects.create(
        slug=f"crowd-{Project.objects.count()}", name="crowd", created_at=START, overlap=overlap
    )
    problem = Problem.objects.create(project=project, text="1 + 1?", digest="1", normal_digest="1")
    traces = Trace.objects.bulk_create(
        Trace(project=project, problem=problem, digest=str(number), n_steps=1, added_at=START)
        for number in range(n_traces)
    )
    ids = list(Trace.objects.filter(project=project).values_list("pk", flat=True)) if traces else []
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=ids, slots=overlap, now=START)
    Rater.objects.bulk_create(
        Rater(project=project, kind="imported", labeler=f"rater {number}", added_at=START) for number in range(n_raters)
    )
    return project


def run_in_threads(rater_ids: Iterable[int], seed: int) -> list[ClaimerResult]:
    """Run each rater in a thread with its own connection."""
    results: list[ClaimerResult] = []
    threads = [threading.Thread(target=_run_claimer, args=(pk, seed, results)) for pk in rater_ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def run_in_processes(rater_ids: Iterable[int], seed: int) -> list[ClaimerResult]:
    """Run each rater in a forked process. Close connections first, so that none is inherited."""
    connections.close_all()
    fork = multiprocessing.get_context("fork")
    answers = fork.SimpleQueue()
    processes = [fork.Process(target=_answer, args=(pk, seed, answers)) for pk in rater_ids]
    for process in processes:
        process.start()
    results = [answers.get() for _ in processes]
    for process in processes:
        process.join()
    return results


def _answer(rater_id: int, seed: int, answers: Any) -> None:
    results: list[ClaimerResult] = []
    _run_claimer(rater_id, seed, results)
    answers.put(results[0])


def _run_claimer(rater_id: int, seed: int, results: list[ClaimerResult]) -> None:
    mine = ClaimerResult()
    try:
        _rate_everything(rater_id, random.Random(f"{seed} {rater_id}"), mine)
    except Exception:  # noqa: BLE001  any error is part of the result
        mine.errors.append(traceback.format_exc())
    finally:
        results.append(mine)
        connections.close_all()


def _rate_everything(rater_id: int, chance: random.Random, result: ClaimerResult) -> None:
    """Claim until the queue is empty. While other raters have open assignments, wait: a trace may be released."""
    began = time.monotonic()
    while time.monotonic() - began < TIMEOUT_SECONDS:
        now = START + dt.timedelta(seconds=time.monotonic())
        try:
            before = time.perf_counter()
            claim = queue.claim_trace(rater_id=rater_id, now=now, opened=chance.random() < 0.8)
            result.waits.append(time.perf_counter() - before)
        except queue.NothingLeft as refusal:
            if refusal.free_at is None:
                return
            result.counts["waited"] += 1
            time.sleep(0.02)
            continue
        result.counts[_act_on_claim(claim, rater_id, chance, now)] += 1
    result.errors.append(f"rater {rater_id} is still claiming after {TIMEOUT_SECONDS} s")


def _act_on_claim(claim: queue.Claim, rater_id: int, chance: random.Random, now: dt.datetime) -> str:
    fate = chance.random()
    if claim.state == "held":
        if fate < CLOSED * 5:
            queue.release_held(rater_id=rater_id, now=now, reason="page closed", by=None)
            return "closed"
        queue.open_assignment(assignment_id=claim.assignment_id, rater_id=rater_id, now=now)
    if fate < SKIPPED:
        queue.release_assignment(assignment_id=claim.assignment_id, now=now, reason="skipped", by=None)
        return "skipped"
    if fate < SKIPPED + ABANDONED + LATE:
        _walk_away(claim.assignment_id, now)
        return submit_assignment(claim.assignment_id, now) if fate < SKIPPED + LATE else "left"
    return submit_assignment(claim.assignment_id, now)


def _walk_away(assignment_id: int, now: dt.datetime) -> None:
    """Expire the lease; the next claim or sweep releases the slot."""
    Assignment.objects.filter(pk=assignment_id, state="opened").update(lease_ends_at=now)
    queue.lapse_expired_leases(now=now)


def submit_assignment(assignment_id: int, now: dt.datetime) -> str:
    """Submit with one statement as the product does, unless the assignment has expired."""
    done = {"state": "submitted", "submitted_at": now, "submitted_revision": 1, "finish_reason": "solution"}
    if Assignment.objects.filter(pk=assignment_id, state="opened").update(**done):
        return "submitted"
    return submit_late(assignment_id, done, now)


def submit_late(assignment_id: int, done: dict[str, Any], now: dt.datetime) -> str:
    """Submit with the row locked, and take a slot again if one is free."""
    with transaction.atomic():
        list(Assignment.objects.select_for_update(no_key=True).filter(pk=assignment_id))
        population = queue.take_late_slot(assignment_id=assignment_id, now=now)
        done |= {"holds_slot": population is not None, "population": population or "extra"}
        Assignment.objects.filter(pk=assignment_id).update(**done)
    return "late" if population else "extra"


def find_violations(project: Project, overlap: int) -> dict[str, int]:
    """Count the violations of each invariant."""
    counted = Trace.objects.filter(project=project).annotate(
        n_scheduled=Count("assignments", filter=Q(assignments__holds_slot=True, assignments__state="submitted"))
    )
    pairs = Assignment.objects.filter(project=project, state="submitted").values("rater", "trace")
    left = QueueEntry.objects.filter(lane__project=project).aggregate(left=Sum("slots_left"))["left"]
    return {
        "too few": counted.filter(n_scheduled__lt=overlap).count(),
        "too many": counted.filter(n_scheduled__gt=overlap).count(),
        "twice": pairs.annotate(times=Count("pk")).filter(times__gt=1).count(),
        "slots left": left or 0,
        "still open": Assignment.objects.filter(project=project, state__in=["held", "opened"]).count(),
        "lanes": Lane.objects.filter(project=project).exclude(arm__in=["uniform", "top_up"]).count(),
    }


def merge_results(results: Sequence[ClaimerResult]) -> ClaimerResult:
    """Add up the results of all raters."""
    whole = ClaimerResult()
    for each in results:
        whole.counts += each.counts
        whole.waits += each.waits
        whole.errors += each.errors
    return whole
