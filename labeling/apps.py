from django.apps import AppConfig
from django.db.models.signals import post_migrate


class LabelingConfig(AppConfig):
    name = "labeling"

    def ready(self) -> None:
        from events import append_only
        from labeling import pages

        append_only.register(
            "labeling_write",
            "labeling_submission",
            "labeling_guideline",
            "labeling_manifest",
            "labeling_manifestrow",
            "labeling_consensus",
            "labeling_fit",
        )
        post_migrate.connect(pages.on_migrated, sender=self)  # moves no data: it says how tables are packed
