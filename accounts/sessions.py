"""Sessions and their users, which one prepared statement loads together.

They are not cached: a cache lookup takes as long as the query, and a session that was ended would remain in the
cache. allauth's backend checks passwords; the one here loads the user of each request."""

import datetime as dt
import hashlib
from contextvars import ContextVar
from typing import Any, NamedTuple, cast

import orjson
from allauth.account.adapter import get_adapter
from allauth.account.auth_backends import AuthenticationBackend
from django.conf import settings
from django.contrib import auth
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import CreateError, UpdateError
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.db import DEFAULT_DB_ALIAS, DatabaseError, IntegrityError, transaction
from django.db.models import DateTimeField, Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

import rawsql
from accounts.models import Session, User
from accounts.security_log import log_account_event
from events import origins

# In the order of the model. Timestamps are deferred: few requests need them.
_USER_COLUMNS = [field.attname for field in User._meta.concrete_fields if not isinstance(field, DateTimeField)]
_LOAD_SESSION_SQL = f"""
SELECT s.session_data, s.authenticated_at, s.used_at, {", ".join(f"u.{name}" for name in _USER_COLUMNS)}
FROM accounts_session s LEFT JOIN accounts_user u ON u.id = s.user_id
WHERE s.session_key = %(key)s AND s.expire_date > CURRENT_TIMESTAMP
  AND s.authenticated_at > CURRENT_TIMESTAMP - %(longest)s::interval
  AND s.used_at > CURRENT_TIMESTAMP - %(idle)s::interval"""  # noqa: S608  made of constants
USE_RECORDED_EVERY = dt.timedelta(minutes=5)  # a write for each request would cost more than the request

_MAX_DECODED = 1000
_decoded: dict[str, bytes] = {}  # JSON by the signed text, which this process has verified
_session_user_row: ContextVar[tuple[Any, ...] | None] = ContextVar("user row of the session", default=None)


class SessionStore(db.SessionStore):
    user_row: tuple[Any, ...] | None = None  # loaded together with the session
    authenticated_at: dt.datetime | None = None
    used_at: dt.datetime | None = None

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        session = cast(Session, super().create_model_instance(data))
        session.user_id = data.get(auth.SESSION_KEY)
        if origin := origins.current_origin():
            session.address, session.browser = origin
        return session

    def save(self, must_create: bool = False) -> None:
        """Save the session. The columns about login and use are written once, when the row is created."""
        if self.session_key is None:
            self.create()
            return
        row = self.create_model_instance(self._get_session(no_load=must_create))  # type: ignore[attr-defined]  # not in its stub
        try:
            with transaction.atomic():
                if must_create:
                    row.save(force_insert=True)
                else:
                    row.save(force_update=True, update_fields=["session_data", "expire_date", "user"])
        except IntegrityError:
            if must_create:
                raise CreateError from None
            raise
        except DatabaseError:
            if not must_create:
                raise UpdateError from None  # the session was ended in the meantime
            raise

    def load(self) -> dict[str, Any]:
        limits = {"longest": dt.timedelta(seconds=settings.SESSION_COOKIE_AGE), "idle": settings.SESSION_IDLE}
        rows = rawsql.fetch_rows(_LOAD_SESSION_SQL, {"key": self.session_key, **limits})
        if not rows:
            self._session_key = None  # never adopt a key that the client chose
            return {}
        text, self.authenticated_at, self.used_at, *user_row = rows[0]
        self.user_row = tuple(user_row)
        return self._decode_once(text)

    def _decode_once(self, text: str) -> dict[str, Any]:
        """Decode the data of a session, whose signature costs more than the query, once for all its requests."""
        content = _decoded.get(text)
        if content is None:
            if len(_decoded) >= _MAX_DECODED:
                _decoded.clear()
            content = _decoded[text] = orjson.dumps(self.decode(text))
        data: dict[str, Any] = orjson.loads(content)
        return data


class PreloadedUserBackend(AuthenticationBackend):  # type: ignore[misc]  # allauth ships no types
    def get_user(self, user_id: Any) -> User | None:
        row = _session_user_row.get()
        if row is None or row[0] != int(user_id):
            return cast("User | None", super().get_user(user_id))
        user = User.from_db(DEFAULT_DB_ALIAS, _USER_COLUMNS, row)
        return user if self.user_can_authenticate(user) else None


