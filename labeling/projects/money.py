"""Amounts of money as people read them: the only place that formats them."""

from decimal import ROUND_HALF_UP, Decimal

from django.utils.formats import number_format
from django.utils.translation import pgettext

_SIGNS = {"EUR": "€", "USD": "$", "GBP": "£"}


def format_money(amount: Decimal | float | None, currency: str, places: int = 2) -> str:
    """Return an amount in the usual form of the language: "€12.40" in English, with a code "CHF 12.40"."""
    if amount is None:
        return "–"
    sign = _SIGNS.get(currency)
    # Translators: the place of the currency sign. In German, for example: "%(amount)s %(sign)s".
    form = (
        pgettext("money", "%(sign)s%(amount)s") if sign else pgettext("money", "%(sign)s\N{NO-BREAK SPACE}%(amount)s")
    )
    rounded = abs(Decimal(amount)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    digits = number_format(rounded, places, use_l10n=True, force_grouping=True)
    return ("\N{MINUS SIGN}" if amount < 0 else "") + form % {"sign": sign or currency, "amount": digits}
