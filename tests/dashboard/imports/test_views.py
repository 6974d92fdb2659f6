"""The pages of imports: a file is looked at, said what it is, followed, and taken back."""

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
from labeling.traces import import_job, undo_job
from people import owned_projects
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
    return owned_projects.create_owned_project(name="Sums", slug="sums", by=lead, now=factories.NOW)


def sent(client: Client, *lines: bytes, name: str = "traces.jsonl") -> str:
    """The address at which a file that was sent can be looked at."""
    content = b"".join(line + b"\n" for line in lines)
    response = client.post(
        reverse("dashboard:upload_import_file", args=["sums"]), {"sent": SimpleUploadedFile(name, content)}
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


def test_a_file_is_sent_looked_at_brought_in_and_taken_back(client: Client, project: Project) -> None:
    look = sent(client, prm.make_line(), prm.make_line(labeler="ben"))
    page = text(client.get(look))
    assert "2 + 2 = 4" in page
    assert "Records, all of the file</dt><dd>2</dd>" in page
    assert not Trace.objects.exists()
    response = client.post(look, {**CHOICES, "bring": "1", "licence": "MIT", "statement": "ours"})
    assert "Waiting for a worker" in text(client.get(response["Location"]))
    job = run()
    page = text(client.get(response["Location"]))
    assert "New submissions</dt><dd>2</dd>" in page
    assert "MIT" in page
    source = Source.objects.get()
    client.post(reverse("dashboard:undo_source_import", args=["sums", source.pk]))
    assert run(undo_job).state == JobState.DONE
    page = " ".join(text(client.get(reverse("dashboard:import_source", args=["sums", source.pk]))).split())
    assert "Taken back on" in page
    assert "0 traces were removed. 1 trace that was opened or rated is kept with its labels" in page
    assert job.asked_by is not None


def test_look_shows_bad_lines_and_brings_nothing(client: Client, project: Project) -> None:
    page = text(client.get(sent(client, prm.make_line(), b'{"question": 1}')))
    assert "Expected `object`, got `int`, in question" in page
    assert not Job.objects.exists()


def test_look_again_reads_with_what_was_said(client: Client, project: Project) -> None:
    look = sent(client, json.dumps({"problem": "2 + 2?", "text": "One. Then two.\nThree."}).encode())
    said = {**CHOICES, "format": "native", "look": "1"}
    by_line, by_sentence = (client.post(look, {**said, "segmenter": name}) for name in ("lines 2", "sentences 2"))
    assert [len(response.context["shown"][0].rungs) for response in (by_line, by_sentence)] == [2, 3]
    assert not Job.objects.exists()


def test_look_says_what_the_ratings_cannot_be(client: Client, project: Project) -> None:
    look = sent(client, prm.make_line())
    response = client.post(look, {**CHOICES, "labels": "judge", "bring": "1"})
    assert response.status_code == 422
    assert "Say who rated" in text(response)
    client.post(look, {**CHOICES, "labels": "judge", "labels_by": "a model", "bring": "1"})
    assert run().state == JobState.DONE
    assert Rater.objects.get().machine == "judge: a model"


def test_look_makes_gold(client: Client, project: Project) -> None:
    client.post(sent(client, prm.make_line()), {**CHOICES, "labels": "gold", "gold_use": "screening", "bring": "1"})
    run()
    assert Gold.objects.get().use == "screening"
    assert not Submission.objects.exists()


def test_look_answers_for_a_file_of_no_known_format(client: Client, project: Project) -> None:
    response = client.get(sent(client, b'{"a": 1}'))
    assert response.status_code == 200
    assert "1 of" in text(response) or "Object contains unknown field" in text(response)
    response = client.post(sent(client, b""), {**CHOICES, "bring": "1"})
    assert run().state == JobState.DONE


def test_bad_lines_can_be_fetched(client: Client, project: Project) -> None:
    client.post(sent(client, prm.make_line(), b"{", b"["), {**CHOICES, "bring": "1"})
    job = run()
    assert job.state == JobState.FAILED
    page = text(client.get(reverse("dashboard:import", args=["sums", job.pk])))
    assert "2 of 3 records are bad" in page
    response = client.get(reverse("dashboard:download_bad_lines", args=["sums", job.pk]))
    rows = b"".join(response).decode().splitlines()
    assert [row.split(",")[0] for row in rows] == ["line", "2", "3"]


def test_a_file_beside_the_server_is_chosen(client: Client, project: Project, settings: Any) -> None:
    (settings.INCOMING_DIR / "a.jsonl").write_bytes(prm.make_line() + b"\n")
    assert "a.jsonl" in text(client.get(reverse("dashboard:imports", args=["sums"])))
    response = client.post(reverse("dashboard:upload_import_file", args=["sums"]), {"beside": "beside:a.jsonl"})
    client.post(response["Location"], {**CHOICES, "bring": "1"})
    assert run().state == JobState.DONE
    assert (settings.INCOMING_DIR / "a.jsonl").exists()  # it is not ours to throw away


def test_look_sends_back_to_choose_where_the_file_went(client: Client, project: Project, settings: Any) -> None:
    (settings.INCOMING_DIR / "a.jsonl").write_bytes(prm.make_line() + b"\n")
    look = client.post(reverse("dashboard:upload_import_file", args=["sums"]), {"beside": "beside:a.jsonl"})["Location"]
    (settings.INCOMING_DIR / "a.jsonl").unlink()
    response = client.post(look, {**CHOICES, "bring": "1"}, follow=True)
    assert response.redirect_chain == [(reverse("dashboard:imports", args=["sums"]), 302)]
    assert [message.level_tag for message in response.context["messages"]] == ["error"]


@pytest.mark.parametrize("told", [{}, {"beside": "beside:../x"}, {"address": "s3://x/y"}])
def test_send_asks_for_one_file(client: Client, project: Project, told: dict[str, str]) -> None:
    assert client.post(reverse("dashboard:upload_import_file", args=["sums"]), told).status_code == 422


def test_cancel_and_go_on(client: Client, project: Project) -> None:
    client.post(sent(client, prm.make_line()), {**CHOICES, "bring": "1"})
    job = Job.objects.get()
    client.post(reverse("dashboard:cancel_import", args=["sums", job.pk]))
    page = text(client.get(reverse("dashboard:import", args=["sums", job.pk])))
    assert "Cancelled after 0 records" in page
    client.post(reverse("dashboard:retry_import", args=["sums", job.pk]))
    assert run().state == JobState.DONE


def test_standing_polls_only_while_something_is_under_way(client: Client, project: Project) -> None:
    client.post(sent(client, prm.make_line()), {**CHOICES, "bring": "1"})
    address = reverse("dashboard:import_progress", args=["sums", Job.objects.get().pk])
    assert "hx-trigger" in text(client.get(address))
    run()
    page = text(client.get(address))
    assert "hx-trigger" not in page
    assert "<html" not in page


def test_imports_asks_as_often_for_many_as_for_few(
    client: Client, project: Project, django_assert_max_num_queries: Any
) -> None:
    address = reverse("dashboard:imports", args=["sums"])
    for n in (3, 30):
        for number in range(n):
            factories.make_source(project, f"{n}-{number}", reported_at=factories.NOW)
        with django_assert_max_num_queries(9):
            client.get(address)
