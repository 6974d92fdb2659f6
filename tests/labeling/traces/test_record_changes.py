"""Steps that are changed in the preview of an import."""

import json
from pathlib import Path

import msgspec
import pytest

from events.models import Event
from formats.records import StepChange
from formats.step_changes import MAX_STEPS, digest_steps
from labeling.models import Project, Step, Trace
from labeling.models.trace import ImportedLabelKind
from labeling.traces import import_preview
from labeling.traces.import_job import prepare_import, run_import
from labeling.traces.record_changes import CannotChangeSteps, RecordChanges, StepsDiffer, change_record
from labeling.traces.scan import ImportOptions
from tests import factories
from tests.factories import NOW
from tests.image_files import make_data_uri, make_image

pytestmark = pytest.mark.django_db
OPTIONS = ImportOptions(format="native", segmenter="lines 2")
RECORDS = ({"problem": "P?", "text": "One. Two.\nThree."}, {"problem": "Q?", "text": "Four.\nFive."})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n" + "".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


def plan(path: Path, *changes: StepChange, options: ImportOptions = OPTIONS) -> ImportOptions:
    """Change the steps of the first record that is shown."""
    preview = import_preview.preview_file(path, options)
    own = RecordChanges(preview.numbers[0], 2, digest_steps(preview.first[0].steps), changes)
    return msgspec.structs.replace(options, step_changes=[own], is_lenient=True)


def import_file(path: Path, options: ImportOptions) -> Project:
    project = factories.make_project()
    request = prepare_import(project=project, path=path, choices=options, now=NOW)
    for each in run_import(request, checkpoint={}, by=factories.make_user()):
        if callable(each):
            each(NOW)
    return project


def test_changes_are_applied_to_their_record_and_recorded(path: Path) -> None:
    import_file(path, plan(path, StepChange(0, (4,)), StepChange(1, merges=True)))
    changed, other = Trace.objects.select_related("provenance").order_by("pk")
    texts = Step.objects.filter(trace=changed).order_by("position").values_list("options__text", "separator")
    assert list(texts) == [("One.", ""), ("Two.\nThree.", " ")]
    assert (changed.provenance.segmenter, other.provenance.segmenter) == ("lines 2, by hand 1", "lines 2")  # type: ignore[union-attr]  # both have one
    event = Event.objects.get(what="trace.changed_in_preview")
    assert event.subject == f"trace:{changed.pk}"
    assert event.detail["line"] == 2
    assert [change["cuts"] for change in event.detail["changes"]] == [[4], []]


def test_import_stops_if_the_file_or_the_segmenter_gives_other_steps(path: Path) -> None:
    options = plan(path, StepChange(0, (4,)))
    with pytest.raises(StepsDiffer):
        import_file(path, msgspec.structs.replace(options, segmenter="sentences 2"))
    path.write_text("{}\n" + json.dumps(RECORDS[1]))
    with pytest.raises(StepsDiffer):
        import_file(path, options)
    path.write_text("{}\n")
    with pytest.raises(StepsDiffer):
        import_file(path, options)
    assert not Trace.objects.exists()


def test_rated_records_are_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text(json.dumps({"problem": "P?", "steps": ["One. Two.", "Three."], "labels": [1, 1]}))
    options = plan(path, StepChange(0, (4,)))
    [record] = import_preview.preview_file(path, OPTIONS).first
    with pytest.raises(CannotChangeSteps) as caught:
        change_record(record, options.step_changes[0])
    assert caught.value.code == "rated"
    import_file(path, msgspec.structs.replace(options, labels=ImportedLabelKind.NONE))
    assert Trace.objects.get().n_steps == 3


def test_steps_with_images_that_the_preview_does_not_decode_are_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_preview, "PREVIEW_IMAGES", 0)
    path = tmp_path / "images.jsonl"
    shown = {"text": "Seen.", "images": [make_data_uri(make_image())]}
    path.write_text(json.dumps({"problem": "P?", "steps": [shown, "One. Two."]}))
    import_file(path, plan(path, StepChange(1, (4,))))
    assert Trace.objects.get().n_steps == 3


def test_record_cannot_get_more_steps_than_can_be_changed(path: Path) -> None:
    [record, _] = import_preview.preview_file(path, OPTIONS).first
    own = RecordChanges(1, 2, digest_steps(record.steps), (StepChange(0, (4,) * MAX_STEPS),))
    with pytest.raises(CannotChangeSteps) as caught:
        change_record(record, own)
    assert caught.value.code == "too_many_steps"
