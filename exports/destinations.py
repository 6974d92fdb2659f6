"""Where leads may have snapshots sent to: places that whoever runs the platform has set up, by name. Nobody types an
address or a key into a page. Reads the settings, knows no rows."""

from collections.abc import Iterable

from django.conf import settings

from exports.orders import InvalidOrder

S3, HUB = "s3://", "hf://"


def configured_destinations() -> dict[str, str]:
    """Addresses by name."""
    return dict(settings.DESTINATIONS)


def validate_destinations(names: Iterable[str]) -> None:
    """Raises Unfit where one of them is not set up."""
    known = configured_destinations()
    unknown = sorted(set(names) - known.keys())
    if unknown:
        listed = ", ".join(known) or "none"
        raise InvalidOrder(f"There is no destination called {', '.join(unknown)}. Set up are: {listed}.")


def build_address(name: str, *, project: str, snapshot: str) -> str:
    """Below a prefix each snapshot has a folder of its own; below an owner on the hub, a repository."""
    base = configured_destinations()[name].rstrip("/")
    if base.startswith(HUB):
        return base if "/" in base.removeprefix(HUB) else f"{base}/{snapshot}"
    return f"{base}/{project}/{snapshot}"
