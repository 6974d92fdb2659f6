"""The data that the work page's scripts receive: their configuration, the strings that they display, and traces.

Strings are in Python so that they are translated like all others. A trace comes without gold, sampling source, scores
or other raters' labels."""

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

import orjson
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

import rawsql
from accounts.models import User
from annotate import keys
from formats import images
from labeling import assignments, gold_sets
from labeling.models import Assignment, Judgment, OptionPart, Rater, StepReview, Submission, TraceAnswer
from labeling.models.assignment import AssignmentPurpose, AssignmentState, FinishReason
from labeling.models.trace import StepKind
from labeling.projects import protocols, visibility
from labeling.projects.clauses import Clause

_ASSIGNMENT_URLS = (
    *("record", "submit", "give_up", "report", "skip", "open", "reopen", "discard", "content", "submitted_one"),
    *("keep", "questions"),
)
# Characters that change the order in which a text is displayed. With them, a trace could show its rater another order
# of words or code than the one that the model wrote. Marks that every text in a right-to-left script needs (such as
# U+200F) have no such effect.
_DIRECTION_OVERRIDES = re.compile("[\u202a-\u202e\u2066-\u2069]")
_NEWS_SQL = rawsql.load_sql(__file__, "news.sql")
_PROJECT_URLS = ("claim", "release_held", "enter", "unread", "guide")


def build_config(user: User, rater: Rater, *, now: dt.datetime) -> dict[str, Any]:
    """Return the scripts' configuration. The 0 in assignment URLs is a placeholder for the assignment's ID."""
    project = rater.project
    urls = {name: reverse(f"annotate:{name}", args=[0]) for name in _ASSIGNMENT_URLS}
    urls |= {name: reverse(f"annotate:{name}", args=[project.slug]) for name in _PROJECT_URLS}
    return {
        "user": user.pk,
        "project": project.name,
        "strings": {
            **_trace_strings(),
            **_submit_strings(),
            **_undo_strings(),
            **_save_strings(),
            **_prompt_strings(),
            **_panel_strings(),
            **_day_strings(),
            **_reader_strings(),
            **(_question_strings() if project.trace_questions else {}),
            **(_evidence_strings() if project.asks_evidence else {}),
            **(_omission_strings() if project.asks_omissions else {}),
            **(_clause_strings() if project.asks_clauses else {}),
            "memory_only": _memory_only_strings(),
        },
        "urls": urls | {"day": reverse("annotate:day")},
        "news": describe_news(rater.pk),
        "lease_seconds": project.lease_seconds,
        "break_minutes": user.break_minutes,
        "skips_left": assignments.count_skips_left(rater_id=rater.pk, project=project, now=now),
        "shortcuts": keys.load_mode(user),
        "keys": {key: action for action, key in keys.load_keys(user).items() if key},
        "katex": {name: static(f"vendor/katex-0.19.1/katex.min.{name}") for name in ("css", "js")},
    }


def _plural_forms(one: str, other: str) -> dict[str, str]:
    """Return the singular and plural forms; the script picks one and fills in {count}."""
    return {"one": ngettext(one, other, 1), "other": ngettext(one, other, 2)}


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
        "show_less": _("Show less"),
        "folded_lines": _plural_forms("{count} more line", "{count} more lines"),
    }


def _submit_strings() -> dict[str, Any]:
    texts = protocols.submit_texts()
    return {
        **{f"submit_{code}": {"one": one, "other": other} for code, (one, other) in texts.items()},
        "first_negative": _("Step {number} is the first negative step"),
        "link_": _("Step {number} depends on the error"),
        "link_recovers": _("Step {number} recovers from the error"),
        "link_independent": _("Step {number} does not depend on the error"),
        "no_link": _("No step before step {number} has an error to recover from."),
        "out_of_sight": _("Step {number} was off screen. Press the key again to rate it."),
        "unsure_on": _("Unsure: step {number}"),
        "unsure_off": _("No longer unsure: step {number}"),
        "submitted_first_error": _("Submitted: first error at step {number}"),
        "submitted_no_error": _("Submitted: no error found"),
        "submitted_all_rated": _("Submitted: all steps rated"),
        "submitted_elsewhere": _(
            "You submitted this trace at {time} in another tab or on another device. Ratings you make"
            " here will not change that submission."
        ),
        "submit_unchanged": _("Nothing changed yet"),
        "unchanged": _("Nothing has changed. Change a rating, or cancel the correction."),
        "no_skip": _("This trace can’t be skipped."),
        "no_reason": _("Write a reason first."),
        "rating_null": _("not rated"),
        "rating_-1": _("negative"),
        "rating_0": _("neutral"),
        "rating_1": _("positive"),
        "lost": _("You chose {theirs} in another tab or on another device, but {yours} here."),
        "keep_rating": _("Keep {rating}"),
        "replaced_reason": _(
            "Your reason for step {number} was overwritten in another tab or on another device. The "
            "overwritten text: “{text}”"
        ),
        "replaced_comment": _(
            "Your comment on step {number} was overwritten in another tab or on another device. The "
            "overwritten text: “{text}”"
        ),
        "replaced_write_step": _(
            "Your corrected step {number} was overwritten in another tab or on another device. The "
            "overwritten text: “{text}”"
        ),
    }


