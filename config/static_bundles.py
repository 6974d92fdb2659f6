"""Join the modules of the work page, and style sheets that are loaded together, so that a page needs few requests.

Each module becomes its own function within a bundle, so that private names do not collide. Bundles exist only
among the collected files: development loads the files as they are. Syntax that this module does not support is an
error.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from posixpath import dirname, join, normpath, relpath, splitext

ENTRIES = ("js/work/work.js",)
SHEETS = {
    "css/every_page.css": ("css/tokens.css", "css/base.css", "css/components.css"),
    "css/work_page.css": ("css/work.css", "css/reader.css", "css/panel.css"),
}
_COMMON = "js/work/common.bundle.js"

_IMPORT = re.compile(r'^import (?:\{ (?P<names>[^}]+) \} from )?"(?P<target>\.[^"]+)";$', re.MULTILINE)
_LATER = re.compile(r'\bimport\("(?P<target>\.[^"]+)"\)')
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (?P<name>\w+))", re.MULTILINE)
_EXPORT_LIST = re.compile(r"^export \{ (?P<names>[\w, ]+) \};$", re.MULTILINE)
_UNKNOWN = re.compile(r"^(?:import|export)\b(?!\().*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*//.*\n|(?<=[;{},)\]]) +// [^\"'`\n]*$", re.MULTILINE)
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_SHEET_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SHEET_SPACE = re.compile(r"\s*\n\s*")

Read = Callable[[str], str]


@dataclass
class Bundle:
    """The module that other modules or a page load, and the modules that are joined with it, in their order."""

    name: str
    modules: list[str] = field(default_factory=list)  # the entry is the last one
    needs: list[str] = field(default_factory=list)  # bundles that it imports


class BundleError(Exception):
    """A module that cannot be joined."""


def bundle_name(module: str) -> str:
    return f"{splitext(module)[0]}.bundle.js"


def plan_bundles(read: Read) -> dict[str, Bundle]:
    """Return the bundles by entry: one for each module that is loaded by itself, and one for what several need."""
    entries = list(ENTRIES)
    needed_by: dict[str, list[str]] = {}
    for entry in entries:  # grows while it is read
        for module in _list_in_order(entry, read):
            needed_by.setdefault(module, []).append(entry)
            entries += [later for later in _targets(_LATER, module, read) if later not in entries]
    common = [module for module, users in needed_by.items() if len(users) > 1 and module not in entries]
    if several := [module for module in common if _targets(_LATER, module, read)]:
        raise BundleError(f"{several[0]} loads modules that import it")
    bundles = {entry: Bundle(bundle_name(entry)) for entry in entries}
    for entry, bundle in bundles.items():
        order = _list_in_order(entry, read)
        bundle.modules = [each for each in order if each not in common and (each == entry or each not in entries)]
        others = [bundles[each].name for each in order if each in entries and each != entry]
        bundle.needs = [_COMMON, *others] if any(each in common for each in order) else others
    return {"": Bundle(_COMMON, common), **bundles} if common else bundles


def _targets(pattern: re.Pattern[str], module: str, read: Read) -> list[str]:
    return [normpath(join(dirname(module), found["target"])) for found in pattern.finditer(read(module))]


def _list_in_order(entry: str, read: Read) -> list[str]:
    """Return a module after everything that it imports."""
    listed: dict[str, None] = {}

    def visit(module: str) -> None:
        for target in _targets(_IMPORT, module, read):
            if target not in listed:
                visit(target)
        listed[module] = None

    visit(entry)
    return list(listed)


def build_bundles(read: Read) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of all bundles."""
    bundles = plan_bundles(read)
    places = {module: bundle.name for bundle in bundles.values() for module in bundle.modules}
    for entry, bundle in bundles.items():
        parts = [_import_bundles(bundle, bundles, places, read)]
        parts += [_wrap(module, bundle, places, read) for module in bundle.modules if module != entry]
        if entry:
            parts.append(_link(entry, bundle, places, read))
        else:
            parts.append(f"export {{ {', '.join(map(_variable, bundle.modules))} }};\n")
        yield bundle.name, "".join(parts)


def _variable(module: str) -> str:
    return "$" + re.sub(r"\W", "_", splitext(module)[0].removeprefix("js/"))


def _relative(target: str, bundle: Bundle) -> str:
    path = relpath(target, dirname(bundle.name))
    return path if path.startswith(".") else f"./{path}"


def _import_bundles(bundle: Bundle, bundles: dict[str, Bundle], places: dict[str, str], read: Read) -> str:
    wanted = {target for module in bundle.modules for target in _targets(_IMPORT, module, read)}
    lines = []
    for name in bundle.needs:
        entry = next((entry for entry, other in bundles.items() if entry and other.name == name), "")
        names = ", ".join(sorted(_variable(module) for module in wanted if places[module] == name))
        what = f"* as {_variable(entry)}" if entry else f"{{ {names} }}"
        lines.append(f'import {what} from "{_relative(name, bundle)}";\n')
    return "".join(lines)


def _link(module: str, bundle: Bundle, places: dict[str, str], read: Read) -> str:
    """Return a module whose imports are taken from the bundles, without comments and indentation."""

    def take(found: re.Match[str]) -> str:
        target = normpath(join(dirname(module), found["target"]))
        names = (found["names"] or "").replace(" as ", ": ")
        return f"const {{ {names} }} = {_variable(target)};" if names else ""

    def load(found: re.Match[str]) -> str:
        target = normpath(join(dirname(module), found["target"]))
        return f'import("{_relative(places[target], bundle)}")'

    text = _LATER.sub(load, _IMPORT.sub(take, _COMMENT.sub("", read(module))))
    _refuse_unknown(module, text)
    return _INDENT.sub("", text)


def _refuse_unknown(module: str, text: str) -> None:
    if unknown := _UNKNOWN.search(_EXPORT.sub("", _EXPORT_LIST.sub("", text))):
        raise BundleError(f"{module}: {unknown[0]}")


def _wrap(module: str, bundle: Bundle, places: dict[str, str], read: Read) -> str:
    text = _link(module, bundle, places, read)
    names = [found["name"] for found in _EXPORT.finditer(text)]
    for found in _EXPORT_LIST.finditer(text):
        names += found["names"].split(", ")
    body = _EXPORT.sub("", _EXPORT_LIST.sub("", text))
    return f"const {_variable(module)} = await (async () => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"


def join_sheets(name: str, read: Read) -> str:
    """Return the text of joined style sheets. They are in the same folder as the bundle, so their URLs remain valid."""
    return "".join(strip_sheet(read(part)) for part in SHEETS[name])


def strip_sheet(text: str) -> str:
    """Leave out comments and indentation."""
    return _SHEET_SPACE.sub("\n", _SHEET_COMMENT.sub("", text))
