"""Start, use, kill and restart the whole platform with `./run`.

All tests of a running platform are `fault` tests, including those that kill nothing, because they share its start."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.supervisor import platform_process
from tests.supervisor.platform_process import PlatformProcess

Opener = Callable[..., PlatformProcess]
FAMILY = ("bin/postgres", "valkey-server", "stepmark-parent", "stepmark-web", "stepmark-worker")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Start platforms on the data folder of the test, and end them afterward."""
    all_of_them: list[PlatformProcess] = []

    def start(*arguments: str) -> PlatformProcess:
        all_of_them.append(platform_process.running_platform(tmp_path / "data", *arguments))
        return all_of_them[-1]

    yield start
    for one in all_of_them:
        one.end()


def until(holds: Callable[[], object]) -> None:
    ends = time.monotonic() + platform_process.PATIENCE
    while not holds():
        assert time.monotonic() < ends, "timed out"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.fault
def test_platform_keeps_its_data_and_leaves_no_process(opened: Opener) -> None:
    first = opened()
    key = (first.data / "secret_key").read_text()
    assert "<form" in first.page("accounts/login/")
    until(lambda: all(first.member(each) for each in FAMILY))
    for person in ("lead", "annotator", "engineer"):
        link = next(line for line in first.output if line.startswith(f"{person}: "))
        assert "<form" in first.page(link.removeprefix(f"{person}: {first.url}"))

    first.process.terminate()
    assert first.process.wait(platform_process.PATIENCE) == 0
    assert first.family() == {}
    ours = [path for path in first.data.rglob("*") if "postgresql" not in path.parts and not path.is_symlink()]
    assert {path.name for path in ours} > {"supervisor.lock", "web.log"}
    assert [path for path in ours if path.stat().st_mode & 0o077] == []

    second = opened()
    assert (second.data / "secret_key").read_text() == key
    assert any("manage.py" in line and "login_link" in line for line in second.output)

    second.process.kill()
    second.process.wait()
    until(lambda: not second.family())


@pytest.mark.fault
@pytest.mark.parametrize(
    "word", ["bin/postgres", "valkey-server", "stepmark-web", "stepmark-worker", "stepmark-parent"]
)
def test_killed_process_is_restarted(opened_once: PlatformProcess, word: str) -> None:
    until(lambda: opened_once.member(word))
    died = opened_once.member(word)
    os.kill(died, signal.SIGKILL)
    until(lambda: opened_once.member(word) not in {0, died})
    until(lambda: all(opened_once.member(each) for each in FAMILY))
    until(lambda: _answers(opened_once))


@pytest.mark.fault
def test_two_platforms_run_side_by_side(
    opened_once: PlatformProcess, opened: Opener, started_data: Path, tmp_path: Path
) -> None:
    platform_process.copy_data(started_data, tmp_path / "data")
    other = opened("--no-demo")
    assert other.url != opened_once.url
    assert _answers(other)
    assert _answers(opened_once)
    assert not set(other.family()) & set(opened_once.family())


@pytest.mark.fault
def test_platform_uses_little_memory(opened_once: PlatformProcess) -> None:
    """Memory of an idle platform. Without preloading it was 373 MB."""
    until(lambda: opened_once.member("stepmark-worker"))
    assert _answers(opened_once)
    assert opened_once.megabytes() < 230


@pytest.mark.fault
def test_start_without_a_demo_shows_how_to_create_an_account(opened_once: PlatformProcess) -> None:
    assert any("make_owner" in line for line in opened_once.output)


@pytest.mark.fault
def test_start_names_a_data_folder_in_use(opened_once: PlatformProcess) -> None:
    code, output = platform_process.run_supervisor("--port", "0", "--data", str(opened_once.data))
    assert code == 1
    assert output.count("\n") == 1
    assert f"in use at {opened_once.url}" in output


@pytest.mark.fault
def test_start_names_a_port_in_use(tmp_path: Path) -> None:
    with closing(platform_process.listening_on(0)) as taken:
        port = taken.getsockname()[1]
        code, output = platform_process.run_supervisor("--port", str(port), "--data", str(tmp_path))
    assert code == 1
    assert output.count("\n") == 1
    assert f"Port {port}" in output
    assert "--port" in output


@pytest.mark.fault
def test_start_names_a_read_only_data_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, output = platform_process.run_supervisor("--port", "0", "--data", str(tmp_path / "file" / "data"))
    assert code == 1
    assert output.count("\n") == 1
    assert str(tmp_path / "file" / "data") in output
    assert "--data" in output


@pytest.fixture(scope="module")
def opened_once(tmp_path_factory: pytest.TempPathFactory, started_data: Path) -> Iterator[PlatformProcess]:
    data = tmp_path_factory.mktemp("once") / "data"
    platform_process.copy_data(started_data, data)
    one = platform_process.running_platform(data, "--no-demo")
    yield one
    one.end()


def _answers(one: PlatformProcess) -> bool:
    try:
        return "<form" in one.page("accounts/login/")
    except OSError:
        return False
