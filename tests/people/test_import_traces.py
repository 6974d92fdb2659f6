"""The command import_traces: projects and owners, exit codes, Ctrl-C."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import CommandError

from formats.input_files import UnreadableFile
from labeling.models import Project, Trace
from labeling.traces import import_job, scan
from people.management.commands.import_traces import IMPORT_LABEL, SCAN_LABEL
from people.models import Membership, Role
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "traces.jsonl"
    lines = [{"problem": f"What is {n} + 1?", "steps": [f"It is {n + 1}."]} for n in range(3)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def import_traces(path: Path, *arguments: str, project: str = "maths") -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("import_traces", str(path), "--project", project, *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_import_traces_creates_a_project_with_an_owner(file: Path) -> None:
    user = factories.make_user()
    import_traces(file, "--by", user.username)
    assert Trace.objects.count() == 3
    assert Membership.objects.get(project__slug="maths").role == Role.OWNER
    assert Membership.objects.get(project__slug="maths").user == user


def test_import_traces_warns_about_a_project_without_members(file: Path) -> None:
    assert "--by" in import_traces(file)[1]
    user = factories.make_user()
    assert import_traces(file, "--by", user.username)[1] == ""
    assert Membership.objects.get(project__slug="maths").user == user
    other = factories.make_user()
    import_traces(file, "--by", other.username)  # it has an owner now
    assert Membership.objects.filter(project__slug="maths").count() == 1


def test_import_traces_renames_columns_and_groups_bad_lines(tmp_path: Path) -> None:
    table, err = tmp_path / "traces.csv", StringIO()
    table.write_text("question,steps,note\n" + "".join(f'{n}?,"[""a""]",x\n' for n in range(30)))
    with pytest.raises(CommandError):
        call_command("import_traces", str(table), "--project", "maths", "--format", "native", stderr=err)
    assert err.getvalue().count("`problem`") == 1
    assert "--lenient" in err.getvalue()
    import_traces(table, "--map", "question=problem", "--map", "note=")
    assert Trace.objects.count() == 30


@pytest.mark.parametrize(
    ("arguments", "project", "cause"),
    [
        (["--by", "nobody"], "maths", type(None)),
        ([], "no address!", ValidationError),
        (["--format", "chat"], "maths", import_job.FileHasBadLines),
        (["--labels", "judge"], "maths", scan.LabelerNotNamed),
    ],
)
def test_import_traces_refuses_before_it_writes(
    file: Path, arguments: list[str], project: str, cause: type[Exception]
) -> None:
    with pytest.raises(CommandError) as refused:
        import_traces(file, *arguments, project=project)
    assert isinstance(refused.value.__cause__, cause)
    assert refused.value.returncode == 1
    assert not Trace.objects.exists()


def test_import_traces_creates_no_project_for_an_unreadable_file(tmp_path: Path) -> None:
    for format in ("auto", "prm800k"):
        with pytest.raises(CommandError) as refused:
            import_traces(tmp_path / "nothing.jsonl", "--format", format)
        assert isinstance(refused.value.__cause__, UnreadableFile)
    assert not Project.objects.exists()


class Terminal(StringIO):
    """A terminal on which Ctrl-C is pressed when a text appears."""

    def __init__(self, trigger: str) -> None:
        super().__init__()
        self.trigger = trigger

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.trigger in text:
            raise KeyboardInterrupt
        return super().write(text)


@pytest.mark.parametrize(
    ("trigger", "n_imported"), [(SCAN_LABEL, 0), (IMPORT_LABEL, 3)], ids=["while scanning", "while importing"]
)
def test_import_traces_stopped_by_ctrl_c_reports_and_can_be_repeated(file: Path, trigger: str, n_imported: int) -> None:
    with pytest.raises(CommandError) as stopped:
        call_command("import_traces", str(file), "--project", "maths", stderr=Terminal(str(trigger)))
    assert stopped.value.returncode == 130
    assert ("3" in str(stopped.value)) == (n_imported == 3)
    assert Trace.objects.count() == n_imported
    import_traces(file)
    assert Trace.objects.count() == 3


def test_import_traces_splits_at_a_separator(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps({"problem": "2 + 2?", "text": "a\n---\nb"}))
    import_traces(path, "--separator", r"\n---\n")
    trace = Trace.objects.select_related("provenance").get()
    assert trace.provenance is not None
    assert (trace.n_steps, trace.provenance.segmenter) == (2, r"separator 1: \n---\n")
    with pytest.raises(CommandError):
        import_traces(path, "--separator", "-" * 41)
