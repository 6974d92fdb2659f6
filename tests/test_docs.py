"""Check the documentation: commands, settings and modules are described, descriptions name existing ones, links work,
and flags are valid."""

import io
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import pytest

from api import urls as api_urls
from formats import catalog
from formats.record_reader import RecordReader
from formats.records import BadLine
from supervisor import __main__ as supervisor
from tests.conventions.rule import ROOT, dotted_name, list_calls, list_files, text_of, tree_of

pytestmark = pytest.mark.static

MARKDOWN = [path for path in list_files() if path.endswith(".md")]
DECISIONS = [path for path in MARKDOWN if path.startswith("docs/adr/") and not path.endswith("README.md")]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
READ = {"env.read_text", "env.read_bool", "env.read_int", "env.read_list", "env.read_mapping", "env.read_database"} | {
    "env.read_choices",
    "env.read_mail_server",
    "os.environ.get",
    "os.getenv",
}
# Set by the system or by a supervisor of ours for its own children, not by people.
NOT_SETTINGS = {"DJANGO_SETTINGS_MODULE", "PATH", "HOME"}
TERMS = (
    "Project Problem Trace Step Option Protocol Rater Assignment Judgment Submission Gold Agreement Consensus PRM "
    "Score Draw Manifest Generation Snapshot Job Lane Slot"
)


def commands() -> set[str]:
    found = {PurePosixPath(path) for path in list_files() if "/management/commands/" in path}
    return {path.stem for path in found if path.suffix == ".py" and not path.stem.startswith("_")}


def variables() -> set[str]:
    """Return the environment variables that the settings and the supervisor read."""
    return {
        name
        for path in list_files()
        if path.startswith(("config/", "supervisor/")) and path.endswith(".py")
        for call in list_calls(tree_of(text_of(path)))
        if dotted_name(call.func) in READ and call.args
        for name in [getattr(call.args[0], "value", None)]
        if isinstance(name, str) and name not in NOT_SETTINGS
    }


def programs(folder: str) -> set[str]:
    """Return the modules that are run with `python -m folder.name`."""
    return {
        PurePosixPath(path).stem
        for path in list_files()
        if re.fullmatch(rf"{folder}/\w+\.py", path) and '__name__ == "__main__"' in text_of(path)
    }


def first_column(path: str, heading: str) -> set[str]:
    """Return the names in backquotes in the first column of the table under a heading, without arguments."""
    section = text_of(path).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| `([^`]+)`", section, re.M)
    return {cell.split()[0] for cell in cells}


def test_every_command_is_described_and_no_other() -> None:
    assert first_column("docs/operations.md", "Commands") == commands()


def test_every_setting_is_described_and_no_other() -> None:
    assert first_column("docs/operations.md", "Settings") == variables()


@pytest.mark.parametrize("name", catalog.INPUT_FORMATS)
def test_every_format_that_is_read_has_a_page_with_its_fields(name: str) -> None:
    page = text_of(f"docs/formats/{name}.md")
    assert f"({name}.md)" in text_of("docs/formats/README.md")
    assert f"formats/{name}.py" in page
    reader = catalog.INPUT_FORMATS[name].read
    item = reader.decoder.type if isinstance(reader, RecordReader) else None
    fields = getattr(item, "__struct_encode_fields__", ())
    assert not [field for field in fields if f"`{field}`" not in page and f"`{field}." not in page]


@pytest.mark.parametrize("name", catalog.INPUT_FORMATS)
def test_sample_of_a_format_is_read(name: str) -> None:
    (sample,) = re.findall(r"^```json\n(.+?)\n```", text_of(f"docs/formats/{name}.md"), re.M | re.S)
    line = sample.encode() + b"\n"
    assert catalog.detect_format(io.BytesIO(line)).name == name
    records = list(catalog.get_input_format(name).read(io.BytesIO(line)))
    assert records
    assert not [record for record in records if isinstance(record, BadLine)]


