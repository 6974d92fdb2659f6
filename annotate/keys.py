"""Which key does what on the work page: as it comes, or as a person likes it. A person's choice is kept with the user
and is the same on every machine."""

import json
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User

# What is done, and by which key before a person says otherwise; in the order in which the page tells it.
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
    "next": gettext_lazy("Next step (↓ works always)"),
    "previous": gettext_lazy("Previous step (↑ works always)"),
    "unsure": gettext_lazy("Unsure"),
    "comment": gettext_lazy("Comment"),
    "undo": gettext_lazy("Undo"),
    "submit": gettext_lazy("Submit"),
    "skip": gettext_lazy("Skip"),
    "give_up": gettext_lazy("Give up"),
    "report": gettext_lazy("Bad problem"),
    "help": gettext_lazy("All keys"),
}
# Keys with a name that may be given a meaning. The arrows, Tab, Escape and the space bar have one already.
_NAMED_KEYS = {name.lower(): name for name in ("Enter", "Backspace", "Delete", "Insert", "Home", "End")}


def load_keys(user: User) -> dict[str, str]:
    """What is done -> key. What is new since the person chose has its own key, if nobody has that yet."""
    mine = {action: key for action, key in json.loads(user.work_keys or "{}").items() if action in DEFAULTS}
    taken = set(mine.values())
    return {action: mine.get(action, "" if key in taken else key) for action, key in DEFAULTS.items()}


class KeysForm(forms.Form):
    """A key for each thing. One key can do one thing."""

    def __init__(self, typed: Any = None, *, user: User) -> None:
        super().__init__(typed, initial=load_keys(user))
        for action, name in _NAMES.items():
            field = forms.CharField(label=name, max_length=12, strip=False)
            field.widget.attrs = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false", "size": 6}
            self.fields[action] = field

    def clean(self) -> dict[str, Any]:
        keys: dict[str, str] = {}
        for action, typed in list(self.cleaned_data.items()):
            key = _normalize_key(typed)
            if key is None:
                self.add_error(
                    action, _("One character, or one of: %(names)s.") % {"names": ", ".join(_NAMED_KEYS.values())}
                )
            elif key in keys.values():
                other = next(name for name, taken in keys.items() if taken == key)
                self.add_error(
                    action, _("“%(key)s” does this already: %(other)s.") % {"key": key, "other": _NAMES[other]}
                )
            else:
                keys[action] = key
        return keys


def _normalize_key(typed: str) -> str | None:
    """As the browser names it: letters small, so that a locked shift changes nothing."""
    if len(typed) == 1:
        return typed.lower() if typed.isprintable() and not typed.isspace() else None
    return _NAMED_KEYS.get(typed.strip().lower())
