"""Images of a project: stored once, served to those who may see the trace, exported and imported again, removed."""

import datetime as dt
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotate import work_page
from exports import snapshots
from formats.records import BadLine
from jobs import runner
from labeling.models import Problem, ProblemImage, Project, Source, StoredImage, Trace
from labeling.traces import import_job, scan
from labeling.traces.scan import ImportOptions
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.image_files import make_data_uri, make_image, make_zip
from tests.labeling.traces.test_undo import undo_import

pytestmark = pytest.mark.django_db
SCREENSHOT = make_data_uri(make_image("blue"))
TEXT = {"type": "text", "text": "What is shown?"}
PHOTO = {"type": "image_url", "image_url": {"url": "images/a.jpg"}, "description": "A red box"}
SHOWN = {"type": "image_url", "image_url": {"url": SCREENSHOT}}
CHAT = {
    "messages": [
        {"role": "user", "content": [TEXT, PHOTO]},
        {"role": "assistant", "content": "I look."},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "done"}, SHOWN]},
        {"role": "assistant", "content": "A box."},
    ],
    "step_labels": {"1": 1, "3": -1},
}


@pytest.fixture(autouse=True)
def _own_folder(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "data"


def import_file(project: Project, path: Path, now: dt.datetime) -> Source:
    request = import_job.prepare_import(project=project, path=path, choices=ImportOptions(), now=now)
    list(runner.run_here(import_job.run_import(request, checkpoint={}, by=None)))
    return Source.objects.get(pk=request.source)


def make_chat(folder: Path, **changes: Any) -> Path:
    photo = make_image("red", kind="JPEG", size=(40, 30))
    return make_zip(
        folder / "chat.zip", {"d/chat.jsonl": json.dumps({**CHAT, **changes}).encode(), "d/images/a.jpg": photo}
    )


def test_archive_of_records_and_images_is_imported_once(tmp_path: Path, now: dt.datetime) -> None:
    project = factories.make_project()
    source = import_file(project, make_chat(tmp_path, step_labels=None), now)
    assert source.report["images"] == 2
    assert {(image.width, image.height) for image in StoredImage.objects.all()} == {(40, 30), (8, 6)}
    shown = ProblemImage.objects.get()
    assert (shown.description, shown.problem.text) == ("A red box", "What is shown?\n[image: A red box]")
    import_file(project, make_chat(tmp_path, step_labels=None), now)
    assert (Trace.objects.count(), StoredImage.objects.count()) == (1, 2)
    with CaptureQueriesContext(connection) as queries:
        undo_import(source, now)
    # All images together may not fit into memory.
    assert not any('"labeling_storedimage"."data"' in (query["sql"] or "") for query in queries)
    assert not StoredImage.objects.exists()
    assert not Problem.objects.exists()


def test_snapshot_comes_back_in_another_project(tmp_path: Path, now: dt.datetime) -> None:
    project, others = factories.make_project(), [factories.make_project() for _ in range(2)]
    import_file(project, make_chat(tmp_path), now)
    snapshot = build_snapshot(project, "chat", "native", "steps", has_labeler_names=True)
    folder = snapshots.snapshot_folder(snapshot)
    rows, archive = folder / "data/chat/train.jsonl", folder / "data/images.zip"
    call_command("import_traces", str(rows), "--project", others[0].slug, "--images", str(archive))
    records = list(scan.read_records(folder / "data/native/train.jsonl", ImportOptions(format="native")))
    assert [isinstance(record, BadLine) for record in records] == [True]  # the images are elsewhere
    with_images = make_zip(
        tmp_path / "again.zip",
        {"train.jsonl": read_file(snapshot, "data/native/train.jsonl"), **read_archive(folder / "data/images.zip")},
    )
    import_file(others[1], with_images, now)
    stored = StoredImage.objects.filter(project=project).values_list("digest", flat=True)
    for each in others:
        assert set(StoredImage.objects.filter(project=each).values_list("digest", flat=True)) == set(stored)
    assert len(stored) == 2
    digests = Trace.objects.order_by("pk").values_list("digest", flat=True)
    assert digests[0] == digests[1]
    problems = Problem.objects.order_by("pk").values_list("digest", flat=True)
    assert len(set(problems)) == 1
    assert "data/images*.zip" in read_file(snapshot, "README.md").decode()


def read_archive(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_image_is_served_to_raters_of_its_traces_only(tmp_path: Path, now: dt.datetime, client: Client) -> None:
    project = factories.make_project()
    import_file(project, make_chat(tmp_path), now)
    rater, other = factories.make_rater(project), factories.make_rater(project)
    assignment = factories.make_assignment(rater, Trace.objects.get())
    [shown] = work_page.build_trace(assignment.pk)["problem"]["images"]
    assert shown["url"].rpartition("/")[2] == ProblemImage.objects.get().image.digest  # a number would tell its file
    for image in StoredImage.objects.all():
        statuses = []
        for user in (rater.user, other.user):
            assert user is not None
            client.force_login(user)
            statuses.append(client.get(reverse("annotate:image", args=[image.digest])).status_code)
        assert statuses == [200, 404]


def test_refused_image_names_line_and_limit(tmp_path: Path) -> None:
    path = tmp_path / "native.jsonl"
    good = {"problem": "a", "steps": ["b"]}
    path.write_text(f"{json.dumps(good)}\n{json.dumps({**good, 'images': ['a.png']})}\n")
    _, bad = scan.read_records(path, ImportOptions(format="native"))
    assert isinstance(bad, BadLine)
    assert bad.line == 2


def test_problems_with_the_same_text_and_other_images_differ(tmp_path: Path, now: dt.datetime) -> None:
    path = tmp_path / "native.jsonl"
    uris = [make_data_uri(make_image(color)) for color in ("red", "blue")]
    rows = [{"problem": "What?", "steps": ["b"], "images": [uri]} for uri in uris]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    import_file(factories.make_project(), path, now)
    assert Problem.objects.values("normal_digest").distinct().count() == 2
