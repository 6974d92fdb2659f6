"""Keyboard shortcuts of the work page: the defaults, and the form with which a user changes them.

A user's keys are stored with the user and apply on all their devices."""

import json
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User

# Action -> default key, in the order in which the settings page lists them.
DEFAULTS = {
    "negative": "1",
    "neutral": "2",
    "positive": "3",
    "next": "j",
    "previous": "k",
    "unsure": "u",
    "comment": "c",
    "undo": "z",
    "submit": "Enter",
    "skip": "s",
    "give_up": "g",
    "report": "b",
    "help": "?",
}
_NAMES = {
    "negative": gettext_lazy("Rate negative"),
    "neutral": gettext_lazy("Rate neutral"),
    "positive": gettext_lazy("Rate positive"),
    "next": gettext_lazy("Next step (↓ always works)"),
    "previous": gettext_lazy("Previous step (↑ always works)"),
    "unsure": gettext_lazy("Mark as unsure"),
    "comment": gettext_lazy("Comment"),
    "undo": gettext_lazy("Undo"),
    "submit": gettext_lazy("Submit"),
    "skip": gettext_lazy("Skip"),
    "give_up": gettext_lazy("Give up"),
    "report": gettext_lazy("Report problem"),
    "help": gettext_lazy("Show shortcuts"),
}
# Named keys that can be assigned. The arrows, Tab, Escape and the space bar have fixed meanings.
_NAMED_KEYS = {name.lower(): name for name in ("Enter", "Backspace", "Delete", "Insert", "Home", "End")}


def load_keys(user: User) -> dict[str, str]:
    """Return action -> key for this user. A default key that they use for something else is left out."""
    changed = {action: key for action, key in json.loads(user.work_keys or "{}").items() if action in DEFAULTS}
    taken = set(changed.values())
    return {action: changed.get(action, "" if key in taken else key) for action, key in DEFAULTS.items()}


class KeysForm(forms.Form):
    """One key per action, all different."""

    def __init__(self, data: Any = None, *, user: User) -> None:
        super().__init__(data, initial=load_keys(user))
        for action, name in _NAMES.items():
            field = forms.CharField(label=name, max_length=12, strip=False)
            field.widget.attrs = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false", "size": 6}
            self.fields[action] = field

    def clean(self) -> dict[str, Any]:
        keys: dict[str, str] = {}
        for action, typed in list(self.cleaned_data.items()):
            key = _normalize_key(typed)
            if key is None:
                message = _("Enter one character, or one of: %(names)s.") % {"names": ", ".join(_NAMED_KEYS.values())}
                self.add_error(action, forms.ValidationError(message, code="invalid_key"))
            elif key in keys.values():
                other = _NAMES[next(name for name, taken in keys.items() if taken == key)]
                message = _("“%(key)s” is already used for “%(action)s”.") % {"key": key, "action": other}
                self.add_error(action, forms.ValidationError(message, code="duplicate_key"))
            else:
                keys[action] = key
        return keys


def _normalize_key(typed: str) -> str | None:
    """Return the browser's name of the key, or None. Letters are lower-cased, so that Caps Lock has no effect."""
    if len(typed) == 1:
        return typed.lower() if typed.isprintable() and not typed.isspace() else None
    return _NAMED_KEYS.get(typed.strip().lower())
