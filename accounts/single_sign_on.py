"""Log in through the organization's OpenID Connect provider. allauth runs the protocol: discovery, PKCE, state.

Here the ID token is verified (signature, issuer, audience, expiry, nonce), and the groups of the person are read."""

import datetime as dt
import hmac
import re
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, cast

import jwt
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from allauth.utils import build_absolute_uri
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from accounts import confirmation, tasks, users
from accounts.forms import BIDI_CONTROLS
from accounts.models import User
from accounts.security_log import log_account_event
from events import revocations

PROVIDER = "sso"
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_CLOCK_SKEW = 60  # seconds
_MAX_SUBJECT_LENGTH = 191  # as long as allauth's column
_FACTOR_KEY = "sso_has_second_factor"
_NOT_IN_USERNAME = re.compile(r"[^\w.@+-]+")


class Claims(NamedTuple):
    """What the provider says about a person."""

    groups: frozenset[str]
    has_second_factor: bool  # the provider asked for one, by its claim `amr` (RFC 8176)


# `people` sets the roles of the groups: accounts know no projects. Returns whether a group has a role.
_group_handlers: list[Callable[[User | None, frozenset[str]], bool]] = []


def call_with_groups(handler: Callable[[User | None, frozenset[str]], bool]) -> None:
    """Call `handler` at each login with the user and their groups, or with None to ask whether any group has a role.
    Call this in `AppConfig.ready`."""
    _group_handlers.append(handler)


def get_settings() -> Any:
    """Return the `config.env.SingleSignOn` of the platform. Callers have checked that it is configured."""
    return settings.SSO


def has_sso_factor(request: HttpRequest) -> bool:
    """Whether this session began at the provider with a second factor."""
    return bool(request.session.get(_FACTOR_KEY))


def note_factor(request: HttpRequest) -> None:
    """Note in the new session that it began with a second factor at the provider."""
    if getattr(request, "sso_has_second_factor", False):
        request.session[_FACTOR_KEY] = True


def start(request: HttpRequest, *, purpose: str, target: str) -> str:
    """Return the address of the provider to which the browser goes next. Raises RequestException."""
    provider, nonce = _get_provider(request), secrets.token_urlsafe(32)
    fresh = {"prompt": "login", "max_age": "0"} if purpose == "confirm" else {}
    response = provider.redirect(
        request,
        process=AuthProcess.CONNECT if purpose == "connect" else AuthProcess.LOGIN,
        next_url=target,
        data={"nonce": nonce, "purpose": purpose},
        auth_params={"nonce": nonce, **fresh},
    )
    return cast(str, response["Location"])


def finish(request: HttpRequest) -> HttpResponse:
    """Handle the return of the browser from the provider."""
    response: HttpResponse = _Callback.adapter_view(_Adapter(request, PROVIDER))(request)
    return response


class _Adapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth ships no types
    state: dict[str, Any] | None = None

    def get_provider(self) -> "_Provider":
        return _get_provider(self.request)

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return cast(str, build_absolute_uri(request, reverse("sso_callback")))

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any) -> SocialLogin:
        id_token = kwargs["response"].get("id_token")
        if not id_token:
            raise OAuth2Error("no ID token")
        claims = self._decode_id_token(app, id_token)
        return self.get_provider().sociallogin_from_response(request, {"id_token": claims})

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        """Return the claims of a valid ID token. allauth would not check the signature of a token that it fetched."""
        try:
            with get_adapter().get_requests_session() as session:
                answer = session.get(self.openid_config["jwks_uri"])
                answer.raise_for_status()
                keys = jwt.PyJWKSet.from_dict(answer.json())
            header = jwt.get_unverified_header(id_token)
            claims: dict[str, Any] = jwt.decode(
                id_token,
                key=_choose_key(keys, header),
                algorithms=_ALGORITHMS,
                issuer=self.openid_config["issuer"],
                audience=app.client_id,
                leeway=_CLOCK_SKEW,
                options={"require": ["iss", "aud", "exp", "iat", "sub"]},
            )
        except (jwt.PyJWTError, KeyError, TypeError, ValueError) as error:
            raise OAuth2Error("invalid ID token") from error
        self._check_claims(claims, app)
        return claims

    def _check_claims(self, claims: dict[str, Any], app: SocialApp) -> None:
        data = (self.state or {}).get("data") or {}
        if not hmac.compare_digest(str(claims.get("nonce", "")), str(data.get("nonce") or secrets.token_hex())):
            raise OAuth2Error("the ID token belongs to another login")
        if not 0 < len(str(claims["sub"])) <= _MAX_SUBJECT_LENGTH:
            raise OAuth2Error("the ID token has no valid subject")
        if claims.get("azp", app.client_id) != app.client_id:
            raise OAuth2Error("the ID token was issued to another client")
        if data.get("purpose") == "confirm":
            at, oldest = claims.get("auth_time"), timezone.now() - settings.CONFIRMATION_LIFETIME
            if not isinstance(at, int) or at < oldest.timestamp():
                raise OAuth2Error("the provider did not ask the user to log in again")


