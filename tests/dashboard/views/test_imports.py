"""Import pages: preview a file, import it, follow the import, undo it."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from jobs import runner
from jobs.models import Job, JobState
from labeling.models import Gold, Project, Rater, Source, Submission, Trace
from labeling.traces import import_job, undo
from people import members
from tests import factories
from tests.formats import prm800k_lines as prm

pytestmark = pytest.mark.django_db
CHOICES = {"format": "prm800k", "labels": "judgments", "gold_use": "hidden", "purpose": "rate", "private": "count"}


@pytest.fixture
def project(client: Client, settings: Any, tmp_path: Path) -> Project:
    settings.DATA_DIR = tmp_path / "data"
    settings.INCOMING_DIR = tmp_path / "incoming"
    settings.INCOMING_DIR.mkdir()
    lead = factories.make_user()
    client.force_login(lead)
    return members.create_owned_project(name="Sums", slug="sums", by=lead, now=factories.NOW)


def upload(client: Client, *lines: bytes, name: str = "traces.jsonl") -> str:
    """Upload a file and return the address of its preview."""
    content = b"".join(line + b"\n" for line in lines)
    response = client.post(
        reverse("dashboard:upload_import_file", args=["sums"]), {"upload": SimpleUploadedFile(name, content)}
    )
    assert response.status_code == 302
    return str(response["Location"])


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def run(handler: Any = import_job) -> Job:
    job = Job.objects.filter(kind=handler.KIND).latest("pk")
    runner.run_job(job.pk, handler.chunks)
    job.refresh_from_db()
    return job


def test_file_is_uploaded_previewed_imported_and_undone(client: Client, project: Project) -> None:
    preview = upload(client, prm.make_line(), prm.make_line(labeler="ben"))
    page = text(client.get(preview))
    assert "2 + 2 = 4" in page
    assert '<dd data-figure="records">2</dd>' in page
    assert not Trace.objects.exists()
    response = client.post(preview, {**CHOICES, "import": "1", "licence": "MIT", "statement": "ours"})
    assert 'data-state="queued"' in text(client.get(response["Location"]))
    job = run()
    response = client.get(response["Location"])
    assert response.context["import_status"].report.submissions_added == 2
    assert "MIT" in text(response)
    source = Source.objects.get()
    client.post(reverse("dashboard:undo_source_import", args=["sums", source.pk]))
    assert run(undo).state == JobState.DONE
    response = client.get(reverse("dashboard:import_source", args=["sums", source.pk]))
    assert "data-undone" in text(response)
    undone = response.context["import_status"].undo_result
    assert undone["removed"] == 0
    assert undone["withdrawn"] == 1
    assert job.asked_by is not None


def test_preview_shows_bad_lines_and_imports_nothing(client: Client, project: Project) -> None:
    response = client.get(upload(client, prm.make_line(), b'{"question": 1}'))
    assert [(group.first.line, group.n) for group in response.context["bad_lines"]] == [(2, 1)]
    assert not Job.objects.exists()


def test_updated_preview_uses_the_chosen_options(client: Client, project: Project) -> None:
    preview = upload(client, json.dumps({"problem": "2 + 2?", "text": "One. Then two.\nThree."}).encode())
    options = {**CHOICES, "format": "native", "preview": "1"}
    by_line, by_sentence = (client.post(preview, {**options, "segmenter": name}) for name in ("lines 2", "sentences 2"))
    assert [len(response.context["records"][0].steps) for response in (by_line, by_sentence)] == [2, 3]
    own = client.post(preview, {**options, "segmenter": "lines 2", "separator": " "})
    assert len(own.context["records"][0].steps) == 3
    assert own.context["records"][0].record.provenance.segmenter == "separator 1:  "
    assert not Job.objects.exists()


def test_preview_shows_the_steps_of_a_message_as_its_parts(client: Client, project: Project) -> None:
    turns = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "Two and two. That is four."}]
    preview = upload(client, json.dumps({"messages": turns}).encode())
    response = client.post(preview, {**CHOICES, "format": "chat", "segmenter": "sentences 2", "preview": "1"})
    assert [step.part for step in response.context["records"][0].steps] == [None, (2, 1, 2), (2, 2, 2)]
    assert text(response).count('data-message="2"') == 2


@pytest.mark.fault
def test_steps_are_changed_in_the_preview_and_never_lost(client: Client, project: Project) -> None:
    preview = upload(client, json.dumps({"problem": "2 + 2?", "text": "One. Then two.\nThree."}).encode())
    options = {**CHOICES, "format": "native", "segmenter": "lines 2"}
    editor = client.post(preview, {**options, "edit": "0"})
    assert [step.entered for step in editor.context["steps"]] == ["One. Then two.", "Three."]
    wrong = client.post(preview, {**options, "change": "0", "text-0": "One. Then 2."})
    assert (wrong.status_code, wrong.context["steps"][0].entered) == (422, "One. Then 2.")
    kept = client.post(preview, {**options, "change": "0", "text-0": "One.<cut> Then two.", "merge-1": "on"})
    [record] = kept.context["records"]
    assert [step.text for step in record.steps] == ["One.", "Then two.\nThree."]
    options["step_changes"] = kept.context["form"]["step_changes"].value()
    again = client.post(preview, {**options, "edit": "0"})
    assert again.context["steps"][0].entered == "One.<cut> Then two."
    assert again.context["steps"][1].is_merged
    for action in ("preview", "import"):
        response = client.post(preview, {**options, "segmenter": "sentences 2", action: "1"})
        assert (response.status_code, 'data-misfit="1"' in text(response)) == (
            200 if action == "preview" else 422,
            True,
        )
        assert response.context["form"]["step_changes"].value() == options["step_changes"]
    discarded = client.post(preview, {**options, "segmenter": "sentences 2", "discard": "1"})
    assert (discarded.context["misfits"], discarded.context["form"]["step_changes"].value()) == ([], "[]")
    assert client.post(preview, {**options, "step_changes": "[{}]", "preview": "1"}).status_code == 422
    assert client.post(preview, {**options, "import": "1"}).status_code == 302
    assert run().state == JobState.DONE
    assert Trace.objects.get().provenance.segmenter == "lines 2, by hand 1"  # type: ignore[union-attr]  # it has one
    shown = client.get(reverse("dashboard:trace", args=["sums", Trace.objects.get().pk]))
    [event] = [each for each in shown.context["history"] if each.event.what == "trace.changed_in_preview"]
    assert event.detail


def test_ratings_of_a_judge_need_a_name(client: Client, project: Project) -> None:
    preview = upload(client, prm.make_line())
    response = client.post(preview, {**CHOICES, "labels": "judge", "import": "1"})
    assert response.status_code == 422
    assert response.context["form"].has_error("labels_by", "labeler_missing")
    client.post(preview, {**CHOICES, "labels": "judge", "labels_by": "a model", "import": "1"})
    assert run().state == JobState.DONE
    assert Rater.objects.get().machine == "judge: a model"


def test_import_makes_gold(client: Client, project: Project) -> None:
    client.post(upload(client, prm.make_line()), {**CHOICES, "labels": "gold", "gold_use": "screening", "import": "1"})
    run()
    assert Gold.objects.get().use == "screening"
    assert not Submission.objects.exists()


def test_preview_of_an_unknown_format_still_shows_the_form(client: Client, project: Project) -> None:
    response = client.get(upload(client, b'{"a": 1}'))
    assert response.status_code == 200
    response = client.get(upload(client, *[b'{"question": 1}'] * 30))
    assert "question" in response.context["problem"]
    assert [group.n for group in response.context["bad_lines"]] == [30]
    response = client.post(upload(client, b""), {**CHOICES, "import": "1"})
    assert run().state == JobState.DONE


def test_bad_lines_can_be_downloaded(client: Client, project: Project) -> None:
    client.post(upload(client, prm.make_line(), b"{", b"["), {**CHOICES, "import": "1"})
    job = run()
    assert job.state == JobState.FAILED
    assert 'id="bad"' in text(client.get(reverse("dashboard:import", args=["sums", job.pk])))
    response = client.get(reverse("dashboard:download_bad_lines", args=["sums", job.pk]))
    rows = b"".join(response).decode().splitlines()
    assert [row.split(",")[0] for row in rows] == ["line", "2", "3"]


def test_file_in_the_servers_folder_is_imported_and_kept(client: Client, project: Project, settings: Any) -> None:
    (settings.INCOMING_DIR / "a.jsonl").write_bytes(prm.make_line() + b"\n")
    assert "a.jsonl" in text(client.get(reverse("dashboard:imports", args=["sums"])))
    response = client.post(reverse("dashboard:upload_import_file", args=["sums"]), {"server_file": "beside:a.jsonl"})
    client.post(response["Location"], {**CHOICES, "import": "1"})
    assert run().state == JobState.DONE
    assert (settings.INCOMING_DIR / "a.jsonl").exists()


def test_preview_of_a_deleted_file_returns_to_the_list(client: Client, project: Project, settings: Any) -> None:
    (settings.INCOMING_DIR / "a.jsonl").write_bytes(prm.make_line() + b"\n")
    preview = client.post(reverse("dashboard:upload_import_file", args=["sums"]), {"server_file": "beside:a.jsonl"})[
        "Location"
    ]
    (settings.INCOMING_DIR / "a.jsonl").unlink()
    response = client.post(preview, {**CHOICES, "import": "1"}, follow=True)
    assert response.redirect_chain == [(reverse("dashboard:imports", args=["sums"]), 302)]
    assert [message.level_tag for message in response.context["messages"]] == ["warning"]


@pytest.mark.parametrize("data", [{}, {"server_file": "beside:../x"}, {"address": "s3://x/y"}])
def test_upload_needs_exactly_one_file(client: Client, project: Project, data: dict[str, str]) -> None:
    assert client.post(reverse("dashboard:upload_import_file", args=["sums"]), data).status_code == 422


def test_cancelled_import_can_be_resumed(client: Client, project: Project) -> None:
    client.post(upload(client, prm.make_line()), {**CHOICES, "import": "1"})
    job = Job.objects.get()
    client.post(reverse("dashboard:cancel_import", args=["sums", job.pk]))
    assert 'data-state="cancelled"' in text(client.get(reverse("dashboard:import", args=["sums", job.pk])))
    client.post(reverse("dashboard:retry_import", args=["sums", job.pk]))
    assert run().state == JobState.DONE


def test_progress_polls_only_while_a_job_runs(client: Client, project: Project) -> None:
    client.post(upload(client, prm.make_line()), {**CHOICES, "import": "1"})
    address = reverse("dashboard:import_progress", args=["sums", Job.objects.get().pk])
    assert "hx-trigger" in text(client.get(address))
    run()
    page = text(client.get(address))
    assert "hx-trigger" not in page
    assert "<html" not in page


def test_imports_page_needs_as_many_queries_for_many_as_for_few(
    client: Client, project: Project, django_assert_max_num_queries: Any
) -> None:
    address = reverse("dashboard:imports", args=["sums"])
    for n in (3, 30):
        for number in range(n):
            factories.make_source(project, f"{n}-{number}", reported_at=factories.NOW)
        with django_assert_max_num_queries(9):
            client.get(address)
