from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate

# Each claim updates an entry. If the entry's page has room for the new row version, PostgreSQL need not update any
# index.
_FILL_FACTORS = {"labeling_queueentry": 80}
_IS_SET = "SELECT 1 FROM pg_class WHERE relname = %s AND %s = ANY (reloptions)"


class LabelingConfig(AppConfig):
    name = "labeling"

    def ready(self) -> None:
        from events import append_only

        append_only.register_tables(
            "labeling_ratingedit",
            "labeling_submission",
            "labeling_guideline",
            "labeling_manifest",
            "labeling_manifestrow",
            "labeling_consensus",
            "labeling_ratermodelfit",
        )
        append_only.register_erasable_columns("labeling_ratingedit", "text", "evidence")
        append_only.register_erasable_columns("labeling_submission", "finish_note")
        append_only.register_erasable_columns("labeling_guideline", "body", "changes", "taxonomy")
        append_only.register_erasable_columns("labeling_consensus", "note")
        post_migrate.connect(set_fill_factors, sender=self)


def set_fill_factors(*, using: str, **_: Any) -> None:
    """Set the fill factor of tables after each migrate, because a model cannot define it."""
    with connections[using].cursor() as cursor:
        for table, percent in _FILL_FACTORS.items():
            cursor.execute(_IS_SET, [table, f"fillfactor={percent}"])
            if cursor.fetchone() is None:
                cursor.execute(f"ALTER TABLE {table} SET (fillfactor = {percent})")
