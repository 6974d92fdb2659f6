"""Static files under names that contain their hash, compressed in advance, so that browsers cache them forever."""

import re
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath

from django.contrib.staticfiles import finders
from whitenoise.storage import CompressedManifestStaticFilesStorage

_IMPORT = re.compile(r'^import .*from "(\.[^"]+)";$', re.MULTILINE)


class ModuleStaticStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise ships no types
    support_js_module_import_aggregation = True  # relative imports point to the hashed files


@cache
def list_imported_modules(path: str) -> tuple[str, ...]:
    """List the modules that a JavaScript module imports, directly or not. One that is missed only loads later."""
    source = finders.find(path)
    text = Path(source).read_text() if isinstance(source, str) else ""
    direct = [normpath(join(dirname(path), target)) for target in _IMPORT.findall(text)]
    return tuple(dict.fromkeys([*direct, *(found for module in direct for found in list_imported_modules(module))]))
