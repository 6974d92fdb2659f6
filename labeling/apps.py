from django.apps import AppConfig


class LabelingConfig(AppConfig):
    name = "labeling"

    def ready(self) -> None:
        from events import append_only
        from jobs import yielding
        from labeling import judging

        append_only.register(
            "labeling_write",
            "labeling_submission",
            "labeling_guideline",
            "labeling_manifest",
            "labeling_manifestrow",
            "labeling_consensus",
        )
        yielding.register(judging.somebody_judged_since)
