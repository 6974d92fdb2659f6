"""The strings that the work page's scripts display, in Python so that they are translated like all others."""

from typing import Any, cast

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from annotate import keys
from labeling.models import Project
from labeling.projects import protocols


def _plural_forms(one: str, other: str) -> dict[str, str]:
    """Return the singular and plural forms; the script picks one and fills in {count}."""
    return {"one": ngettext(one, other, 1), "other": ngettext(one, other, 2)}


_ASSIGNMENT_URLS = ("record", "submit", "give_up", "report", "skip", "open", "reopen", "discard")
_PROJECT_URLS = ("claim", "release_held", "enter", "unread")


def work_page_config(request: HttpRequest, project: Project) -> dict[str, Any]:
    """Return the scripts' configuration. The 0 in assignment URLs is a placeholder for the assignment's ID."""
    urls = {name: reverse(f"annotate:{name}", args=[0]) for name in _ASSIGNMENT_URLS}
    urls |= {name: reverse(f"annotate:{name}", args=[project.slug]) for name in _PROJECT_URLS}
    return {
        "user": request.user.pk,
        "project": project.name,
        "strings": work_page_strings(),
        "urls": urls,
        "keys": {key: action for action, key in keys.load_keys(cast(User, request.user)).items() if key},
        "katex": {
            "css": static("vendor/katex-0.19.1/katex.min.css"),
            "js": static("vendor/katex-0.19.1/katex.min.js"),
        },
    }


def error_categories() -> list[tuple[str, str]]:
    return [
        ("reasoning", _("Wrong reasoning")),
        ("calculation", _("Calculation error")),
        ("misread", _("Misread the problem")),
        ("unsupported", _("Unsupported claim")),
        ("other", _("Other")),
    ]


def work_page_strings() -> dict[str, Any]:
    return {
        **_trace_strings(),
        **_submit_strings(),
        **_save_strings(),
        **_prompt_strings(),
        "memory_only": _memory_only_strings(),
    }


def _trace_strings() -> dict[str, Any]:
    return {
        "title": _("Rate a trace · {project}"),
        "problem": _("Problem"),
        "formula": _("Formula, scrolls sideways"),
        "reference_answer": _("Reference answer:"),
        "answer_right": _("The final answer is correct"),
        "answer_wrong": _("The final answer is incorrect"),
        "image": _("Image"),
        "step": _("step {number}"),
        "steps": _plural_forms("{count} step to rate", "{count} steps to rate"),
        "alternative": _("alternative {letter}"),
        "alternatives_to": _("Alternatives to step {number}"),
        "rating_of": _("Rating for {name}"),
        "rated_of": _("{count} of {total} steps rated"),
        "step_of": _("Step {number} of {total}"),
        "step_alternative": _("Step {number}, alternative {letter}"),
        "show_all": _("Show all {lines} lines ({size})"),
    }


def _submit_strings() -> dict[str, Any]:
    texts = protocols.submit_texts()
    return {
        **{f"submit_{code}": {"one": one, "other": other} for code, (one, other) in texts.items()},
        "first_negative": _("Step {number} is the first negative"),
        "nothing_to_undo": _("Nothing to undo"),
        "rating_null": _("not rated"),
        "rating_-1": _("negative"),
        "rating_0": _("neutral"),
        "rating_1": _("positive"),
        "lost": _("In another tab or device you chose {theirs}; here you chose {yours}."),
        "keep_rating": _("Keep {rating}"),
    }


def _save_strings() -> dict[str, Any]:
    return {
        "save_saved": _("All saved"),
        "save_saving": _plural_forms("Saving {count} rating", "Saving {count} ratings"),
        "save_waiting": _plural_forms("Offline. {count} rating saved here", "Offline. {count} ratings saved here"),
        "save_logged_out": _plural_forms(
            "Logged out. {count} rating saved here", "Logged out. {count} ratings saved here"
        ),
        "save_broken": _("This browser can't store ratings: {detail}"),
        "reclaimed": _("This trace was returned to the queue. You can still finish and submit it."),
        "logged_out": _("You're logged out. Your ratings are saved here. Log in to send them."),
        "offline": _(
            "You're offline. Your ratings are saved in this browser and will be sent when you're back online."
        ),
    }


def _memory_only_strings() -> dict[str, Any]:
    """Return replacements for strings of the same names, for browsers that cannot store ratings."""
    return {
        "save_saved": _("Saved on the server (this browser keeps no copy)"),
        "save_waiting": _plural_forms(
            "Offline. {count} rating unsent: keep this tab open", "Offline. {count} ratings unsent: keep this tab open"
        ),
        "save_logged_out": _plural_forms(
            "Logged out. {count} rating unsent: keep this tab open",
            "Logged out. {count} ratings unsent: keep this tab open",
        ),
        "logged_out": _("You're logged out. Keep this tab open and log in to send your ratings."),
        "offline": _("You're offline. Keep this tab open: your ratings will be sent when you're back online."),
    }


def _prompt_strings() -> dict[str, Any]:
    return {
        "ask_comment": _("Comment on this step"),
        "ask_skip": _("Why are you skipping this trace? It will go to someone else."),
        "ask_give_up": _("Why can't you finish? The ratings that you have made will be submitted."),
        "ask_report": _("What is wrong with the problem?"),
        "confirm_comment": _("Save comment"),
        "confirm_skip": _("Skip trace"),
        "confirm_give_up": _("Give up"),
        "confirm_report": _("Report problem"),
    }
