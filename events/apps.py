from django.apps import AppConfig
from django.core import checks
from django.db.models.signals import post_migrate


class EventsConfig(AppConfig):
    name = "events"

    def ready(self) -> None:
        from events import append_only, durability

        append_only.register_tables("events_event")
        append_only.register_erasable_columns("events_event", "detail")
        # Sent once for this app after every migrate. It creates triggers and changes no rows.
        checks.register(durability.check_durability, checks.Tags.database)  # runs before `manage.py migrate`
        post_migrate.connect(append_only.create_triggers, sender=self)
