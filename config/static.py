"""Static files under names that carry their hash, compressed ahead, to be kept by browsers for ever."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class Storage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise ships no types
    # Modules import each other by relative names: these must point to the hashed files too.
    support_js_module_import_aggregation = True
