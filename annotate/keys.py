"""Keyboard shortcuts of the work page: the defaults, and the form with which a user changes them.

A user's keys are stored with the user and apply on all their devices."""

import json
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User

# Action -> default key and name, in the order in which the settings page lists them.
_ACTIONS = {
    "negative": ("1", gettext_lazy("Rate negative")),
    "neutral": ("2", gettext_lazy("Rate neutral")),
    "positive": ("3", gettext_lazy("Rate positive")),
    "next": ("j", gettext_lazy("Next step (↓ always works)")),
    "previous": ("k", gettext_lazy("Previous step (↑ always works)")),
    "unrated": ("n", gettext_lazy("Next unrated step")),
    "unsure": ("u", gettext_lazy("Mark as unsure")),
    "recovery": ("m", gettext_lazy("Mark recovery from an error")),
    "comment": ("c", gettext_lazy("Comment")),
    "quote": ("v", gettext_lazy("Quote the selected text as evidence")),
    "clause": ("l", gettext_lazy("Cite a clause of the guideline")),
    "missing": ("i", gettext_lazy("Note what is missing after the step")),
    "undo": ("z", gettext_lazy("Undo")),
    "submit": ("Enter", gettext_lazy("Submit")),
    "edit": ("e", gettext_lazy("Edit the last submission")),
    "explain": ("w", gettext_lazy("Describe the error")),
    "open_output": ("o", gettext_lazy("Open or close output (Shift: all output)")),
    "find": ("f", gettext_lazy("Find in the trace")),
    "go_to": ("t", gettext_lazy("Go to a step by its number")),
    "source": ("x", gettext_lazy("Show the step’s source (Shift: the problem’s source)")),
    "copy": ("y", gettext_lazy("Copy the step")),
    "enlarge": ("p", gettext_lazy("Enlarge an image")),
    "differences": ("d", gettext_lazy("Compare alternatives")),
    "skip": ("s", gettext_lazy("Skip")),
    "give_up": ("g", gettext_lazy("Give up")),
    "report": ("b", gettext_lazy("Report problem")),
    "guide": ("r", gettext_lazy("Show rules and guideline")),
    "ask": ("q", gettext_lazy("Ask the leads about the step")),
    "help": ("?", gettext_lazy("Show shortcuts")),
}
_MODE = "mode"
_MODES = (
    ("on", gettext_lazy("On")),
    ("focus", gettext_lazy("Only while a step has focus")),
    ("off", gettext_lazy("Off")),
)
DEFAULTS = {action: key for action, (key, _name) in _ACTIONS.items()}
# Named keys that can be assigned. The arrows, Tab, Escape and the space bar have fixed meanings.
_NAMED_KEYS = {name.lower(): name for name in ("Enter", "Backspace", "Delete", "Insert", "Home", "End")}


def load_keys(user: User) -> dict[str, str]:
    """Return action -> key for this user. A default key that they use for something else is left out."""
    changed = {action: key for action, key in _load(user).items() if action in DEFAULTS}
    taken = set(changed.values())
    return {action: changed.get(action, "" if key in taken else key) for action, key in DEFAULTS.items()}


def load_mode(user: User) -> str:
    """Return when shortcuts of a single character work: "on", "focus" or "off"."""
    return _load(user).get(_MODE, _MODES[0][0])


def _load(user: User) -> dict[str, str]:
    stored: dict[str, str] = json.loads(user.work_keys or "{}")
    return stored


class KeysForm(forms.Form):
    """One key per action, all different."""

    mode = forms.ChoiceField(
        label=gettext_lazy("Single-character shortcuts"),
        choices=_MODES,
        required=False,
        help_text=gettext_lazy("Turn them off if you use speech input. Enter and the arrow keys always work."),
    )

    def __init__(self, data: Any = None, *, user: User) -> None:
        super().__init__(data, initial={**load_keys(user), _MODE: load_mode(user)})
        for action, (_key, name) in _ACTIONS.items():
            field = forms.CharField(label=name, max_length=12, strip=False)
            field.widget.attrs = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false", "size": 6}
            self.fields[action] = field

    def clean(self) -> dict[str, Any]:
        keys: dict[str, str] = {}
        mode = self.cleaned_data.pop(_MODE, "") or _MODES[0][0]
        for action, typed in list(self.cleaned_data.items()):
            key = _normalize_key(typed)
            if key is None:
                message = _("Enter one character, or one of: %(names)s.") % {"names": ", ".join(_NAMED_KEYS.values())}
                self.add_error(action, forms.ValidationError(message, code="invalid_key"))
            elif key in keys.values():
                first = next(name for name, taken in keys.items() if taken == key)
                is_first_new = first in self.changed_data and action not in self.changed_data
                wrong, other = (first, action) if is_first_new else (action, first)
                message = _("“%(key)s” is already used for “%(action)s”.") % {"key": key, "action": _ACTIONS[other][1]}
                self.add_error(wrong, forms.ValidationError(message, code="duplicate_key"))
            else:
                keys[action] = key
        return {**keys, _MODE: mode}

    def changes(self) -> dict[str, str]:
        """Return what differs from the defaults."""
        defaults = {**DEFAULTS, _MODE: _MODES[0][0]}
        return {name: value for name, value in self.cleaned_data.items() if defaults[name] != value}


def _normalize_key(typed: str) -> str | None:
    """Return the browser's name of the key, or None. Letters are lower-cased, so that Caps Lock has no effect."""
    if len(typed) == 1:
        return typed.lower() if typed.isprintable() and not typed.isspace() else None
    return _NAMED_KEYS.get(typed.strip().lower())
