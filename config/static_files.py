"""Static files under names that contain their hash, compressed in advance, so that browsers cache them forever."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.files.base import ContentFile
from whitenoise.storage import CompressedManifestStaticFilesStorage

from config import static_bundles

_IMPORT = re.compile(r'^import .*from "(\.[^"]+)";$', re.MULTILINE)


class ModuleStaticStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise ships no types
    support_js_module_import_aggregation = True  # relative imports point to the hashed files
    has_bundles = True

    def post_process(self, paths: dict[str, Any], dry_run: bool = False, **options: Any) -> Iterator[Any]:
        """Add the bundles before the names get their hashes."""
        for name, text in () if dry_run else _build():
            self.delete(name)
            paths[name] = (self, self.save(name, ContentFile(text.encode())))
        yield from super().post_process(paths, dry_run=dry_run, **options)


def _build() -> Iterator[tuple[str, str]]:
    yield from static_bundles.build_bundles(read_source)
    for sheet in static_bundles.SHEETS:
        yield sheet, static_bundles.join_sheets(sheet, read_source)


def read_source(path: str) -> str:
    """Return the text of a static file as it was written."""
    source = finders.find(path)
    return Path(source).read_text() if isinstance(source, str) else ""


def choose_scripts(path: str) -> tuple[str, tuple[str, ...]]:
    """Return the file of a module, and those that it imports: its bundle, if there is one among the collected files."""
    if _has_bundles() and (bundle := _plan().get(path)):
        return bundle.name, tuple(bundle.needs)
    return path, list_imported_modules(path)


def choose_sheets(name: str) -> tuple[str, ...]:
    """Return the files of style sheets that are loaded together: one, if it is among the collected files."""
    return (name,) if _has_bundles() else static_bundles.SHEETS[name]


def _has_bundles() -> bool:
    return getattr(staticfiles_storage, "has_bundles", False)


@cache
def _plan() -> dict[str, static_bundles.Bundle]:
    return static_bundles.plan_bundles(read_source)


@cache
def list_imported_modules(path: str) -> tuple[str, ...]:
    """List the modules that a JavaScript module imports, directly or not. One that is missed only loads later."""
    direct = [normpath(join(dirname(path), target)) for target in _IMPORT.findall(read_source(path))]
    return tuple(dict.fromkeys([*direct, *(found for module in direct for found in list_imported_modules(module))]))