def _choose_key(keys: jwt.PyJWKSet, header: dict[str, Any]) -> jwt.PyJWK:
    """Return the signing key that the token names; a provider with one key need not name it."""
    signing = [key for key in keys.keys if key.public_key_use in (None, "sig")]
    named = [key for key in signing if "kid" not in header or key.key_id == header["kid"]]
    if len(named) != 1:
        raise OAuth2Error("the ID token is not signed with a known key")
    return named[0]


class _Provider(OpenIDConnectProvider):  # type: ignore[misc]  # allauth ships no types
    oauth2_adapter_class = _Adapter

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        return {}  # the claims are used at the login and not stored

    def extract_email_addresses(self, data: dict[str, Any]) -> list[Any]:
        return []  # see `_read_verified_email`

    def sociallogin_from_response(self, request: HttpRequest, response: dict[str, Any]) -> SocialLogin:
        login = super().sociallogin_from_response(request, response)
        login.raw_claims = response["id_token"]
        return login


class _Callback(OAuth2CallbackView):  # type: ignore[misc]  # allauth ships no types
    def _get_state(self, request: HttpRequest, provider: _Provider) -> Any:
        state, response = super()._get_state(request, provider)
        self.adapter.state = state
        return state, response


def _get_provider(request: HttpRequest) -> _Provider:
    sso = get_settings()
    app = SocialApp(provider="openid_connect", provider_id=PROVIDER, name=sso.name)
    app.client_id, app.secret = sso.client_id, sso.client_secret
    app.settings = {"server_url": sso.issuer, "oauth_pkce_enabled": True, "scope": sso.scopes}
    return _Provider(request, app=app)


class SingleSignOnAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    """Decides what a login through the provider leads to."""

    def on_authentication_error(self, request: HttpRequest, provider: _Provider, **kwargs: Any) -> NoReturn:
        reason = type(kwargs.get("exception")).__name__ if kwargs.get("exception") else str(kwargs.get("error"))
        log_account_event(what="identity_refused", user=None, by=None, now=timezone.now(), reason=reason)
        raise ImmediateHttpResponse(_refuse(request, "failed", status=401))

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        data = sociallogin.state.get("data") or {}
        if data.get("purpose") == "confirm":
            raise ImmediateHttpResponse(self._confirm(request, sociallogin))
        if data.get("purpose") == "connect":
            raise ImmediateHttpResponse(self._connect(request, sociallogin))
        claims, user = read_claims(sociallogin), cast(User, sociallogin.user)
        if sociallogin.is_existing and user.is_worker:
            raise ImmediateHttpResponse(_refuse(request, "worker"))
        if not sociallogin.is_existing:
            obstacle = self._find_obstacle(sociallogin, claims)
            if obstacle:
                log_account_event(what="identity_refused", user=None, by=None, now=timezone.now(), reason=obstacle)
                raise ImmediateHttpResponse(_refuse(request, obstacle))
        else:
            _apply_groups(user, claims)
        request.sso_has_second_factor = claims.has_second_factor  # type: ignore[attr-defined]  # read by `note_factor`

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]) -> User:
        return cast(User, sociallogin.user)  # `save_user` reads the claims

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return True  # checked before

    def is_auto_signup_allowed(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return True

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        """Create the account of a person who logs in for the first time."""
        claims, told = read_claims(sociallogin), sociallogin.raw_claims
        now = timezone.now()
        with transaction.atomic():
            user = users.create_user(
                username=_choose_username(told),
                email=_read_verified_email(told),
                name=str(told.get("name") or "").translate(BIDI_CONTROLS)[:150],
                now=now,
            )
            _add_identity(user, sociallogin)
            sociallogin.user = user
            _apply_groups(user, claims)
        return user

    def _find_obstacle(self, sociallogin: SocialLogin, claims: Claims) -> str:
        """Return why no account can be created for a new person, "" if it can."""
        if not any(handler(None, claims.groups) for handler in _group_handlers):
            return "no_role"
        email = _read_verified_email(sociallogin.raw_claims)
        return "known_email" if email and User.objects.filter(email__iexact=email).exists() else ""

    def _confirm(self, request: HttpRequest, sociallogin: SocialLogin) -> HttpResponse:
        if not request.user.is_authenticated or sociallogin.user != request.user:
            return _refuse(request, "other_person")
        confirmation.record_confirmation(request, method="socialaccount")
        target = sociallogin.state.get("next") or "/"
        return cast(HttpResponse, confirmation.resume(request, target=target))

    def _connect(self, request: HttpRequest, sociallogin: SocialLogin) -> HttpResponse:
        """Add the identity to the account of the logged-in user."""
        user = request.user
        if (not isinstance(user, User) and not user.is_authenticated) or not confirmation.is_recent(request):
            return redirect("mfa_index")
        if sociallogin.is_existing:
            return redirect("mfa_index") if sociallogin.user == user else _refuse(request, "other_person")
        with transaction.atomic():
            _add_identity(user, sociallogin)
            _apply_groups(user, read_claims(sociallogin))
        return redirect("mfa_index")


def remove_identity(*, user: User, now: dt.datetime) -> bool:
    """Disconnect the user from the provider. Return False for a user who could not log in without it."""
    with transaction.atomic():
        if not user.has_usable_password():
            return False
        if SocialAccount.objects.filter(user=user, provider=PROVIDER).delete()[0]:
            log_account_event(what="identity_removed", user=user, by=user, now=now)
            revocations.note_after_commit(what="identity", account=users.compute_digest(user), now=now)
            tasks.request_account_mail(user=user, what="identity_removed")
    return True


def repeat_removal(*, user: User, now: dt.datetime) -> int:
    """Disconnect the user in a restored database. Return how many identities were removed.

    An identity that the user connected later is not in the backup, so this removes only what the user had removed."""
    removed: int = SocialAccount.objects.filter(user=user, provider=PROVIDER).delete()[0]
    if removed:
        log_account_event(what="identity_removed", user=user, by=None, now=now)
    return removed


def read_claims(sociallogin: SocialLogin) -> Claims:
    told = sociallogin.raw_claims
    groups, methods = told.get(get_settings().groups_claim), told.get("amr")
    return Claims(
        groups=frozenset(map(str, groups)) if isinstance(groups, list) else frozenset(),
        has_second_factor=isinstance(methods, list) and "mfa" in methods,
    )


def _read_verified_email(told: dict[str, Any]) -> str:
    email = told.get("email")
    return email[:254] if told.get("email_verified") is True and isinstance(email, str) else ""


def _choose_username(told: dict[str, Any]) -> str:
    """Return a free username like the one at the provider."""
    wish = _NOT_IN_USERNAME.sub("-", str(told.get("preferred_username") or told.get("email") or "person"))[:140]
    name, number = wish, 1
    while User.objects.filter(username__iexact=name).exists():
        number += 1
        name = f"{wish}-{number}"
    return name


def _add_identity(user: User, sociallogin: SocialLogin) -> None:
    SocialAccount.objects.create(user=user, provider=PROVIDER, uid=sociallogin.account.uid, extra_data={})
    sociallogin.account = SocialAccount.objects.get(provider=PROVIDER, uid=sociallogin.account.uid)
    log_account_event(what="identity_added", user=user, by=user, now=timezone.now())
    transaction.on_commit(lambda: tasks.request_account_mail(user=user, what="identity_added"))


def _apply_groups(user: User, claims: Claims) -> None:
    for handler in _group_handlers:
        handler(user, claims.groups)


def _refuse(request: HttpRequest, reason: str, *, status: int = 403) -> HttpResponse:
    context = {"reason": reason, "sso_name": get_settings().name}
    return render(request, "accounts/sso_refused.html", context, status=status)
