from django.apps import AppConfig


class ExportsConfig(AppConfig):
    name = "exports"

    def ready(self) -> None:
        from events import append_only, backup
        from exports import snapshots

        append_only.register_tables("exports_splitassignment")
        backup.look_for_files_after_restore(snapshots.describe_lost_files)
