from django.apps import AppConfig


class PrmConfig(AppConfig):
    name = "prm"

    def ready(self) -> None:
        from labeling.quality import tally_arrays
        from prm import audit_slice

        tally_arrays.register_audit_slice(audit_slice.load_audit_slice_by_id)