@pytest.mark.parametrize("name", catalog.OUTPUT_FORMATS)
def test_every_format_that_is_written_has_a_page(name: str) -> None:
    page = text_of(f"docs/formats/{name}.md")
    assert f"`formats/{name}.py`" in page
    assert re.search(rf"^\| \[.+\]\({name}\.md\) \|.*\| yes.*\|$", text_of("docs/formats/README.md"), re.M)


def test_every_benchmark_is_described() -> None:
    described = text_of("bench/README.md") if (ROOT / "bench/README.md").exists() else ""
    found = programs("bench")
    parts = {name for name in found for whole in found if name.startswith(f"{whole}_")}  # processes of another module
    assert not [name for name in found - parts if f"bench.{name}`" not in described]


def test_every_address_of_the_api_is_described_and_no_other() -> None:
    described = set(re.findall(r"`(?:GET|POST|PUT|DELETE) (/api/[^`]*)`", text_of("docs/guides/api.md")))
    routes = [str(each.pattern) for each in api_urls.urlpatterns if each.name != "unknown_address"]
    served = {"/api/" + re.sub(r"<(?:[a-z]+:)?([a-z_]+)>", r"{\1}", route) for route in routes}
    assert described == served


def headings(path: str) -> set[str]:
    """Return the anchors of a page."""
    lines = re.findall(r"^#+ (.+)$", FENCE.sub("", text_of(path)), re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def broken_links(path: str) -> Iterator[str]:
    for target in LINK.findall(FENCE.sub("", text_of(path))):
        name, _, anchor = target.partition("#")
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        place = (ROOT / path).parent / name if name else ROOT / path
        if not place.exists():
            yield f"{path}: {target}"
        elif anchor and anchor not in headings(place.resolve().relative_to(ROOT).as_posix()):
            yield f"{path}: {target} has no such heading"


def test_links_lead_somewhere() -> None:
    assert not [broken for path in MARKDOWN for broken in broken_links(path)]


def spoken(command: str) -> Iterator[tuple[str, list[str]]]:
    """Yield every command in code blocks with its arguments."""
    for path in MARKDOWN:
        for line in re.findall(rf"(?:^|`){re.escape(command)}(?: [^`\n]*)?(?=`|$)", text_of(path), re.M):
            yield path, shlex.split(line.strip("`"), comments=True)[1:]


def test_flags_of_run_are_understood() -> None:
    uses = list(spoken("./run"))
    assert uses
    for path, arguments in uses:
        try:
            supervisor.parse_options(arguments)
        except SystemExit:
            pytest.fail(f"{path}: ./run {' '.join(arguments)} is not understood")


def test_flags_of_test_are_its_own() -> None:
    """`./test` passes unknown arguments to pytest, so the documentation may use only its own."""
    uses = list(spoken("./test"))
    assert uses
    ours = set(re.findall(r'"(--[a-z-]+)"', text_of("tests/check_all.py")))
    assert "--strict" in ours
    assert not [(path, word) for path, words in uses for word in words if word.startswith("-") and word not in ours]


def length(text: str) -> int:
    """Count words of prose, without tables and dashes."""
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    return len(re.findall(r"\S*\w\S*", prose))


@pytest.mark.parametrize("path", DECISIONS)
def test_decision_is_short_and_says_what_was_rejected(path: str) -> None:
    text = text_of(path)
    assert text.startswith("# ")
    assert length(text) <= 400
    rejected = text.partition("Rejected")[2]
    assert rejected.count("\n- ") >= 2, "name at least two alternatives and why they were rejected"


def table(path: str, columns: int) -> list[list[str]]:
    rows = [line.strip().strip("|").split("|") for line in text_of(path).splitlines() if line.startswith("| **")]
    assert all(len(row) == columns for row in rows)
    return [[cell.strip() for cell in row] for row in rows]


def test_glossary_has_every_word_once() -> None:
    words = [row[0].strip("*") for row in table("docs/glossary.md", 3)]
    assert len(words) == len(set(words))
    assert not set(TERMS.split()) - set(words)


@pytest.mark.parametrize("find", [commands, variables], ids=["commands", "variables"])
def test_what_is_looked_for_is_found(find: Callable[[], set[str]]) -> None:
    """A check that finds nothing would always pass."""
    assert len(find()) >= 3