def _undo_strings() -> dict[str, Any]:
    return {
        "undo": _("Undo"),
        "undo_submit": _("Undo submit"),
        "nothing_to_undo": _("Nothing to undo"),
        "nothing_to_edit": _("No traces submitted in this tab yet"),
        "undone_rating": _("Undone: step {number} is {rating} again"),
        "undone_flagged": _("Undone: unsure mark, step {number}"),
        "undone_category": _("Undone: kind of error, step {number}"),
        "undone_severity": _("Undone: severity, step {number}"),
        "undone_error_link": _("Undone: recovery mark, step {number}"),
        "undone_reason": _("Undone: reason, step {number}"),
        "undone_comment": _("Undone: comment, step {number}"),
        "undone_write_step": _("Undone: corrected step {number}"),
    }


def _save_strings() -> dict[str, Any]:
    return {
        "save_saved": _("All saved"),
        "save_draft": _("Draft kept in this browser"),
        "save_saving": _plural_forms("Saving {count} rating", "Saving {count} ratings"),
        "save_gathered": _("Saved here"),
        "save_waiting": _plural_forms("Offline. {count} rating saved here", "Offline. {count} ratings saved here"),
        "save_logged_out": _plural_forms(
            "Logged out. {count} rating saved here", "Logged out. {count} ratings saved here"
        ),
        "save_limited": _plural_forms(
            "Too many changes at once. {count} rating saved here, will be sent later",
            "Too many changes at once. {count} ratings saved here, will be sent later",
        ),
        "save_waiting_none": _("Offline. The rest will be sent when you’re back online"),
        "save_logged_out_none": _("Logged out. Log in to send the rest"),
        "title_offline": _("You’re offline"),
        "title_logged_out": _("You’re logged out"),
        "save_broken": _("This browser can’t store ratings: {detail}"),
        "reclaimed": _("This trace was returned to the queue. You can still finish and submit it."),
        "logged_out": _("You’re logged out. Your ratings are saved here. Log in to send them."),
        "offline": _(
            "You’re offline. Your ratings are saved in this browser and will be sent when you’re back online."
        ),
    }


def _reader_strings() -> dict[str, Any]:
    """Return the texts of the tools for reading a trace, and of the announcements for screen readers."""
    return {
        "subagent": _("Subagent {name}"),
        "told_step": _("Step {number}"),
        "told_rating": _("{name}: {rating}."),
        "found": _("{number} of {total}"),
        "enlarge": _("Enlarge"),
        "no_image": _("No image is shown here."),
        "found_none": _("Not found"),
        "go_to": _("Go to step (1 to {total})"),
        "no_such_step": _("The trace has {total} steps."),
        "not_revealed": _("This step is not revealed yet."),
        "nothing_folded": _("There is no output to open or close here."),
        "no_alternatives": _("No alternatives are shown here."),
        "copied": _("Copied: step {number}"),
        "not_copied": _("Your browser blocked copying. Select the text and copy it yourself."),
        "not_loaded": _("This could not be loaded. Check your connection and try again."),
    }


def _evidence_strings() -> dict[str, str]:
    """Return the texts of quotes of a negative step."""
    return {
        "evidence": _("Quotes that show the error (optional)"),
        "evidence_hint": _("Select text in the step and press {key}, or type it here and press Enter."),
        "evidence_added": _("Quoted: step {number}"),
        "evidence_none": _("Select text in a step first."),
        "evidence_not_negative": _("Rate step {number} negative first: quotes show its error."),
        "evidence_too_much": _("That is too long, or there are too many quotes."),
        "evidence_remove": _("Remove the quote"),
        "undone_evidence": _("Undone: quote, step {number}"),
    }


