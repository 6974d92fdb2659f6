"""Measure setting aside all labels of one rater in a large project, and undoing it:
`python -m bench.set_aside [--traces N]`.

The project has 100,000 traces, each labeled twice by 40 raters, so a rater has 5,000 labels. Hidden gold confirms its
rater model, so the model settles traces. It measures the preview, the job, its longest chunk (which keeps submits of
its traces waiting), the statistics afterward, and the fit that follows, which looks for doubtful traces. It also checks
what readers then see: the consensus, the rows of a snapshot, and the pay. Times are wall time, and processor time of
this process and its PostgreSQL backend together; the targets are for processor time.
"""

import argparse
import datetime as dt
import time
from collections.abc import Callable
from typing import Any

from bench import databases, harness

MOST_SECONDS_A_JOB, MOST_SECONDS_A_PREVIEW, MOST_MS_A_CHUNK = 15.0, 2.0, 500.0  # of the processor
_STEPS = 8  # as in project_stats_fill
_LAST = "CASE WHEN t.id % 5 = 0 THEN 3 ELSE 7 END"
_STATEMENTS = (
    "INSERT INTO labeling_step (trace_id, position, kind, is_rateable, separator, agent)"
    f" SELECT t.id, p, 'reasoning', true, '', '' FROM labeling_trace t, generate_series(0, {_STEPS - 1}) p",
    "INSERT INTO labeling_option (step_id, position, origin, text) SELECT id, 0, 'model', 'One.' FROM labeling_step",
    "INSERT INTO labeling_stepreview (assignment_id, revision, step_id, comment, active_ms)"
    f" SELECT a.id, 1, s.id, '', 4000 FROM labeling_assignment a JOIN labeling_trace t ON t.id = a.trace_id"
    f" JOIN labeling_step s ON s.trace_id = t.id AND s.position <= {_LAST}",
    "INSERT INTO labeling_judgment (turn_id, option_id, rating, category, reason)"
    " SELECT u.id, o.id, CASE WHEN s.position = 3 AND s.trace_id % 5 = 0 THEN -1 ELSE 1 END, '', ''"
    " FROM labeling_stepreview u JOIN labeling_step s ON s.id = u.step_id JOIN labeling_option o ON o.step_id = s.id",
    "INSERT INTO labeling_lane (project_id, arm, generation) SELECT id, 'uniform', 0 FROM labeling_project",
    "INSERT INTO labeling_queueentry (lane_id, trace_id, key, slots, slots_left)"
    " SELECT l.id, t.id, t.id, 2, 0 FROM labeling_lane l, labeling_trace t",
    "UPDATE labeling_project SET pay_per_hour = 20",
    # Hidden gold: the first 60 traces with an error, and the first 60 contested ones, which have none.
    "CREATE TEMP TABLE gold_trace AS SELECT id FROM labeling_trace WHERE id <= 600 AND id % 10 IN (0, 1)",
    *(
        f"DELETE FROM labeling_{table} WHERE trace_id IN (SELECT id FROM gold_trace)"
        for table in ("settlement", "consensus", "firsterrorreport", "agreementtally", "queueentry")
    ),
    "UPDATE labeling_assignment SET purpose = 'gold' WHERE trace_id IN (SELECT id FROM gold_trace)",
    "INSERT INTO labeling_gold (trace_id, use, accepted_first_errors, explanation, made_at)"
    " SELECT id, 'hidden', CASE WHEN id % 5 = 0 THEN '[3]' ELSE '[null]' END::jsonb, '', now() FROM gold_trace",
    "INSERT INTO labeling_goldanswer (assignment_id, gold_id, project_id, rater_id, use, attempt, first_error, verdict,"
    " answered_at) SELECT a.id, g.id, a.project_id, a.rater_id, 'hidden', 1, CASE WHEN a.trace_id % 5 = 0 THEN 3 END,"
    " 'right', a.submitted_at FROM labeling_gold g JOIN labeling_assignment a ON a.trace_id = g.trace_id",
    "ANALYZE",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=int, default=100_000)
    options = parser.parse_args()
    with databases.temporary_databases(["set_aside"]) as made:
        databases.use_database(made["set_aside"])
        found = _measure(options.traces)
    for name, value in found.items():
        print(f"{name:<28} {value}")
    passed = (
        max(found["set aside, processor s"], found["undo, processor s"]) <= MOST_SECONDS_A_JOB
        and found["preview, processor s"] <= MOST_SECONDS_A_PREVIEW
        and found["longest chunk, processor ms"] <= MOST_MS_A_CHUNK
        and found["is as before"]
    )
    print(harness.last_json_line({"bench": "set_aside", "passed": passed, **found}))


