from django.apps import AppConfig
from django.db.models.signals import post_migrate


class EventsConfig(AppConfig):
    name = "events"

    def ready(self) -> None:
        from events import append_only

        append_only.register_tables("events_event")
        # Sent once for this app after every migrate. It creates triggers and changes no rows.
        post_migrate.connect(append_only.create_triggers, sender=self)
