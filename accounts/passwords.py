"""A password validator for words that belong to this platform."""

from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from accounts.models import User

LEAST_REST = 6  # characters besides the word


class PlatformWordValidator:
    """Refuse passwords that consist of the name or host of the platform and little else."""

    def validate(self, password: str, user: User | None = None) -> None:
        text = password.lower()
        for word in _list_words():
            if word in text and len(text) - len(word) < LEAST_REST:
                raise ValidationError(
                    _("Choose a password that is not based on this platform’s name."), code="platform_word"
                )

    def get_help_text(self) -> str:
        return _("Your password cannot be based on this platform’s name.")


def _list_words() -> set[str]:
    host = urlsplit(settings.ORIGIN).hostname or ""
    return {"stepmark", host.lower(), host.partition(".")[0].lower()} - {""}
