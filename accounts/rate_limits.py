"""All rate limits: who may do what how often.

A limit is a bucket of `amount` units that refills evenly in `seconds` (GCRA). The buckets are in Redis, so that all
processes share them. While Redis is away each process counts for itself: the platform keeps working, and guessing
passwords stays slow. The web server limits large uploads of an address before all of this (config/web_worker.py).
"""

import hashlib
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any, NamedTuple

from allauth.account.adapter import get_adapter
from allauth.core.internal.ratelimit import truncate_ip
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from redis import Redis
from redis.exceptions import RedisError

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
MB = 1024.0**2


class Limit(NamedTuple):
    per: str  # whose bucket it is
    amount: float
    seconds: float


LIMITS: dict[str, tuple[Limit, ...]] = {
    # Crowd raters may share an address.
    "login": (Limit("address", 30, MINUTE),),
    "login_failed": (Limit("address", 10, MINUTE), Limit("account", 5, 5 * MINUTE)),
    "second_factor": (Limit("account", 5, 5 * MINUTE),),
    "confirm": (Limit("account", 10, MINUTE),),
    "change_password": (Limit("account", 5, MINUTE),),
    "link": (Limit("address", 20, MINUTE),),
    "join": (Limit("address", 60, MINUTE), Limit("invitation", 300, MINUTE)),
    # A form that says that a name is taken tells strangers which accounts exist.
    "name_taken": (Limit("address", 10, HOUR), Limit("invitation", 60, HOUR)),
    "make_token": (Limit("account", 10, HOUR),),
    "api": (Limit("token", 600, MINUTE),),
    "api_failed": (Limit("address", 30, MINUTE),),
    "api_anonymous": (Limit("address", 60, MINUTE),),
    "upload": (Limit("account", 60, HOUR), Limit("project", 240, HOUR)),
    "claim": (Limit("rater", 120, MINUTE),),
    # Edits are never deleted, so these also limit what one rater can add to the database.
    "writes": (Limit("rater", 1200, MINUTE), Limit("assignment", 20_000, DAY)),
    "write_bytes": (Limit("rater", 2 * MB, MINUTE), Limit("rater", 100 * MB, DAY), Limit("assignment", 10 * MB, DAY)),
}
REDIS_PAUSE = 5.0  # seconds until Redis is tried again after it did not respond
MAX_LOCAL_BUCKETS = 50_000

# A bucket is stored as the time at which it is full again. Nothing is counted if one of the buckets is too empty.
_SCRIPT = """
local now = tonumber(ARGV[1])
local wait, full = 0, {}
for i, key in ipairs(KEYS) do
  local cost, seconds = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  full[i] = math.max(tonumber(redis.call("GET", key) or "0"), now) + cost
  wait = math.max(wait, full[i] - seconds - now)
end
if wait <= 0.001 then
  for i, key in ipairs(KEYS) do
    redis.call("SET", key, string.format("%.4f", full[i]), "PX", math.max(1, math.ceil((full[i] - now) * 1000)))
  end
end
return string.format("%.4f", wait)
"""


class Charge(NamedTuple):
    """What an action takes from one bucket, both in seconds."""

    key: str
    cost: float
    seconds: float


class TooManyRequests(Exception):
    """The limit of an action is reached."""

    def __init__(self, seconds: float) -> None:
        self.seconds = max(1, math.ceil(seconds))
        super().__init__(f"too many requests: wait {self.seconds} seconds")


def take(actions: Mapping[str, float], *, now: float, **keys: object) -> None:
    """Take units from the buckets of some actions. Raises TooManyRequests, and takes nothing, if one is too empty.

    An action applies the limits whose `per` is among `keys`. More units than a bucket holds count as a full bucket, so
    that nothing is refused forever. Negative units are given back.
    """
    factor = settings.RATE_LIMIT_FACTOR
    if not factor:
        return
    charges = [
        Charge(
            f"limit:{action}:{limit.per}:{int(limit.seconds)}:{keys[limit.per]}",
            min(1.0, units / (limit.amount * factor)) * limit.seconds,
            limit.seconds,
        )
        for action, units in actions.items()
        for limit in LIMITS[action]
        if limit.per in keys
    ]
    wait = _buckets().take(charges, now=now)
    if wait > 0.001:
        raise TooManyRequests(wait)


def limit_request(request: HttpRequest, action: str, **keys: object) -> HttpResponse | None:
    """Count a request for a page. Return the page that says to wait if the limit is reached."""
    try:
        take({action: 1}, now=time.time(), address=client_address(request), **keys)
    except TooManyRequests as error:
        return render_wait(request, error)
    return None


def limit_posts(action: str) -> Callable[[Callable[..., HttpResponseBase]], Callable[..., HttpResponseBase]]:
    """Limit the POST requests of a page, by address and by account."""

    def decorate(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def limited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.method == "POST":
                keys: dict[str, object] = {"account": request.user.pk} if request.user.is_authenticated else {}
                if "token" in kwargs:
                    keys["invitation"] = hash_key(kwargs["token"])
                if refusal := limit_request(request, action, **keys):
                    return refusal
            return view(request, *args, **kwargs)

        return limited

    return decorate


def render_wait(request: HttpRequest, error: TooManyRequests) -> HttpResponse:
    context = {"seconds": error.seconds, "minutes": math.ceil(error.seconds / 60)}
    response = render(request, "429.html", context, status=429)
    response.headers["Retry-After"] = str(error.seconds)
    return response


def client_address(request: HttpRequest) -> str:
    """Return the address behind the trusted proxies. An IPv6 network counts as one address."""
    return str(truncate_ip(get_adapter().get_client_ip(request)))


def hash_key(text: str) -> str:
    """Return a key for a name or a secret, so that Redis does not store the value itself."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]


class _Buckets:
    """The buckets in Redis, and in this process while Redis is away."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        self._run = Redis.from_url(url, **options).register_script(_SCRIPT)
        self._away_until = 0.0
        self._local: dict[str, float] = {}
        self._lock = threading.Lock()

    def take(self, charges: Sequence[Charge], *, now: float) -> float:
        """Return the seconds to wait, 0 if the units were taken."""
        if time.monotonic() >= self._away_until:
            numbers = [number for charge in charges for number in (charge.cost, charge.seconds)]
            try:
                return float(self._run(keys=[charge.key for charge in charges], args=[now, *numbers]))
            except RedisError:
                self._away_until = time.monotonic() + REDIS_PAUSE
        with self._lock:
            return self._take_locally(charges, now)

    def _take_locally(self, charges: Sequence[Charge], now: float) -> float:
        full = {charge.key: max(self._local.get(charge.key, 0.0), now) + charge.cost for charge in charges}
        wait = max((full[charge.key] - charge.seconds - now for charge in charges), default=0.0)
        if wait <= 0.001:
            if len(self._local) > MAX_LOCAL_BUCKETS:
                self._local = {key: at for key, at in self._local.items() if at > now}
            self._local |= full
        return max(0.0, wait)


def _buckets() -> _Buckets:
    return _connect(str(settings.CACHES["default"]["LOCATION"]))


@lru_cache(maxsize=4)
def _connect(url: str) -> _Buckets:
    return _Buckets(url, settings.REDIS_CACHE_OPTIONS)
