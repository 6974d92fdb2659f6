"""Amounts of money as people read them."""

from decimal import Decimal

import pytest

from labeling.projects.money import format_money


@pytest.mark.parametrize(
    ("amount", "currency", "places", "shown"),
    [
        (Decimal("12.4"), "EUR", 2, "€12.40"),
        (1234567.5, "USD", 2, "$1,234,567.50"),
        (Decimal("-3"), "GBP", 2, "−£3.00"),
        (0, "CHF", 2, "CHF\N{NO-BREAK SPACE}0.00"),
        (Decimal("0.0125"), "EUR", 3, "€0.013"),
        (None, "EUR", 2, "–"),
    ],
)
def test_amounts_have_the_usual_form(amount: Decimal | float | None, currency: str, places: int, shown: str) -> None:
    assert format_money(amount, currency, places) == shown
