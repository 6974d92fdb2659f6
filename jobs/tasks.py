"""The periodic tasks that sweep jobs and keep the planner's statistics current."""

from celery import shared_task
from django.utils import timezone

from jobs import control
from jobs.scheduler import register_work_check
from rawsql import planner_statistics


@shared_task(name="jobs.sweep")
def sweep() -> None:
    control.sweep_jobs(now=timezone.now())


register_work_check("jobs.sweep", "EXISTS (SELECT FROM jobs_job WHERE state IN ('queued', 'running'))")


@shared_task(name="jobs.analyze_grown_tables")
def analyze_grown_tables() -> None:
    """Analyze tables that grew by half, however they grew: autovacuum may be slow or off."""
    planner_statistics.analyze_changed_tables(growth=planner_statistics.GROWTH)


register_work_check("jobs.analyze_grown_tables", planner_statistics.HAS_GROWN_TABLES)
