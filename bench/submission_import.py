"""Run a bulk import beside the raters of `bench.submission`, through the loader and the runner of every import."""

import datetime as dt
import json
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

STEPS = 12


def main() -> None:
    seconds = float(sys.argv[1])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from django.utils import timezone

    from jobs import control, runner
    from jobs.models import Job

    job = control.request_job(kind="bench.import_speed", by=None, now=timezone.now())
    began = time.monotonic()
    runner.run_job(job.pk, partial(_chunks, until=began + seconds))
    done = Job.objects.get(pk=job.pk).done
    print(json.dumps({"steps_per_second": round(done * STEPS / (time.monotonic() - began))}))


def _chunks(job: Any, *, until: float) -> Iterator[Any]:
    from django.utils import timezone

    from jobs.runner import JobProgress
    from labeling.models import Source
    from labeling.traces import load
    from labeling.traces.import_job import CHUNK_RECORDS
    from tests import factories

    project, now = factories.make_project("imported"), timezone.now()
    source = Source.objects.create(project=project, name="bench", format="native", added_at=now)
    state = load.LoadState(project=project, source=source)

    def write(records: list[Any], done: int, now: dt.datetime) -> JobProgress:
        load.load_chunk(state=state, records=records, now=now)
        return JobProgress(done)

    done = 0
    while time.monotonic() < until:
        records = [_record(number) for number in range(done, done + CHUNK_RECORDS)]
        done += len(records)
        yield partial(write, records, done)


def _record(number: int) -> Any:
    from formats.records import OptionRecord, ProblemRecord, StepRecord, TraceRecord

    steps = [
        StepRecord([OptionRecord(f"Step {at}: so $x = {number}$, and both sides stay equal. " * 2)])
        for at in range(STEPS)
    ]
    return TraceRecord(ProblemRecord(f"What is {number} + 1?", answer=f"{number + 1}"), steps, line=number + 1)


if __name__ == "__main__":
    main()
