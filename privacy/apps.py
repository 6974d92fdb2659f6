from django.apps import AppConfig


class PrivacyConfig(AppConfig):
    name = "privacy"

    def ready(self) -> None:
        from events import backup
        from privacy import revocation_replay

        backup.call_after_restore(revocation_replay.repeat_revocations)
