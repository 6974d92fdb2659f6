"""Private data in texts."""

import pytest

from formats.privacy import count_private, mask_text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Write to jane.doe+x@mail.example.org today.", "email"),
        ("Call +49 30 1234 5678 now.", "phone"),
        ("Call (415) 555-2671.", "phone"),
        ("415-555-2671", "phone"),
        ("token ghp_" + "a1B2" * 9, "key"),
        ("export KEY=sk-" + "abcDEF123" * 4, "key"),
        ("AKIA" + "ABCDEFGH12345678", "key"),
        ("-----BEGIN RSA PRIVATE KEY-----", "key"),
    ],
)
def test_private_data_is_counted_by_kind_and_masked(text: str, kind: str) -> None:
    assert dict(count_private([text])) == {kind: 1}
    assert not count_private([mask_text(text)])


@pytest.mark.parametrize(
    "text",
    [
        "123 - 456 = -333 and 100-200-300+5",
        "$x^{10}+123456789012$",
        "2023-11-18 and 555-2671",
        "f@x for @ all",
        "task-abcdefghijklmnopqrstuvwxyz",
        "12 + 3456 - 7890 + 1234",
        "x+123 456 789 012",
    ],
)
def test_mathematics_is_not_private(text: str) -> None:
    assert not count_private([text])
    assert mask_text(text) == text
