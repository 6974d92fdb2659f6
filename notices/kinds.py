"""The kinds of notices: the events that they report, their texts, and the fields that are sent.

Only the fields listed here leave the platform. People appear under their pseudonyms.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from events.models import Event
from exports.models import Delivery, Snapshot
from labeling.models import Assignment, Project, Rater, Source
from labeling.projects.money import format_money
from machines.models import JudgeRun, MachineLicense
from prm.models import PRM, Generation

TEST_KIND = "webhook.test"
Fields = dict[str, Any]


class NoticeKind(NamedTuple):
    label: Any  # a lazy translation
    text: Any  # a lazy translation with the fields as placeholders
    page: str  # the name of a URL; `target` gives its argument
    read_fields: Callable[[Event, int], Fields]  # of the event and its subject's number
    target: str = ""  # the field that the URL needs besides the slug


def _read_pause(event: Event, number: int) -> Fields:
    by = "person" if event.by else "check"
    return {**_read_rater(number), "paused_by": by, "reason": event.detail.get("reason", "")}


def _read_rater(number: int) -> Fields:
    row = Rater.objects.filter(pk=number).values_list("labeler", flat=True).first()
    return {"rater": number, "labeler": row}


def _read_import(event: Event, number: int) -> Fields:
    name = Source.objects.filter(pk=number).values_list("name", flat=True).first()
    return {"source": number, "name": name, **_pick(event, "records", "bad", "submissions")}


def _read_snapshot(event: Event, number: int) -> Fields:
    return {"name": Snapshot.objects.filter(pk=number).values_list("name", flat=True).first()}


def _read_generation(event: Event, number: int) -> Fields:
    row = Generation.objects.filter(pk=number).values_list("number", flat=True).first()
    return {"number": row, **_pick(event, "verdict", "why", "alarms")}


def _read_judge_run(event: Event, number: int) -> Fields:
    judge = JudgeRun.objects.filter(pk=number).values_list("judge", flat=True).first()
    return {"run": number, "judge": judge, "name": event.detail.get("judge"), **_pick(event, "why", "line")}


def _read_passport(event: Event, number: int) -> Fields:
    return {"rater": number, **_pick(event, "machine", "why")}


def _read_canaries(event: Event, number: int) -> Fields:
    return _pick(event, "version", "before", "set", "groups")


def _read_license(event: Event, number: int) -> Fields:
    rater = MachineLicense.objects.filter(pk=number).values_list("rater", flat=True).first()
    return {"license": number, "rater": rater, **_pick(event, "machine", "why")}


def _read_suggestions(event: Event, number: int) -> Fields:
    return {"suggestions": number, **_pick(event, "machine", "why")}


def _read_budget(event: Event, number: int) -> Fields:
    currency = Project.objects.filter(pk=number).values_list("currency", flat=True).first() or ""
    sums = _pick(event, "amount", "spent")
    shown = {f"{name}_shown": format_money(Decimal(each or 0), currency) for name, each in sums.items()}
    return {**sums, "currency": currency, **shown}


def _read_correction(event: Event, number: int) -> Fields:
    row = Assignment.objects.filter(pk=number).values("rater", "trace").first()
    rater = _read_rater(row["rater"]) if row else {"rater": None, "labeler": None}
    return {"assignment": number, "trace": row["trace"] if row else None, **rater}


def _read_job(event: Event, number: int) -> Fields:
    return {"job": number, **_pick(event, "kind", "of")}


def _pick(event: Event, *names: str) -> Fields:
    return {name: event.detail.get(name) for name in names}


NOTICE_KINDS: dict[str, NoticeKind] = {
    "rater.paused": NoticeKind(
        gettext_lazy("Annotator paused"),
        gettext_lazy("Annotator %(labeler)s was paused by a %(paused_by)s: %(reason)s"),
        "dashboard:annotator",
        _read_pause,
        "rater",
    ),
    "import.done": NoticeKind(
        gettext_lazy("Import finished"),
        gettext_lazy("%(name)s was imported: %(records)s records, %(bad)s bad records, %(submissions)s submissions."),
        "dashboard:import_source",
        _read_import,
        "source",
    ),
    "snapshot.built": NoticeKind(
        gettext_lazy("Snapshot built"),
        gettext_lazy("The snapshot %(name)s is ready to download."),
        "dashboard:snapshot",
        _read_snapshot,
        "name",
    ),
    "generation.judged": NoticeKind(
        gettext_lazy("Generation evaluated"),
        gettext_lazy("The PRM of generation %(number)s is %(verdict)s: %(why)s"),
        "dashboard:generations",
        _read_generation,
    ),
    "judge_run.paused": NoticeKind(
        gettext_lazy("Judge paused"),
        gettext_lazy("The judge %(name)s is paused: %(line)s"),
        "dashboard:judge",
        _read_judge_run,
        "judge",
    ),
    "passport.expired": NoticeKind(
        gettext_lazy("Machine’s passport expired"),
        gettext_lazy("The passport of the machine %(machine)s expired (%(why)s)."),
        "dashboard:machine",
        _read_passport,
        "rater",
    ),
    "canaries.easier_to_fool": NoticeKind(
        gettext_lazy("New version is easier to fool"),
        gettext_lazy("%(version)s is easier to fool by gaming canaries than %(before)s."),
        "dashboard:canaries",
        _read_canaries,
    ),
    "machine_license.ended": NoticeKind(
        gettext_lazy("Machine’s license ended"),
        gettext_lazy("A license of the machine %(machine)s ended (%(why)s)."),
        "dashboard:machine",
        _read_license,
        "rater",
    ),
    "suggestions.stopped": NoticeKind(
        gettext_lazy("Suggestions turned off"),
        gettext_lazy("The suggestions of the machine %(machine)s were turned off (%(why)s)."),
        "dashboard:suggestions",
        _read_suggestions,
    ),
    "project.budget_warned": NoticeKind(
        gettext_lazy("Budget 80% spent"),
        gettext_lazy("%(spent_shown)s of the %(amount_shown)s budget has been spent."),
        "dashboard:pay",
        _read_budget,
    ),
    "project.budget_reached": NoticeKind(
        gettext_lazy("Budget reached"),
        gettext_lazy("%(spent_shown)s of the %(amount_shown)s budget has been spent. No more traces will be assigned."),
        "dashboard:pay",
        _read_budget,
    ),
    "correction.asked": NoticeKind(
        gettext_lazy("Correction requested"),
        gettext_lazy("Annotator %(labeler)s was asked to correct a submission."),
        "dashboard:submission",
        _read_correction,
        "assignment",
    ),
    "job.failed": NoticeKind(
        gettext_lazy("Job failed"),
        gettext_lazy("The job “%(kind)s” for %(of)s failed. See the Jobs page for the reason."),
        "dashboard:jobs",
        _read_job,
    ),
}


def label_kind(kind: str) -> str:
    return str(NOTICE_KINDS[kind].label) if kind in NOTICE_KINDS else _("Test")


def find_project_id(event: Event) -> int | None:
    """Return the project of an event. An event of a job names only the object that the job works on."""
    if event.project is not None:
        return event.project
    name, _colon, number = str(event.detail.get("of", "")).partition(":")
    rows: dict[str, QuerySet[Any]] = {
        "project": Project.objects.values_list("pk"),
        "snapshot": Snapshot.objects.values_list("project"),
        "generation": Generation.objects.values_list("project"),
        "machine_rater": Rater.objects.values_list("project"),
        "judge_run": JudgeRun.objects.values_list("judge__project"),
        "prm": PRM.objects.values_list("project"),
        "delivery": Delivery.objects.values_list("snapshot__project"),
    }
    row = rows[name].filter(pk=int(number)).first() if name in rows else None
    return row[0] if row else None


def describe_event(event: Event, project: Project) -> dict[str, Any]:
    """Return the content of a notice about an event, without the number of the notice."""
    kind = NOTICE_KINDS[event.what]
    _name, _colon, number = event.subject.partition(":")
    fields = kind.read_fields(event, int(number))
    arguments = [project.slug, fields[kind.target]] if kind.target else [project.slug]
    path = reverse(kind.page, args=arguments if None not in arguments else [project.slug])
    return _describe(event.what, event.at.isoformat(), project, settings.ORIGIN + path, fields)


def describe_test(project: Project, at: str) -> dict[str, Any]:
    url = settings.ORIGIN + reverse("dashboard:notices", args=[project.slug])
    return _describe(TEST_KIND, at, project, url, {})


def _describe(kind: str, at: str, project: Project, url: str, fields: Fields) -> dict[str, Any]:
    return {
        "type": kind,
        "created_at": at,
        "project": {"slug": project.slug, "name": project.name},
        "url": url,
        "data": fields,
    }


def write_text(content: dict[str, Any]) -> str:
    """Return the notice as one sentence."""
    fields: Fields = content["data"]
    return str(NOTICE_KINDS[content["type"]].text) % fields