def _clause_strings() -> dict[str, str]:
    """Return the texts of clauses that a rating cites."""
    return {
        "clause_search": _("Clause that step {number} follows or breaks: number or words"),
        "clause_none": _("No clause matches"),
        "clause_missing": _("The guideline has no clauses to cite."),
        "clause_unrated": _("Rate step {number} first."),
        "clause_too_many": _("A rating can cite at most {count} clauses."),
        "clause_cited": _("Step {number} cites {clause}"),
        "clause_list": _("Clauses that step {number} cites"),
        "clause_remove": _("Remove clause {clause}"),
        "undone_citations": _("Undone: clause, step {number}"),
    }


def _omission_strings() -> dict[str, str]:
    """Return the texts of what is missing after a step."""
    return {
        "ask_missing": _("What is missing after step {number}? (Enter saves, Shift+Enter starts a new line)"),
        "confirm_missing": _("Save omission"),
        "missing": _("Missing after this step: {text}"),
        "undone_missing": _("Undone: omission after step {number}"),
        "replaced_missing": _(
            "What you noted after step {number} was overwritten in another tab or on another device. The "
            "overwritten text: “{text}”"
        ),
    }


def _question_strings() -> dict[str, str]:
    """Return the texts of the questions on the whole trace."""
    return {
        "questions": _("On the whole trace"),
        "optional": _("Optional"),
        "undone_answer": _("Undone: answer on the whole trace"),
        "replaced_answer": _(
            "Your answer on the whole trace was overwritten in another tab or on another device. The overwritten "
            "answer: “{text}”"
        ),
    }


def _memory_only_strings() -> dict[str, Any]:
    """Return replacements for strings of the same names, for browsers that cannot store ratings."""
    return {
        "save_saved": _("Saved on the server only"),
        "save_waiting": _plural_forms(
            "Offline. {count} rating unsent: keep this tab open", "Offline. {count} ratings unsent: keep this tab open"
        ),
        "save_limited": _plural_forms(
            "Too many changes at once. {count} rating unsent: keep this tab open",
            "Too many changes at once. {count} ratings unsent: keep this tab open",
        ),
        "save_logged_out": _plural_forms(
            "Logged out. {count} rating unsent: keep this tab open",
            "Logged out. {count} ratings unsent: keep this tab open",
        ),
        "logged_out": _("You’re logged out. Keep this tab open and log in to send your ratings."),
        "offline": _("You’re offline. Keep this tab open: your ratings will be sent when you’re back online."),
    }


def _prompt_strings() -> dict[str, Any]:
    return {
        "ask_comment": _("Comment on step {number} (Enter saves, Shift+Enter starts a new line)"),
        "ask_skip": _("Why are you skipping this trace? It will go to someone else."),
        "ask_give_up": _("Why can’t you finish? Your ratings so far will be submitted."),
        "ask_report": _("What is wrong with the problem?"),
        "confirm_comment": _("Save comment"),
        "confirm_skip": _("Skip trace"),
        "confirm_give_up": _("Give up"),
        "confirm_report": _("Report problem"),
    }


def _panel_strings() -> dict[str, str]:
    return {
        "panel_guide": _("Rules and guideline"),
        "panel_questions": _("Questions for the leads"),
        "panel_offline": _("This can’t load while you’re offline. Try again when you’re back online."),
        "reply_sent": _("Reply sent"),
        "question_sent": _("Question sent"),
        "question_unsent": _("Not sent: you’re offline. Your text is kept."),
        "asked_open": _("Question not answered yet"),
        "asked_news": _("New answer to your question"),
        "asked_done": _("Question answered"),
    }


def _day_strings() -> dict[str, str]:
    return {
        "break_text": _("You’ve been rating for {minutes} minutes. How about a short break? Your ratings are saved."),
        "break_later": _("Remind me in 10 minutes"),
        "break_saved": _("Saved"),
        "lease_ends_soon": _("This trace is reserved for you until {time}. After that, it may go to someone else."),
        "lease_keep": _("Keep it for me"),
    }


