"""Modules of a page and what they import."""

from pathlib import Path

import pytest

from config.static_files import list_imported_modules

STATIC = Path(__file__).parents[2] / "static"


@pytest.mark.parametrize("entry", ["js/work/work.js", "js/dashboard/trace_texts.js"])
def test_imported_modules_are_found(entry: str) -> None:
    imported = list_imported_modules(entry)
    assert imported
    assert len(set(imported)) == len(imported)
    assert all((STATIC / path).is_file() for path in imported)


def test_every_module_of_the_work_page_is_preloaded() -> None:
    modules = {path.relative_to(STATIC).as_posix() for path in STATIC.glob("js/work/*.js")}
    assert {"js/work/work.js", *list_imported_modules("js/work/work.js")} == modules
