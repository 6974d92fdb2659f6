"""Words that passwords must not be based on."""

from typing import Any

import pytest
from django.contrib.auth import password_validation
from django.core.exceptions import ValidationError


@pytest.fixture(autouse=True)
def _origin(settings: Any) -> None:
    settings.ORIGIN = "https://labeling.example.org"


@pytest.mark.parametrize("password", ["Stepmark2026", "labeling.example.org", "LABELING-123"])
def test_name_of_the_platform_is_refused(password: str) -> None:
    with pytest.raises(ValidationError) as caught:
        password_validation.validate_password(password)
    assert "platform_word" in {error.code for error in caught.value.error_list}


@pytest.mark.parametrize("password", ["seven green ladders", "a stepmark that is long enough"])
def test_other_passwords_are_accepted(password: str) -> None:
    password_validation.validate_password(password)
