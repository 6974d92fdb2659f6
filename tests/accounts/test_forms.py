"""What people type to get in."""

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
def test_a_name_does_not_turn_what_stands_after_it(typed: str, kept: str) -> None:
    form = NewAccountForm({"username": "amal", "name": typed, "password": "a long way home"})
    assert form.is_valid()
    assert form.cleaned_data["name"] == kept
