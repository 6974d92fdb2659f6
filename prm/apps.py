from django.apps import AppConfig


class PrmConfig(AppConfig):
    name = "prm"

    def ready(self) -> None:
        from labeling.quality import populations
        from prm import slices

        populations.register(slices.of_id)
