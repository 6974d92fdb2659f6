"""The shell commands of the README and of each guide run as written, in their order, on a fresh data folder.

Nothing is prepared: the files and variables of a guide come from its own commands. Only ports are replaced. For a page
that does not start the platform, the test starts it without the demo.

Commands of guides run in forks of one process (`command_server`), on a copy of the data folder that a first start
leaves. The README starts Python for each command, and the platform on an empty folder.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from prm.models import PRM, PRMUsage, Score
from supervisor import paths
from tests import command_server, servers
from tests.conventions.rule import ROOT
from tests.supervisor import platform_process
from tests.supervisor.platform_process import PATIENCE, PlatformProcess, clean_environment

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
NEED_DEMO = ("forms", "monitors")  # guides whose commands run after those of the README, which starts the demo
OWN_SHELL = re.compile(r"^(?P<command>[^#\n]+?)\s*# in its own shell.*$", re.M)
PORTS = ("8000", "8100", "9000", "9100")  # the platform, vLLM, the reference scorer, the reference judge
SETUP = """\
exec >log 2>&1
set -eux -o pipefail
in_own_shell() {
    sh -c "$2" >"shell-$1.log" 2>&1 &
    until (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; do
        kill -0 $! || { cat "shell-$1.log"; exit 1; }
        sleep 0.1
    done
}
"""
VLLM = f"""\
#!{sys.executable}
import signal, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.prm.backends import scorer_servers
with scorer_servers.running_scorer(scorer_servers.FakeVllmServer(), port=int(sys.argv[sys.argv.index("--port") + 1])):
    signal.pause()
"""


def list_blocks(page: Path) -> list[str]:
    return re.findall(r"^```sh\n(.+?)^```", page.read_text(), re.M | re.S)


def list_demo_blocks() -> list[str]:
    return [block for stem in NEED_DEMO for block in list_blocks(ROOT / "docs" / "guides" / f"{stem}.md")]


def write_script(blocks: list[str], ports: dict[str, int]) -> str:
    """Compose the commands of a page. `./test` is left out: it runs this test."""
    lines = "".join(blocks)
    if not re.search(r"^\./run", lines, re.M):
        lines = f"./run --no-demo  # in its own shell\n{lines}"
    lines = re.sub(r"^\./test$", "", lines, flags=re.M)
    lines = re.sub(r"^(\./run(?: --no-demo)?)(\s+#.*)?$", r"\1 --port 8000  # in its own shell", lines, flags=re.M)
    for written, port in ports.items():
        lines = re.sub(rf"(?<![0-9]){written}(?![0-9])", str(port), lines)
    return SETUP + "\n".join(_compose_lines(lines, ports))


def _compose_lines(lines: str, ports: dict[str, int]) -> Iterator[str]:
    for line in lines.splitlines():
        if match := OWN_SHELL.match(line):
            port = next(port for port in ports.values() if str(port) in line)
            yield f"in_own_shell {port} '{match['command']}'"
        else:
            yield line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that looks like the project, so that the commands of a guide write there."""
    own = tmp_path / "project"
    own.mkdir()
    for entry in ROOT.iterdir():
        if entry.is_file():
            shutil.copy2(entry, own)  # a command that writes into a file of the project does it here
        elif entry.name not in {".git", "data"}:
            (own / entry.name).symlink_to(entry)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "vllm").write_text(VLLM)
    (tmp_path / "bin" / "vllm").chmod(0o755)
    (tmp_path / ".curlrc").write_text("silent\nshow-error\nfail-with-body\n")  # a refused request is a failed command
    return own


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "page", [page for page in PAGES if list_blocks(page) and page.stem not in NEED_DEMO], ids=lambda page: page.stem
)
def test_commands_of_a_page_run_as_written_and_in_order(page: Path, folder: Path, started_data: Path) -> None:
    data, programs = folder.parent / "data", f"{folder.parent / 'bin'}:{Path(sys.executable).parent}"
    if page.stem != "README":
        programs = f"{os.environ[command_server.VARIABLE]}:{programs}"
        platform_process.copy_data(started_data, data)
    ports = {written: paths.find_free_port(0) for written in PORTS}
    env = {**clean_environment(), "STEPMARK_DATA": str(data), "CURL_HOME": str(folder.parent)}
    env["PATH"] = f"{programs}:{os.environ['PATH']}"
    blocks = list_blocks(page) + (list_demo_blocks() if page.stem == "README" else [])
    script = write_script(blocks, ports)
    shell = subprocess.Popen(["bash", "-c", script], cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
    platform = PlatformProcess(data, shell)
    try:
        status = shell.wait(6 * PATIENCE)
        assert status == 0, (folder / "log").read_text()[-3000:]
        if page.stem == "engineer":
            with servers.looking_into(data):
                assert_prms_were_used()
    finally:
        shell.send_signal(signal.SIGKILL)
        platform.end()


def assert_prms_were_used() -> None:
    """Check that the built-in PRM and the scorer were evaluated, scores were pushed, and the current PRM was
    queried."""
    assert dict(PRM.objects.values_list("version", "backend")) == {1: "builtin", 2: "vllm", 3: "http", 4: "pushed"}
    assert {1, 3, 4} <= set(Score.objects.values_list("prm__version", flat=True))
    assert PRMUsage.objects.count() == 2


def test_pages_have_commands() -> None:
    assert {page.stem for page in PAGES if list_blocks(page)} >= {"README", "api", "engineer", "importing", "machines"}
