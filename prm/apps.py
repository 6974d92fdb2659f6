from django.apps import AppConfig


class PrmConfig(AppConfig):
    name = "prm"

    def ready(self) -> None:
        from labeling.quality import tallies
        from prm import drawable_pool

        tallies.register_audit_slice(drawable_pool.load_audit_slice)
