"""Static files under names that carry their hash, compressed in advance, which browsers keep forever."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.core.files.base import ContentFile
from whitenoise.storage import CompressedManifestStaticFilesStorage

from config.js_bundle import bundle_modules

# Modules that import many others. As one file each they cost a page one request.
BUNDLE_ENTRIES = ("js/work/work.js",)


class BundledStaticStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise ships no types
    # Modules import each other by relative names: these must point to the hashed files too.
    support_js_module_import_aggregation = True

    def post_process(self, paths: dict[str, Any], dry_run: bool = False, **options: Any) -> Iterator[Any]:
        for path in BUNDLE_ENTRIES:
            if path in paths and not dry_run:
                self.delete(path)
                self.save(path, ContentFile(bundle_modules(path, _read_source)))
                paths = {**paths, path: (self, path)}  # to be hashed as it is now
        yield from super().post_process(paths, dry_run, **options)


def _read_source(path: str) -> str:
    """Read the source file, not a previously collected copy."""
    found = finders.find(path)
    if not isinstance(found, str):
        raise FileNotFoundError(path)
    return Path(found).read_text()
