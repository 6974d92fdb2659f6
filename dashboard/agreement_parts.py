"""Which readings the statistics of agreement are told of: the headline, or a part that somebody asked for. Reads the
figures that were computed behind the scenes; what was not computed of a part is left out, not made up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _


@dataclass(frozen=True)
class Part:
    key: str  # as the address names it; empty for the headline
    name: str
    told: dict[str, Any]  # by statistic
    note: str = ""


def of(content: dict[str, Any]) -> list[Part]:
    """The headline first. Versions and generations stand here where there are several."""
    headline, is_slice = content["headline"], content["headline"].get("is_audit_slice")
    name, note = (
        (_("Audit slice"), _("Drawn at random, whatever a PRM chose.")) if is_slice else (_("All readings"), "")
    )
    # What is said of consensus stands with the confusion: two raters alone know no credit.
    found = [Part("", name, {**_against_consensus(content["confusion"]), **_statistics(headline)}, note)]
    if everything := content.get("everything"):
        note = _("What a PRM chose is harder than the rest: no estimate of the project.")
        found.append(Part("every-arm", _("Every arm"), _statistics(everything), note))
    for dimension, named in (("guideline", guideline), ("generation", generation)):
        rows = content[dimension]
        if len(rows) > 1:
            found += [Part(f"{dimension}-{each['key']}", named(each["key"], True), _statistics(each)) for each in rows]
    return found


def chosen(parts: Sequence[Part], key: str) -> Part:
    return next((each for each in parts if each.key == key), parts[0])


def _statistics(told: dict[str, Any]) -> dict[str, Any]:
    return {**told["steps"], **told["first_error"]}


def _against_consensus(told: dict[str, Any]) -> dict[str, Any]:
    return told | {f"recall {value}": share for value, share in told.get("recall", {}).items()}


def guideline(version: int, is_alone: bool = False) -> str:
    """`is_alone`: no heading says what it is a version of."""
    if version < 0:
        return _("two guidelines met") if is_alone else _("two versions met")
    if not version:
        return _("no guideline") if is_alone else _("none")
    return (_("guideline %(n)d") if is_alone else _("version %(n)d")) % {"n": version}


def generation(number: int, is_alone: bool = False) -> str:
    if not number:
        return _("before generation 1") if is_alone else _("before the first")
    return _("generation %(n)d") % {"n": number} if is_alone else str(number)