def _measure(n_traces: int) -> dict[str, Any]:
    from django.db import connection

    from bench import project_stats_fill
    from labeling.models import Project, Rater
    from labeling.quality import project_stats, rater_model, set_aside, settlements
    from labeling.quality.set_aside import LabelScope

    project = Project.objects.get(pk=project_stats_fill.fill_database(n_traces))
    with connection.cursor() as cursor:
        for statement in _STATEMENTS:
            cursor.execute(statement)
    now = project_stats_fill.START + dt.timedelta(days=project_stats_fill.DAYS)
    settlements.apply_drift(project_id=project.pk, drift=settlements.compute_drift(project_id=project.pk))
    project_stats.compute_project_stats(project_id=project.pk, now=now)
    fit = rater_model.fit_raters(project_id=project.pk, now=now)
    assert fit is not None
    assert fit.settles_traces
    rater = Rater.objects.order_by("pk")[0]
    scope = LabelScope(rater.pk, now)
    before = _read(project)
    found: dict[str, Any] = {"traces": n_traces, "labels": set_aside.select_labels(scope).count()}
    impact = _time(found, "preview", lambda: set_aside.measure_impact(project=project, scope=scope))
    made = set_aside.set_aside_labels(project=project, scope=scope, reason="x", by=None, now=now)
    _time(found, "set aside", lambda: _run_job(now, found))
    _time(found, "figures", lambda: project_stats.compute_project_stats(project_id=project.pk, now=now))
    _time(found, "fit", lambda: _run_fit(now))
    after = _read(project)
    found |= {"to collect again": impact.n_missing}
    found |= {f"{name}, after": value for name, value in after.items()} | {
        f"{name}, before": before[name] for name in before
    }
    set_aside.undo_set_aside(set_aside=made, by=None, now=now)
    _time(found, "undo", lambda: _run_job(now, found))
    found["is as before"] = _read(project) == before
    return found


def _read(project: Any) -> dict[str, Any]:
    """Return what readers see: the consensus, the rows of a snapshot, and the pay."""
    from labeling.datasets import selection
    from labeling.datasets.selection import ManifestFilters
    from labeling.quality import consensus, workdays

    rows = selection.annotate_exclusion_reason(
        selection.select_rows(project, ManifestFilters()), selection.choice_rules(ManifestFilters())
    )
    return {
        "consensus": consensus.current_revisions(project_id=project.pk).count(),
        "exported rows": rows.filter(reason=None).count(),
        "paid ms": sum(paid for _active, paid in workdays.sum_time_by_rater(project.pk).values()),
    }


def _run_job(now: dt.datetime, found: dict[str, Any]) -> None:
    """Run the newest job as the runner does, and note its longest chunk."""
    from django.db import transaction

    from jobs.models import Job
    from labeling.quality import set_aside

    job = Job.objects.filter(kind=set_aside.KIND).latest("pk")
    for chunk in set_aside.chunks(job):
        began, used = time.perf_counter(), _processor_seconds()
        with transaction.atomic():
            progress = chunk(now)
        job.done, job.checkpoint = progress.done, dict(progress.checkpoint or job.checkpoint)
        times = {"": time.perf_counter() - began, "processor ": _processor_seconds() - used}
        for name, seconds in times.items():
            key = f"longest chunk, {name}ms"
            found[key] = max(found.get(key, 0), round(1000 * seconds))


def _run_fit(now: dt.datetime) -> None:
    """Run the fit that the job requested."""
    from jobs import runner
    from jobs.models import Job
    from labeling.quality import rater_model

    job = Job.objects.unfinished().get(kind=rater_model.KIND)
    assert runner.run_job(job.pk, rater_model.chunks, clock=lambda: now) == "done"


def _time(found: dict[str, Any], name: str, run: Callable[[], Any]) -> Any:
    began, used = time.perf_counter(), _processor_seconds()
    result = run()
    found[f"{name}, s"] = round(time.perf_counter() - began, 2)
    found[f"{name}, processor s"] = round(_processor_seconds() - used, 2)
    return result


def _processor_seconds() -> float:
    """Return the processor time of this process and its backend so far."""
    from django.db import connection

    connection.ensure_connection()
    return time.process_time() + harness.processor_seconds(connection.connection.info.backend_pid)


if __name__ == "__main__":
    main()
