from django.apps import AppConfig


class ExportsConfig(AppConfig):
    name = "exports"

    def ready(self) -> None:
        from events import append_only

        append_only.register_tables("exports_splitassignment")
