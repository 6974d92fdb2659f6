"""Labor costs of a project, and amounts in its currency."""

from decimal import Decimal

from labeling.models import Project
from labeling.projects.money import format_money


def compute_labor_cost(project: Project, active_ms: int) -> Decimal | None:
    """Return what active time costs at the current rate, or None if the project has no hourly rate."""
    if project.pay_per_hour is None:
        return None
    return project.pay_per_hour * Decimal(active_ms) / Decimal(3_600_000)


def format_amount(project: Project, amount: Decimal | float | None, places: int = 2) -> str:
    return format_money(amount, project.currency, places)