_NEWS = f"(\n{_NEWS_SQL.replace('%(rater)s', 'a.rater_id')})"
_TRACE_SQL = rawsql.load_sql(__file__, "trace_payload.sql").replace("/* news */", _NEWS)
_ONBOARDING_PURPOSES = {AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING}
_AGENT_KINDS = {StepKind.SYSTEM, StepKind.USER, StepKind.ACTION, StepKind.OBSERVATION}
# The columns of trace_payload.sql that the scripts receive under these names.
_ASSIGNMENT_FIELDS = (
    *("assignment", "version", "revision", "state", "is_correction", "lease_ends_at", "submitted_at"),
    *(
        "reveals_one_step_at_a_time",
        "asks_error_category",
        "needs_error_category",
        "asks_severity",
        "asks_reason",
        "asks_corrected_step",
        "asks_evidence",
        "asks_omissions",
        "asks_clauses",
    ),
)
_PROBLEM_FIELDS = ("text", "domain", "reference_answer", "is_answer_right")
_JUDGMENT_FIELDS = ("rating", "flagged", "category", "reason", "error_link", "severity", "evidence", "citations")


def build_trace(assignment_id: int) -> dict[str, Any]:
    """Return an assigned trace, with the news of its rater as in describe_news. A plain trace takes one query."""
    if not (rows := rawsql.fetch_rows(_TRACE_SQL, {"assignment": assignment_id})):
        raise assignments.AssignmentUnknown  # an undone import has removed it
    news, trace, purpose, protocol, condition, has_parts, step_rows, questions, clauses, is_assisted, *values = rows[0]
    n = len(_ASSIGNMENT_FIELDS)
    fields = {"news": news, **dict(zip(_ASSIGNMENT_FIELDS, values[:n], strict=True))}
    problem_images, *values = values[n:]
    problem = dict(zip(_PROBLEM_FIELDS, values, strict=True))
    problem |= {name: _show_direction_overrides(text) for name, text in problem.items() if isinstance(text, str)}
    if problem_images:
        problem["images"] = _list_images(orjson.loads(_show_direction_overrides(problem_images)))
    steps = _group_options(orjson.loads(_show_direction_overrides(step_rows or "[]")))
    if has_parts:
        _add_parts(trace, steps)
        steps = orjson.loads(_show_direction_overrides(orjson.dumps(steps).decode()))
    if condition in visibility.NOTICES:
        steps = visibility.hide_steps(steps, condition)
        problem["domain"] = str(visibility.NOTICES[condition])
    after = None  # the page that follows the trace, if it is not the next trace
    if fields["is_correction"]:
        after = reverse("annotate:history")
    elif purpose in _ONBOARDING_PURPOSES:
        problem["domain"], after = _describe_onboarding(assignment_id)
    return {
        **fields,
        **(_describe_suggestions(assignment_id) if is_assisted else {}),
        "is_onboarding": purpose in _ONBOARDING_PURPOSES,
        "is_submitted": fields["state"] == AssignmentState.SUBMITTED and not fields["is_correction"],
        "rule": protocols.RULES[protocol]._asdict(),
        "is_agent": any(step["kind"] in _AGENT_KINDS for step in steps),
        "problem": problem,
        "after": after,
        "steps": steps,
        "turns": _load_turns(assignment_id, fields["revision"]) if fields["version"] else [],
        "submitted_turns": _load_corrected_turns(assignment_id, fields["revision"])
        if fields["is_correction"]
        else None,
        **(_load_questions(assignment_id, fields, questions) if questions else {}),
        **(_list_clauses(clauses) if clauses else {}),
    }


def _list_clauses(stored: str) -> dict[str, Any]:
    """Return the clauses of the rater's version of the guideline, as a rating cites them and with what people read."""
    version, rows = orjson.loads(stored)
    clauses = (Clause(*row) for row in rows)
    return {"clauses": [{**clause._asdict(), "version": str(version)} for clause in clauses]}


def _load_questions(assignment_id: int, fields: dict[str, Any], questions: str) -> dict[str, Any]:
    """Return the questions on the whole trace, with the answers of this revision and of what it corrects."""
    answers: dict[int, dict[str, str]] = {fields["revision"]: {}, fields["revision"] - 1: {}}
    rows = TraceAnswer.objects.filter(assignment=assignment_id, revision__in=answers)
    for revision, question, value in rows.values_list("revision", "question", "value"):
        answers[revision][question] = value
    own, corrected = answers.values()
    return {"questions": orjson.loads(questions), "answers": own, "submitted_answers": corrected}


def _describe_suggestions(assignment_id: int) -> dict[str, Any]:
    """Return the labels of a machine that the rater sees, with their texts: other traces load neither."""
    shown = assignments.load_suggestions(assignment_id)
    if shown is None:
        return {}
    texts = {
        -1: _("A machine rated step {number} negative. It can be wrong."),
        0: _("A machine rated step {number} neutral. It can be wrong."),
        1: _("A machine rated step {number} positive. It can be wrong."),
    }
    url = reverse("annotate:reveal", args=[assignment_id]) if shown.reveals else None
    return {"suggestions": {"reveal_url": url, "labels": shown.labels, "texts": texts}}


