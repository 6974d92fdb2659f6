"""The words that the work page's scripts say. They stand here so that they are translated where all words are."""

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
    """Both forms, with {count} left in: the script knows the number, the catalogue the forms."""
    return {"one": ngettext(one, other, 1), "other": ngettext(one, other, 2)}


_ASSIGNMENT_URLS = ("record", "submit", "give_up", "report", "skip", "open", "reopen", "discard")
_PROJECT_URLS = ("claim", "release_held", "enter", "unread")


def work_page_config(request: HttpRequest, project: Project) -> dict[str, Any]:
    """All that the scripts need to know of this person and project. The nought in a URL stands for the assignment."""
    urls = {name: reverse(f"annotate:{name}", args=[0]) for name in _ASSIGNMENT_URLS}
    urls |= {name: reverse(f"annotate:{name}", args=[project.slug]) for name in _PROJECT_URLS}
    return {
        "user": request.user.pk,
        "project": project.name,
        "words": work_page_strings(),
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
        ("calculation", _("Calculation")),
        ("misread", _("Misread the problem")),
        ("unsupported", _("Unsupported claim")),
        ("other", _("Something else")),
    ]


def work_page_strings() -> dict[str, Any]:
    return {
        **_trace_strings(),
        **_submit_strings(),
        **_save_strings(),
        **_prompt_strings(),
        "without_store": _memory_only_strings(),
    }


def _trace_strings() -> dict[str, Any]:
    return {
        "title": _("Rate a trace · {project}"),
        "problem": _("Problem"),
        "formula": _("Formula, scrolls sideways"),
        "reference_answer": _("Reference answer:"),
        "answer_right": _("The final answer is right"),
        "answer_wrong": _("The final answer is wrong"),
        "image": _("Image"),
        "step": _("step {number}"),
        "steps": _plural_forms("{count} step to rate", "{count} steps to rate"),
        "alternative": _("alternative {letter}"),
        "alternatives_to": _("Alternatives to step {number}"),
        "rating_of": _("Rating of {name}"),
        "rated_of": _("{count} of {total} steps rated"),
        "step_of": _("Step {number} of {total}"),
        "step_alternative": _("Step {number}, alternative {letter}"),
        "show_all": _("Show all: {lines} lines, {size}"),
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
        "lost": _("Another tab or device says {theirs}. You said {yours} here."),
    }


def _save_strings() -> dict[str, Any]:
    return {
        "save_saved": _("All saved"),
        "save_saving": _plural_forms("Saving {count} rating", "Saving {count} ratings"),
        "save_waiting": _plural_forms(
            "{count} rating waiting for the network", "{count} ratings waiting for the network"
        ),
        "save_logged_out": _plural_forms(
            "Logged out. {count} rating is kept here", "Logged out. {count} ratings are kept here"
        ),
        "save_broken": _("This browser refuses to store ratings: {detail}"),
        "went_back": _("This trace went back to the queue. You may finish it all the same: what you submit is kept."),
        "no_network": _("No network, and no trace was fetched ahead. What you rated is kept in this browser."),
    }


def _memory_only_strings() -> dict[str, Any]:
    """Instead of the words of the same names, where the browser keeps nothing for this page."""
    return {
        "save_saved": _("All saved, on the server only"),
        "save_waiting": _plural_forms(
            "{count} rating waiting for the network: leave this tab open",
            "{count} ratings waiting for the network: leave this tab open",
        ),
        "save_logged_out": _plural_forms(
            "Logged out. {count} rating is kept in this tab alone",
            "Logged out. {count} ratings are kept in this tab alone",
        ),
        "no_network": _(
            "No network, and no trace was fetched ahead. What you rated is kept by this tab: leave it open."
        ),
    }


def _prompt_strings() -> dict[str, Any]:
    return {
        "ask_comment": _("Comment on this step"),
        "ask_skip": _("Why do you skip this trace? It goes back to the queue."),
        "ask_give_up": _("What keeps you from finishing? Your ratings are kept."),
        "ask_report": _("What is wrong with the problem?"),
    }
