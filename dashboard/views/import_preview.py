"""Preview of an import: how the first records of a file would be imported, and the options of the import."""

import itertools
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dashboard.access import form_view
from dashboard.render import project_page
from dashboard.views.import_step_changes import (
    PreviewedChanges,
    StepChangesField,
    apply_planned_changes,
    may_change_record,
    render_step_editor,
    replace_changes,
)
from formats import catalog, input_files, segmenters, zip_archives
from formats.messages import MessagePart, StepPlace, find_message_parts
from formats.records import StepRecord, TraceRecord
from jobs.failures import JobFailed
from jobs.models import Job
from labeling.models.gold import GoldUse
from labeling.models.trace import ImportedLabelKind, SourcePurpose
from labeling.traces import file_process, import_job, locations, scan
from labeling.traces.import_preview import ImportPreview
from labeling.traces.locations import FileLocation
from labeling.traces.record_changes import CannotChangeSteps, RecordChanges
from labeling.traces.scan import NAMED_KINDS, ImportOptions
from people.models import Membership
from people.roles import Action

MAX_BAD_LINES = 20
_PREVIEW_BYTES = 4 * 1024 * 1024  # of an object that has not been fetched yet
_MAX_STEPS = 12
_TABLE_SUFFIXES = (".csv", ".parquet")