class UserRequest(HttpRequest):
    """A request for a page that requires login. For annotations: the middleware below sets the user."""

    user: User


class SessionUserMiddleware(AuthenticationMiddleware):
    """Django's authentication middleware, with the user row that was loaded together with the session."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: _load_user(request))  # type: ignore[assignment]  # as Django does


def _load_user(request: HttpRequest) -> Any:
    request.session.get(auth.SESSION_KEY)  # loads the session
    token = _session_user_row.set(getattr(request.session, "user_row", None))
    try:
        user = auth.get_user(request)
    finally:
        _session_user_row.reset(token)
    if user.is_authenticated:
        record_use(request=request, now=timezone.now())
    return user


def record_use(*, request: HttpRequest, now: dt.datetime) -> None:
    """Record when, and from where, the session was used, every few minutes."""
    used_at = getattr(request.session, "used_at", None)
    if used_at is None or used_at > now - USE_RECORDED_EVERY:
        return
    address, browser = read_origin(request)
    Session.objects.filter(pk=request.session.session_key).update(used_at=now, address=address, browser=browser)


def read_origin(request: HttpRequest) -> origins.RequestOrigin:
    """Return the address, as the login limits see it, and the browser of a request. The address is None if it is
    unknown, or if the number of proxies is wrong."""
    try:
        address = str(get_adapter(request).get_client_ip(request))
    except (ImproperlyConfigured, PermissionDenied):
        address = None
    return origins.make_origin(address=address, browser=request.headers.get("User-Agent", ""))


class ActiveSession(NamedTuple):
    """A session in the list of a user's sessions."""

    reference: str  # names the session without revealing its key
    is_current: bool
    row: Session


def list_sessions(request: UserRequest, *, now: dt.datetime) -> list[ActiveSession]:
    """Return the user's sessions that work, the one of this request first."""
    current, store = request.session.session_key, SessionStore()
    valid = request.user.get_session_auth_hash()
    found = []
    for row in _list_active(request.user, now):
        if store.decode(row.session_data).get(auth.HASH_SESSION_KEY) == valid:
            found.append(ActiveSession(_compute_reference(row.pk), row.pk == current, row))
    return sorted(found, key=lambda each: not each.is_current)


def end_session(*, user: User, reference: str, now: dt.datetime) -> bool:
    """End one session of a user. Return whether there was one."""
    keys = [row.pk for row in _list_active(user, now) if _compute_reference(row.pk) == reference]
    return _end_sessions(user, keys, now) > 0


def end_other_sessions(*, user: User, current: str | None, now: dt.datetime) -> int:
    """End all sessions of a user but one, and return how many there were."""
    return _end_sessions(user, [row.pk for row in _list_active(user, now) if row.pk != current], now)


def delete_sessions(*, user: User) -> None:
    """End all sessions of a user. The caller logs why."""
    Session.objects.filter(user=user).delete()


def _end_sessions(user: User, keys: list[str], now: dt.datetime) -> int:
    with transaction.atomic():
        ended = Session.objects.filter(user=user, pk__in=keys).delete()[0]
        if ended:
            log_account_event(what="sessions_ended", user=user, by=user, now=now, sessions=ended)
    return ended


def _list_active(user: User, now: dt.datetime) -> list[Session]:
    return list(Session.objects.filter(user=user).exclude(_is_over(now)).order_by("-used_at"))


def _is_over(now: dt.datetime) -> Q:
    longest = dt.timedelta(seconds=settings.SESSION_COOKIE_AGE)
    is_idle = Q(used_at__lte=now - settings.SESSION_IDLE)
    return Q(expire_date__lte=now) | Q(authenticated_at__lte=now - longest) | is_idle


def _compute_reference(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:24]


def delete_expired_sessions(*, now: dt.datetime) -> int:
    """Delete sessions that are over, and return how many there were."""
    return Session.objects.filter(_is_over(now)).delete()[0]
