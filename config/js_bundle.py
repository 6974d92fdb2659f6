"""Puts a module and all that it imports into one file, so that a page asks for one instead of ten. Pure text: no tool
from outside, and in development the modules are served as they are.

Each imported module becomes a function that runs once and gives what it exports, in the order of the imports. Forms
that our modules do not use (default exports, `export *`, imports that run at a later time) are refused, never guessed.
"""

import posixpath
import re
from collections.abc import Callable

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:(?:async )?function|class|const|let) (\w+))", re.MULTILINE)
_EXPORT_LIST = re.compile(r"^export \{([^}]*)\};\n", re.MULTILINE)
_UNSUPPORTED = re.compile(r"^\s*(?:import|export)\b.*|\bimport\(.*", re.MULTILINE)


class CannotBundle(Exception):
    """A module says something that this does not understand."""


def bundle_modules(entry: str, read: Callable[[str], str]) -> str:
    """One module that does what `entry` does; `read` gives the text of a module by its path."""
    order: list[str] = []
    texts: dict[str, str] = {}
    _collect_modules(entry, read, order, texts, ())
    *imported, last = order
    names = {path: f"_{number}" for number, path in enumerate(order)}
    parts = [_wrap_module(path, texts[path], names) for path in imported]
    return "\n".join([*parts, _link_imports(last, texts[last], names)])


def _collect_modules(
    path: str, read: Callable[[str], str], order: list[str], texts: dict[str, str], above: tuple[str, ...]
) -> None:
    """Imported modules before those that import them."""
    if path in above:
        raise CannotBundle(f"{path} imports itself by way of {above[-1]}")
    if path in texts:
        return
    texts[path] = read(path)
    for _, target in _IMPORT.findall(texts[path]):
        _collect_modules(_resolve_path(path, target), read, order, texts, (*above, path))
    order.append(path)


def _wrap_module(path: str, text: str, names: dict[str, str]) -> str:
    exported = _EXPORT.findall(text) + [
        name.strip() for found in _EXPORT_LIST.findall(text) for name in found.split(",")
    ]
    body = _EXPORT_LIST.sub("", _EXPORT.sub("", text))
    linked = _link_imports(path, body, names)
    return f"const {names[path]} = (() => {{\n{linked}return {{ {', '.join(exported)} }};\n}})();"


def _link_imports(path: str, text: str, names: dict[str, str]) -> str:
    def link(found: re.Match[str]) -> str:
        wanted = found[1].replace(" as ", ": ")
        return f"const {{{wanted}}} = {names[_resolve_path(path, found[2])]};\n"

    linked = _IMPORT.sub(link, text)
    if left := _UNSUPPORTED.search(linked):
        raise CannotBundle(f"{path}: {left[0].strip()}")
    return linked


def _resolve_path(path: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
