"""Forms of accounts."""

import pytest

from accounts.forms import NewAccountForm

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("Amal\u202e Haddad\u2066", "Amal Haddad"),
        ("\u05d3\u05e0\u05d4 \U0001f642", "\u05d3\u05e0\u05d4 \U0001f642"),
        ("", ""),
    ],
)
def test_direction_overrides_are_removed_from_names(typed: str, kept: str) -> None:
    form = NewAccountForm({"username": "amal", "name": typed, "password": "a long way home"})
    assert form.is_valid()
    assert form.cleaned_data["name"] == kept
