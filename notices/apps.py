from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "notices"

    def ready(self) -> None:
        from events import audit_log
        from notices.kinds import NOTICE_KINDS

        audit_log.queue_events(*NOTICE_KINDS)
