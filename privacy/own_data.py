"""Everything that a person may download: their account, labels, texts and sign-ins, as one JSON document. It contains
no secrets, and nothing that would reveal hidden gold to a rater.
"""

import json
from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Q, QuerySet

from accounts import security_log
from accounts.models import User

_CHUNK = 2000


class Section(NamedTuple):
    """Rows of one model that belong to the person."""

    model: str
    paths: tuple[str, ...]  # lookups to the person
    fields: dict[str, str]  # names in the document, and their lookups


def _names(*fields: str, **renamed: str) -> dict[str, str]:
    return {**renamed, **{name: name for name in fields}}


_STEP = {"project": "assignment__project__slug", "trace": "assignment__trace", "step": "step__position"}
SECTIONS: dict[str, Section] = {
    "account": Section(
        "accounts.User",
        ("pk",),
        _names("username", "name", "email", "date_joined", "last_login", "work_keys", "break_minutes", number="pk"),
    ),
    "email_addresses": Section("account.EmailAddress", ("user",), _names("email", "verified", "primary")),
    "memberships": Section(
        "people.Membership", ("user",), _names("role", "joined_at", "left_at", project="project__slug")
    ),
    "worker_ids": Section(
        "people.WorkerId",
        ("user",),
        _names("worker", "study", "session", "first_came_at", "last_came_at", project="project__slug"),
    ),
    "sessions": Section(
        "accounts.Session", ("user",), _names("authenticated_at", "used_at", "address", "browser", "expire_date")
    ),
    "second_factors": Section("mfa.Authenticator", ("user",), _names("type", "created_at", "last_used_at")),
    "single_sign_on": Section("socialaccount.SocialAccount", ("user",), _names("provider", "uid", "date_joined")),
    "api_tokens": Section(
        "accounts.ApiToken", ("user",), _names("name", "scopes", "made_at", "expires_at", "used_at", "withdrawn_at")
    ),
    "pseudonyms": Section(
        "labeling.Rater",
        ("user",),
        _names("paused_at", "paused_reason", "added_at", project="project__slug", pseudonym="labeler"),
    ),
    "consents": Section(
        "labeling.Consent", ("rater__user",), _names("given_at", project="rater__project__slug", text="text__body")
    ),
    "guidelines_read": Section(
        "labeling.GuidelineAcknowledgment",
        ("rater__user",),
        _names("read_at", project="rater__project__slug", version="guideline__version"),
    ),
    "messages": Section(
        "people.MemberMessage",
        ("membership__user", "written_by"),
        _names(
            "kind",
            "text",
            "written_at",
            "read_at",
            "answer",
            "answered_at",
            "trace",
            project="membership__project__slug",
        ),
    ),
    "submissions": Section(
        "labeling.Submission",
        ("assignment__rater__user",),
        _names(
            "revision",
            "submitted_at",
            "finish_reason",
            "finish_note",
            "total_ms",
            project="project__slug",
            trace="assignment__trace",
        ),
    ),
    "step_reviews": Section(
        "labeling.StepReview",
        ("assignment__rater__user",),
        _names("revision", "chosen", "written_text", "written_rating", "comment", "missing", "active_ms", **_STEP),
    ),
    "judgments": Section(
        "labeling.Judgment",
        ("turn__assignment__rater__user",),
        _names(
            "rating",
            "flagged",
            "category",
            "error_link",
            "severity",
            "evidence",
            "citations",
            "reason",
            project="turn__assignment__project__slug",
            trace="turn__assignment__trace",
            step="turn__step__position",
            option="option__position",
            revision="turn__revision",
        ),
    ),
    "suggestions": Section(
        "labeling.Exposure",
        ("assignment__rater__user",),
        _names("arm", "drawn_at", "n_changed", project="assignment__project__slug", trace="assignment__trace"),
    ),
    "answers": Section(
        "labeling.TraceAnswer",
        ("assignment__rater__user",),
        _names("revision", "question", "value", project="assignment__project__slug", trace="assignment__trace"),
    ),
    "live_sessions": Section(
        "live.LiveSession",
        ("rater__user",),
        _names("started_at", "ended_at", "finish_reason", "finish_note", project="project__slug", problem="problem"),
    ),
    "live_steps": Section(
        "live.LiveTurn",
        ("session__rater__user",),
        _names("position", "written_text", "draft", "active_ms", "ended_at", session="session"),
    ),
    "live_edits": Section(
        "live.LiveRatingEdit",
        ("option__request__session__rater__user",),
        _names("rating", "flagged", "arrived_at", "was_applied", session="option__request__session", option="option"),
    ),
    "arena_edits": Section(
        "prm.ArenaEdit",
        ("rater__user",),
        _names("text", "reason", "made_at", "position", project="project__slug", trace="trace"),
    ),
    "edits": Section(
        "labeling.RatingEdit",
        ("assignment__rater__user",),
        _names(
            "kind",
            "step",
            "option",
            "question",
            "rating",
            "flagged",
            "category",
            "error_link",
            "severity",
            "evidence",
            "citations",
            "text",
            "arrived_at",
            project="assignment__project__slug",
            trace="assignment__trace",
        ),
    ),
    "corrections_requested": Section(
        "labeling.CorrectionRequest",
        ("assignment__rater__user",),
        _names("note", "asked_at", "was_corrected", trace="assignment__trace"),
    ),
}


def stream_own_data(user: User) -> Iterator[str]:
    """Yield the JSON document in pieces, because a rater may have many thousands of labels."""
    yield "{"
    for number, (name, section) in enumerate(SECTIONS.items()):
        yield from _stream_list(name, _load_rows(section, user), is_first=number == 0)
    events = security_log.list_account_events(user).iterator(chunk_size=_CHUNK)
    yield from _stream_list("account_events", (security_log.describe_event(event) for event in events), is_first=False)
    yield "}\n"


def _stream_list(name: str, rows: Iterator[dict[str, Any]], *, is_first: bool) -> Iterator[str]:
    yield f"{'' if is_first else ','}\n{json.dumps(name)}: ["
    for number, row in enumerate(rows):
        yield ("," if number else "") + "\n " + json.dumps(row, cls=DjangoJSONEncoder, ensure_ascii=False)
    yield "]"


def _load_rows(section: Section, user: User) -> Iterator[dict[str, Any]]:
    condition = reduce(or_, (Q(**{path: user.pk}) for path in section.paths))
    rows: QuerySet[Any] = apps.get_model(section.model)._default_manager.filter(condition).order_by("pk")
    for values in rows.values_list(*section.fields.values()).iterator(chunk_size=_CHUNK):
        yield dict(zip(section.fields, values, strict=True))
