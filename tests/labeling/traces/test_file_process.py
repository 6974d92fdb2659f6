"""The process that inspects files gives the same answers as this process would."""

from pathlib import Path

import pytest

from formats import catalog, input_files
from labeling.traces import file_process, import_preview, scan
from labeling.traces.scan import ImportOptions

pytestmark = pytest.mark.fault

RECORD = '{"problem": "What is 6 * 7?", "steps": ["6 * 7 = 42."]}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "traces.jsonl"
    path.write_text(RECORD + "broken\n")
    return path


def test_preview_is_that_of_this_process(path: Path) -> None:
    options = ImportOptions(private="mask")
    preview = file_process.preview_file(path, options)
    assert preview == import_preview.preview_file(path, ImportOptions(private="mask", format=preview.format))
    assert len(preview.first) == 1
    assert preview.report.bad == 1


def test_format_is_detected(path: Path) -> None:
    assert file_process.detect_format(path, ImportOptions()) == scan.resolve_format(path, ImportOptions())
    assert file_process.detect_format(path, ImportOptions(format="trl")) == "trl"


def test_errors_are_those_of_this_process(tmp_path: Path) -> None:
    with pytest.raises(input_files.UnreadableFile):
        file_process.detect_format(tmp_path / "missing.jsonl", ImportOptions())
    odd = tmp_path / "odd.jsonl"
    odd.write_text('{"nothing": "known"}\n')
    with pytest.raises(catalog.UnknownFormat):
        file_process.preview_file(odd, ImportOptions())


def test_large_preview_has_fewer_examples(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    record = RECORD.replace("6 * 7?", "6 * 7? " + "x" * (file_process.MAX_ANSWER // 2))
    path.write_text(record * 3)
    preview = file_process.preview_file(path, ImportOptions(format="native"))
    assert (len(preview.first), preview.report.records) == (1, 3)


def test_helper_that_died_is_started_again(path: Path) -> None:
    file_process.detect_format(path, ImportOptions())
    process = file_process._helper._process
    assert process is not None
    process.kill()
    process.wait()
    assert file_process.detect_format(path, ImportOptions()) == "native"