class ImportOptionsForm(forms.Form):
    """The options that say how to read the file, and statements about it."""

    format = forms.ChoiceField(label=_("Format"), choices=[(name, name) for name in catalog.INPUT_FORMATS])
    segmenter = forms.ChoiceField(
        label=_("Split into steps by"),
        required=False,
        choices=[
            ("", _("automatic")),
            (segmenters.BEST_FIT, _("automatic, also long messages of agents")),
            *((name, name) for name in segmenters.SEGMENTER_NAMES),
        ],
        help_text=_(
            "Applies to solutions that are not yet split into steps. A named segmenter also splits every message of"
            " the model in chats and agent files."
        ),
    )
    separator = forms.CharField(
        label=_("Own separator"),
        required=False,
        strip=False,
        max_length=segmenters.MAX_SEPARATOR,
        help_text=_("Splits texts at this separator instead. Enter \\n for a line break and \\t for a tab."),
    )
    columns = forms.CharField(
        label=_("Rename fields"),
        required=False,
        max_length=2000,
        help_text=_(
            "Table columns or JSON keys and their fields, separated by commas, for example"
            " question=problem. To leave out a column or key, leave its field empty: notes="
        ),
    )
    labels = forms.ChoiceField(label=_("Ratings in the file"), choices=ImportedLabelKind.choices)
    labels_by = forms.CharField(
        label=_("Name of the labeler"),
        required=False,
        max_length=160,
        help_text=_("For a person, a pseudonym. For a model, its name, prompt and number of rollouts."),
    )
    gold_use = forms.ChoiceField(label=_("Use gold for"), choices=GoldUse.choices, initial=GoldUse.HIDDEN)
    purpose = forms.ChoiceField(label=_("Purpose of the file"), choices=SourcePurpose.choices)
    licence = forms.CharField(
        label=_("License"), max_length=200, required=False, help_text=_("Leave empty if not stated.")
    )
    statement = forms.CharField(
        label=_("Origin of the data"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Appears on the card of every dataset that contains these traces."),
    )
    private = forms.ChoiceField(
        label=_("Text that looks like an email address, phone number or key"),
        choices=[("count", _("count it")), ("mask", _("mask it")), ("refuse", _("reject the record"))],
    )
    is_lenient = forms.BooleanField(label=_("Skip bad lines instead of rejecting the file"), required=False)
    step_changes = StepChangesField()

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if separator := data.pop("separator", ""):
            data["segmenter"] = segmenters.SEPARATOR_PREFIX + separator
        if data.get("labels") in NAMED_KINDS and not data.get("labels_by"):
            self.add_error("labels_by", ValidationError(_("Enter the name of the labeler."), code="labeler_missing"))
        return data


@dataclass(frozen=True)
class PreviewStep:
    number: int | None  # as raters will see it; context has none
    text: str
    n_options: int
    is_rateable: bool
    rating: int | None
    is_rated: bool
    part: MessagePart | None  # if its message has several steps


@dataclass(frozen=True)
class PreviewRecord:
    """One record of a preview."""

    number: int  # in the file, from 0
    record: TraceRecord
    steps: list[PreviewStep]
    n_more_steps: int
    may_change: bool  # its steps


@form_view(Action.BRING_IN)
def preview_import(request: HttpRequest, actor: Membership) -> HttpResponse:
    """Show how the first records would be imported, change their steps, and import the file on request."""
    try:
        location = locations.resolve_location(request.GET.get("file", ""), project=actor.project)
    except locations.LocationNotFound as error:
        messages.warning(request, str(error))
        return redirect("dashboard:imports", actor.project.slug)
    if request.method != "POST":
        format, problem = _guess_format(location)
        return _render_preview(request, actor, location, ImportOptionsForm(initial={"format": format}), problem=problem)
    form = ImportOptionsForm(request.POST)
    if not form.is_valid():
        return _render_preview(request, actor, location, form, status=422)
    return _answer_form(request, actor, location, form)


def _answer_form(
    request: HttpRequest, actor: Membership, location: FileLocation, form: ImportOptionsForm
) -> HttpResponse:
    """Do what the button of a valid form says."""
    if "edit" in request.POST or "change" in request.POST:
        return _change_steps(request, actor, location, form)
    if "preview" in request.POST:
        return _render_preview(request, actor, location, form)
    if "discard" in request.POST:
        return _render_preview(request, actor, location, _discard_misfits(location, form))
    try:
        if _find_misfits(location, form):
            return _render_preview(request, actor, location, form, status=422)
        job = _start_import(actor, location, ImportOptions(**form.cleaned_data))
    except (input_files.UnreadableFile, catalog.UnknownFormat, JobFailed) as error:
        return _render_preview(request, actor, location, form, status=422, problem=str(error))
    return redirect("dashboard:import", actor.project.slug, job.pk)


def _change_steps(
    request: HttpRequest, actor: Membership, location: FileLocation, form: ImportOptionsForm
) -> HttpResponse:
    """Show the steps of one record with their changes, or keep the changes and show the preview again."""
    try:
        preview = _load_import_preview(location, ImportOptions(**form.cleaned_data))
    except (input_files.UnreadableFile, catalog.UnknownFormat) as error:
        return _render_preview(request, actor, location, form, status=422, problem=str(error))
    asked = request.POST.get("edit") or request.POST.get("change")
    by_number = zip(preview.numbers, preview.first, strict=False)
    found = next(((number, record) for number, record in by_number if str(number) == asked), None)
    if found is None:
        return _render_preview(request, actor, location, form, status=422)
    if "edit" in request.POST:
        return render_step_editor(request, actor, location, form, *found)
    try:
        changes = replace_changes(form.cleaned_data["step_changes"], request.POST.dict(), *found)
    except CannotChangeSteps as error:
        return render_step_editor(request, actor, location, form, *found, problem=str(error))
    return _render_preview(request, actor, location, _replace_changes(form, changes))


def _find_misfits(location: FileLocation, form: ImportOptionsForm) -> list[RecordChanges]:
    """Return the changes of steps that do not fit the file with these options."""
    planned = form.cleaned_data["step_changes"]
    if not planned:
        return []
    preview = _load_import_preview(location, ImportOptions(**form.cleaned_data))
    return apply_planned_changes(preview, planned).misfits


def _discard_misfits(location: FileLocation, form: ImportOptionsForm) -> ImportOptionsForm:
    try:
        misfits = _find_misfits(location, form)
    except (input_files.UnreadableFile, catalog.UnknownFormat):
        return form  # the preview says why
    return _replace_changes(form, [each for each in form.cleaned_data["step_changes"] if each not in misfits])


def _replace_changes(form: ImportOptionsForm, changes: list[RecordChanges]) -> ImportOptionsForm:
    data = {**dict(form.data.items()), "step_changes": msgspec.json.encode(changes).decode()}
    return ImportOptionsForm(data)


def _start_import(actor: Membership, location: FileLocation, options: ImportOptions) -> Job:
    project, by, now = actor.project, actor.user, timezone.now()
    if location.path is None:
        return import_job.request_import_from_store(
            project=project, address=location.address, choices=options, by=by, now=now
        )
    return import_job.request_import(project=project, path=location.path, choices=options, by=by, now=now)


def _render_preview(
    request: HttpRequest,
    actor: Membership,
    location: FileLocation,
    form: ImportOptionsForm,
    *,
    status: int = 200,
    problem: str = "",
) -> HttpResponse:
    if form.is_valid():
        options = ImportOptions(**form.cleaned_data)
    else:
        options = ImportOptions(format=form["format"].value() or "auto")
    preview, changed = None, PreviewedChanges({}, [])
    try:
        preview = _load_import_preview(location, options)
        changed = apply_planned_changes(preview, options.step_changes)
    except (input_files.UnreadableFile, catalog.UnknownFormat) as error:
        problem = problem or str(error)
    return project_page(
        request,
        actor,
        "dashboard/import_preview.html",
        here="imports",
        status=status,
        location=location,
        form=form,
        problem=problem,
        preview=preview,
        records=[_build_preview_record(number, record) for number, record in changed.records.items()],
        misfits=changed.misfits,
        bad_lines=scan.group_bad_lines(preview.report.bad_lines)[:MAX_BAD_LINES] if preview else [],
    )


def _load_import_preview(location: FileLocation, options: ImportOptions) -> ImportPreview:
    """Read the beginning of the file. Raises UnreadableFile or UnknownFormat."""
    if location.path is not None:
        return file_process.preview_file(location.path, options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / location.name
        head, is_all = locations.read_beginning(location.address, size=_PREVIEW_BYTES)
        is_archive = path.suffix.lower() == zip_archives.SUFFIX
        if not is_all and (is_archive or input_files.unpacked_name(path).endswith(_TABLE_SUFFIXES)):
            raise input_files.UnreadableFile(
                f"{location.name} is a large table or archive in an object store, which cannot be previewed."
                " Import it without a preview, or upload a smaller file."
            )
        is_packed = path.suffix in {".gz", ".zst"}
        path.write_bytes(head if is_all or is_packed else head[: head.rfind(b"\n") + 1] or head)
        return file_process.preview_file(path, options, is_cut=not is_all)


def _guess_format(location: FileLocation) -> tuple[str, str]:
    """Detect the format. Fall back to the native one and say why, so that the person can choose."""
    try:
        return _load_import_preview(location, ImportOptions()).format, ""
    except (input_files.UnreadableFile, catalog.UnknownFormat) as error:
        return "native", str(error)


def _build_preview_record(number: int, record: TraceRecord) -> PreviewRecord:
    """Build one record. A live trace stores no steps: its submission lists the options that were shown."""
    turns = {turn.position: turn for turn in record.submissions[0].turns} if record.submissions else {}
    steps = record.steps or [StepRecord([]) for _turn in turns]
    numbers = itertools.count(1)
    parts = find_message_parts(StepPlace(step.source_position, step.is_rateable) for step in steps)
    shown = []
    for (position, step), part in zip(enumerate(steps[:_MAX_STEPS]), parts, strict=False):
        turn = turns.get(position)
        texts = [option.text for option in step.options] or [each.text for each in (turn and turn.shown) or ()]
        shown.append(
            PreviewStep(
                number=next(numbers) if step.is_rateable else None,
                text=texts[0] if texts else "",
                n_options=len(texts),
                is_rateable=step.is_rateable,
                rating=turn.path_rating() if turn else None,
                is_rated=turn is not None,
                part=part,
            )
        )
    return PreviewRecord(number, record, shown, len(steps) - len(shown), may_change_record(record))
