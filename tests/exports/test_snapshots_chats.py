"""Snapshots of chats: an imported chat comes back, and labels made here come with its messages."""

import io
import json
from typing import Any

import pytest

from exports.orders import InvalidOrder
from formats import chat
from labeling import assignments
from labeling.models import Project, Trace
from labeling.models.trace import ImportedLabelKind
from labeling.traces import load
from labeling.traces.load import LoadState
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, order_snapshot, read_file
from tests.formats.test_chat import OWN, PUBLISHED
from tests.labeling.assignments.clients import WorkPageClient

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    project = factories.make_project(protocol="carry_forward", reserve_problem_share=0.0)
    state = LoadState(project=project, source=factories.make_source(project), labels=ImportedLabelKind.JUDGMENTS)
    records = list(chat.read(io.BytesIO(json.dumps(PUBLISHED).encode())))
    load.load_chunk(state=state, records=records, now=factories.NOW)
    return project


def read_chats(project: Project) -> list[dict[str, Any]]:
    snapshot = build_snapshot(project, "chat", has_labeler_names=True)
    assert "config_name: chat" in read_file(snapshot, "README.md").decode()
    return [json.loads(line) for line in read_file(snapshot, "data/chat/train.jsonl").splitlines()]


def test_imported_chat_comes_back(project: Project) -> None:
    (row,) = read_chats(project)
    assert {key: value for key, value in row.items() if key not in OWN} == PUBLISHED
    assert (row["rater"], row["labeling_protocol"]) == (chat.ANNOTATORS, "propagated")


def test_labels_made_here_come_with_the_messages(project: Project) -> None:
    rater = factories.make_rater(project)
    client = WorkPageClient(factories.make_assignment(rater, Trace.objects.get()))
    client.send(*(client.write(position, rating) for position, rating in ((2, -1), (4, -1), (6, 0))))
    assignments.submit(**client.place, now=factories.NOW, by=rater.user)
    _, row = read_chats(project)
    assert row["messages"] == PUBLISHED["messages"]
    assert (row["step_labels"], row["labeling_protocol"]) == ({"2": -1, "4": -1, "6": 0}, "carry_forward")


def test_chats_are_json_lines_only(project: Project) -> None:
    with pytest.raises(InvalidOrder) as refusal:
        order_snapshot(project, "chat", ending="parquet")
    assert refusal.value.code == "ending"
