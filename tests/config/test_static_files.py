"""Modules of a page and what they import."""

import re
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


_IMPORTED = re.compile(r'(?:from|import)\s*\(?\s*"(\.[^"]+)"')  # at once or later


def list_imports(path: Path) -> set[Path]:
    return {(path.parent / target).resolve() for target in _IMPORTED.findall(path.read_text())}


def test_every_module_of_the_work_page_is_loaded_at_once_or_later() -> None:
    waiting, loaded = [STATIC / "js/work/work.js"], set[Path]()
    while waiting:
        loaded.add(path := waiting.pop())
        waiting += list_imports(path) - loaded
    assert set(STATIC.glob("js/work/*.js")) <= loaded


def test_no_module_imports_itself_on_a_detour() -> None:
    """Names with a hash of the content cannot be made for modules that import each other, not even lazily."""
    imports = {path: list_imports(path) for path in STATIC.glob("js/**/*.js")}
    while leaves := {path for path, targets in imports.items() if not targets & imports.keys()}:
        imports = {path: targets for path, targets in imports.items() if path not in leaves}
    assert not imports


def test_every_imported_name_is_exported() -> None:
    """A browser reports a missing name only when it loads the module, which may be much later."""
    imported = re.compile(r'^import \{([^}]+)\} from "(\.[^"]+)";$', re.MULTILINE)
    exported = re.compile(r"^export (?:async )?(?:function|class|const|let) (\w+)|^export \{([^}]+)\}", re.MULTILINE)
    missing = []
    for path in STATIC.glob("js/**/*.js"):
        for names, target in imported.findall(path.read_text()):
            found = exported.findall((path.parent / target).resolve().read_text())
            known = {name.strip() for one, more in found for name in (one, *more.split(","))}
            wanted = {name.partition(" as ")[0].strip() for name in names.split(",")}
            missing += [(path.name, name) for name in sorted(wanted - known)]
    assert missing == []
