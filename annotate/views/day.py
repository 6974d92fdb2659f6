"""The annotator's figures for today on the work page, and when it suggests a break."""

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts import users
from accounts.sessions import UserRequest
from annotate import work_summary
from formats import integers

BREAK_CHOICES = (0, 25, 50, 90)  # minutes; 0: never


@require_safe
@never_cache
def show_day(request: UserRequest) -> HttpResponse:
    """Render the figures; the work page reloads them after each submission."""
    return render(request, "annotate/day.html", {"today": work_summary.summarize_day(request.user, timezone.now())})


@require_POST
def set_break(request: UserRequest) -> HttpResponse:
    minutes = integers.parse_integer(request.POST.get("minutes"), digits=3)
    if minutes in BREAK_CHOICES:
        users.save_break_minutes(user=request.user, minutes=minutes)
    return redirect("annotate:home")