def _describe_onboarding(assignment_id: int) -> tuple[str, str | None]:
    """Return the place of a trace in its training or screening set, and the page that follows it."""
    assignment = Assignment.objects.select_related("rater", "project").get(pk=assignment_id)
    number, total = gold_sets.position_in_set(assignment)
    place = {"number": number, "total": total}
    if assignment.purpose == AssignmentPurpose.TRAINING:
        return _("Training, trace %(number)d of %(total)d") % place, reverse("annotate:lesson", args=[assignment_id])
    after = reverse("annotate:enter", args=[assignment.project.slug]) if number == total else None
    return _("Screening, trace %(number)d of %(total)d") % place, after


def _group_options(rows: list[Any]) -> list[dict[str, Any]]:
    steps: dict[int, dict[str, Any]] = {}
    for position, kind, is_rateable, agent, option, text in sorted(rows, key=lambda row: (row[0], row[4])):
        step = steps.setdefault(
            position, {"position": position, "kind": kind, "is_rateable": is_rateable, "agent": agent, "options": []}
        )
        step["options"].append({"position": option, "text": text, "parts": []})
    return list(steps.values())


def _add_parts(trace_id: int, steps: list[dict[str, Any]]) -> None:
    options = {(step["position"], option["position"]): option for step in steps for option in step["options"]}
    for part in OptionPart.objects.filter(option__step__trace=trace_id).with_images().select_related("option__step"):
        option = options[part.option.step.position, part.option.position]
        shown: dict[str, Any] = {"kind": part.kind, "text": part.text, "name": part.name}
        if part.image is not None:
            image = part.image
            shown |= _describe_image(image.digest, image.width, image.height, part.description)
        option["parts"].append(shown)


def _list_images(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the images of a problem, each with the placeholder that its text has."""
    return [{"text": images.write_placeholder(row[-1]), **_describe_image(*row)} for row in rows]


def _describe_image(digest: str, width: int, height: int, description: str) -> dict[str, Any]:
    return {
        "url": reverse("annotate:image", args=[digest]),
        "description": description,
        "width": width,
        "height": height,
    }


def _load_turns(assignment_id: int, revision: int) -> list[dict[str, Any]]:
    """Return the rater's reviews of the steps in this revision, with their ratings."""
    reviews = StepReview.objects.filter(assignment=assignment_id, revision=revision)
    columns = reviews.order_by("step__position").values_list(
        "pk", "step__position", "comment", "written_text", "missing"
    )
    turns: dict[int, dict[str, Any]] = {
        pk: {"step": step, "comment": comment, "written": written, "missing": missing, "judgments": []}
        for pk, step, comment, written, missing in columns
    }
    # A rating may arrive between the two queries: its review is not among those read, so it is left out as well.
    judgments = Judgment.objects.filter(turn__in=list(turns)).order_by("turn__step__position", "option__position")
    for turn, option, *values in judgments.values_list("turn_id", "option__position", *_JUDGMENT_FIELDS):
        turns[turn]["judgments"].append({"option": option, **dict(zip(_JUDGMENT_FIELDS, values, strict=True))})
    return list(turns.values())


def _load_corrected_turns(assignment_id: int, revision: int) -> list[dict[str, Any]] | None:
    """Return what a correction, the next revision, started from: the page does not submit it unchanged. Return None if
    the submission was ended without a result: the same ratings can now be submitted."""
    submissions = Submission.objects.filter(assignment=assignment_id, revision=revision - 1)
    if not submissions.filter(finish_reason__in=(FinishReason.SOLUTION, FinishReason.FOUND_ERROR)).exists():
        return None
    return _load_turns(assignment_id, revision - 1)


def describe_news(rater_id: int) -> str:
    """Return a text that differs if the notices above a trace differ, so that the page loads them only then."""
    return str(rawsql.fetch_rows(_NEWS_SQL, {"rater": rater_id})[0][0])


def _show_direction_overrides(text: str) -> str:
    """Replace each override, embedding and isolate by its name. The text may be JSON."""
    return _DIRECTION_OVERRIDES.sub(lambda found: f"⟦U+{ord(found[0]):04X}⟧", text)
