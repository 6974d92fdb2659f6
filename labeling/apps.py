from django.apps import AppConfig
from django.db.models.signals import post_migrate


class LabelingConfig(AppConfig):
    name = "labeling"

    def ready(self) -> None:
        from events import append_only
        from labeling import table_storage

        append_only.register_tables(
            "labeling_ratingedit",
            "labeling_submission",
            "labeling_guideline",
            "labeling_manifest",
            "labeling_manifestrow",
            "labeling_consensus",
            "labeling_ratermodelfit",
        )
        post_migrate.connect(table_storage.set_fill_factors, sender=self)
