"""The import command: project owner, errors and interruption."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from labeling.models import Project, Trace
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
    assert "3  " in import_traces(file, "--by", user.username)[0]
    assert Trace.objects.count() == 3
    assert Membership.objects.get(project__slug="maths").role == Role.OWNER
    assert Membership.objects.get(project__slug="maths").user == user


def test_import_traces_warns_about_a_project_without_owner(file: Path) -> None:
    assert "--by" in import_traces(file)[1]
    user = factories.make_user()
    assert import_traces(file, "--by", user.username)[1] == ""
    assert Membership.objects.get(project__slug="maths").user == user
    other = factories.make_user()
    import_traces(file, "--by", other.username)  # it has an owner now
    assert Membership.objects.filter(project__slug="maths").count() == 1


@pytest.mark.parametrize(
    ("arguments", "project", "message"),
    [
        (["--by", "nobody"], "maths", "nobody"),
        ([], "no address!", "--project no address!"),
        (["--format", "chat"], "maths", "3 of 3"),
        (["--labels", "judge"], "maths", "."),
    ],
)
def test_import_traces_refuses_bad_arguments_before_importing(
    file: Path, arguments: list[str], project: str, message: str
) -> None:
    with pytest.raises(CommandError, match=message) as refused:
        import_traces(file, *arguments, project=project)
    assert refused.value.returncode == 1
    assert not Trace.objects.exists()


def test_import_traces_creates_no_project_for_a_missing_file(tmp_path: Path) -> None:
    for format in ("auto", "prm800k"):
        with pytest.raises(CommandError, match=r"nothing\.jsonl"):
            import_traces(tmp_path / "nothing.jsonl", "--format", format)
    assert not Project.objects.exists()


class Terminal(StringIO):
    """A terminal whose user presses Ctrl-C when this text appears."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.words in text:
            raise KeyboardInterrupt
        return super().write(text)


@pytest.mark.parametrize(("words", "n_in"), [("Looking through", 0), ("/ 3 (", 3)])
def test_import_traces_stopped_by_the_user_reports_what_was_imported(file: Path, words: str, n_in: int) -> None:
    with pytest.raises(CommandError) as stopped:
        call_command("import_traces", str(file), "--project", "maths", stderr=Terminal(words))
    assert (stopped.value.returncode, Trace.objects.count()) == (130, n_in)
    assert (f"{n_in} of 3" in str(stopped.value)) is bool(n_in)
    assert f"{3 - n_in}  " in import_traces(file)[0]
    assert Trace.objects.count() == 3
