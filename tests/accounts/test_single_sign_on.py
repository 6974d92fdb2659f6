"""Login through a provider that speaks OpenID Connect, over real HTTP."""

import base64
import datetime as dt
import hmac
import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import ApiToken, Session, User
from config.env import SingleSignOn
from events.models import Event
from people import members
from people.models import Membership, Role
from tests import factories
from tests.oidc_provider import CLIENT_ID, CLIENT_SECRET, Provider, running_provider

pytestmark = [pytest.mark.django_db, pytest.mark.fault]


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def provider(running: Provider, settings: Any) -> Iterator[Provider]:
    settings.SSO = SingleSignOn(
        issuer=running.address,
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        name="Example Corp",
        scopes=["openid", "profile", "email"],
        groups_claim="groups",
        group_roles={
            "math": ("sums:annotator",),
            "math-leads": ("sums:lead",),
            "platform": ("owner",),
        },
    )
    before = dict(running.claims), dict(running.keys)
    running.claims["groups"] = ["math"]
    running.requests.clear()
    yield running
    running.claims, running.keys = before
    running.overrides, running.signs_with, running.id_token = {}, None, ""


@pytest.fixture(autouse=True)
def project() -> Any:
    return members.create_owned_project(name="Sums", slug="sums", by=factories.make_user("owner"), now=factories.NOW)


def visit_provider(address: str) -> str:
    """Log in at the provider as a browser does, and return the address to which it sends the browser."""
    parts = urlsplit(address)
    connection = HTTPConnection(parts.netloc)
    connection.request("GET", f"{parts.path}?{parts.query}")
    location = connection.getresponse().headers["Location"]
    connection.close()
    return str(location)


def go_to_provider(client: Client, name: str = "sso_login", **data: str) -> str:
    page = client.post(reverse(name), data)
    assert page.status_code == 200
    found = re.search(r'href="([^"]+)" data-provider', page.content.decode())
    assert found
    return found[1].replace("&amp;", "&")


def come_back(client: Client, address: str) -> Any:
    parts = urlsplit(visit_provider(address))
    assert parts.path == reverse("sso_callback")
    return client.get(f"{parts.path}?{parts.query}")


def log_in(client: Client, name: str = "sso_login", **data: str) -> Any:
    return come_back(client, go_to_provider(client, name, **data))


def reason_of(response: Any) -> str:
    found = re.search(r'data-reason="(\w+)"', response.content.decode())
    assert found, response.content.decode()
    return found[1]


def current_user(client: Client) -> str:
    return (
        str(User.objects.get(pk=client.session["_auth_user_id"]).username) if "_auth_user_id" in client.session else ""
    )


def test_first_login_creates_the_account_with_the_role_of_the_group(client: Client, provider: Provider) -> None:
    provider.claims |= {"email": "ada@example.org", "email_verified": True}
    response = log_in(client, next="/history/")
    assert (response.status_code, response["Location"]) == (302, "/history/")
    ada = User.objects.get(username="ada")
    assert (ada.name, ada.email, ada.has_usable_password()) == ("Ada Lovelace", "ada@example.org", False)
    assert Membership.objects.get(user=ada).role == Role.ANNOTATOR
    assert client.get(reverse("annotate:home")).status_code == 200
    assert Event.objects.get(what="account.logged_in").detail["method"] == "socialaccount"
    assert SocialAccount.objects.get().extra_data == {}


def test_request_has_state_nonce_and_pkce(client: Client, provider: Provider) -> None:
    asked = [{n: v[0] for n, v in parse_qs(urlsplit(go_to_provider(client)).query).items()} for _ in range(2)]
    assert {"state", "nonce", "code_challenge", "code_challenge_method", "scope"} <= set(asked[0])
    for name in ("state", "nonce", "code_challenge"):
        assert asked[0][name] != asked[1][name]
        assert len(asked[0][name]) >= 16


def test_second_login_is_the_same_account(provider: Provider) -> None:
    for _ in range(2):
        assert log_in(Client()).status_code == 302
    assert User.objects.filter(username__startswith="ada").count() == 1


@pytest.mark.parametrize(
    "overrides",
    [
        {"iss": "https://evil.example"},
        {"aud": "another-client"},
        {"aud": [CLIENT_ID, "x"], "azp": "another-client"},
        {"exp": 1},
        {"nonce": "of another login"},
        {"nonce": None},
        {"sub": ""},
    ],
)
def test_id_token_with_a_wrong_claim_is_refused(overrides: dict[str, Any], client: Client, provider: Provider) -> None:
    provider.overrides = overrides
    response = log_in(client)
    assert (response.status_code, reason_of(response)) == (401, "failed")
    assert not current_user(client)
    assert not User.objects.filter(username="ada").exists()
    assert Event.objects.filter(what="account.identity_refused").exists()


def other_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def sign_with_public_key(provider: Provider) -> str:
    """Make a token whose HMAC secret is the provider's public key: a careless client would accept it."""
    public = provider.keys["first"].public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    parts = [{"alg": "HS256", "kid": "first"}, {**provider.claims, "iss": provider.address, "aud": CLIENT_ID}]
    body = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    signature = base64.urlsafe_b64encode(hmac.digest(pem, body, "sha256")).rstrip(b"=")
    return (body + b"." + signature).decode()


@pytest.mark.parametrize("case", ["other key", "unknown key", "none", "public key as secret"])
def test_id_token_with_a_wrong_signature_is_refused(case: str, client: Client, provider: Provider) -> None:
    if case == "public key as secret":
        provider.id_token = sign_with_public_key(provider)
    else:
        name, key = "unknown" if case == "unknown key" else "first", None if case == "none" else other_key()
        provider.signs_with = (name, key, "none" if case == "none" else "RS256")
    response = log_in(client)
    assert (response.status_code, reason_of(response)) == (401, "failed")
    assert not current_user(client)


def test_new_signing_key_is_found(client: Client, provider: Provider) -> None:
    provider.keys["second"] = other_key()
    provider.signs_with = ("second", provider.keys["second"], "RS256")
    assert log_in(client).status_code == 302
    assert current_user(client) == "ada"


def test_answer_for_another_browser_is_refused(client: Client, provider: Provider) -> None:
    """An attacker cannot log a victim in to their own account with a link."""
    response = come_back(Client(), go_to_provider(client))
    assert reason_of(response) == "failed"


def test_answer_works_once(client: Client, provider: Provider) -> None:
    address = urlsplit(visit_provider(go_to_provider(client)))
    assert client.get(f"{address.path}?{address.query}").status_code == 302
    again = client.get(f"{address.path}?{address.query}")
    assert reason_of(again) == "failed"


def test_person_without_a_mapped_group_gets_no_account(client: Client, provider: Provider) -> None:
    provider.claims["groups"] = ["strangers"]
    response = log_in(client)
    assert (response.status_code, reason_of(response)) == (403, "no_role")
    assert not User.objects.filter(username="ada").exists()


@pytest.mark.parametrize("email", ["Owner@example.org", "owner@example.org"])
def test_existing_account_with_the_address_is_not_taken_over(email: str, client: Client, provider: Provider) -> None:
    User.objects.filter(username="owner").update(email="owner@example.org")
    provider.claims |= {"email": email, "email_verified": True}
    assert reason_of(log_in(client)) == "known_email"
    assert not current_user(client)


def test_unverified_address_is_not_stored(client: Client, provider: Provider) -> None:
    provider.claims |= {"email": "owner@example.org", "email_verified": False}
    assert log_in(client).status_code == 302
    assert User.objects.get(username="ada").email == ""


def test_taken_username_gets_a_number(client: Client, provider: Provider) -> None:
    factories.make_user("Ada")
    log_in(client)
    assert current_user(client) == "ada-2"


def test_groups_change_the_role_and_end_the_membership(provider: Provider) -> None:
    for groups, role in (
        (["math"], "annotator"),
        (["math", "math-leads"], "lead"),
        (["math"], "annotator"),
        ([], None),
        (["math-leads"], "lead"),
    ):
        provider.claims["groups"] = groups
        assert log_in(Client()).status_code == 302
        held = Membership.objects.active().filter(user__username="ada").values_list("role", flat=True).first()
        assert held == role
    assert Event.objects.filter(what="member.role_changed").count() == 2


def test_group_makes_an_owner_who_may_create_projects(provider: Provider) -> None:
    for groups, is_owner in ((["platform"], True), (["math"], False)):
        provider.claims["groups"] = groups
        log_in(Client())
        assert User.objects.get(username="ada").is_staff is is_owner


def test_last_owner_of_a_project_stays_owner(client: Client, provider: Provider) -> None:
    owner = User.objects.get(username="owner")
    SocialAccount.objects.create(user=owner, provider="sso", uid=provider.claims["sub"])
    log_in(client)
    assert current_user(client) == "owner"
    assert Membership.objects.get(user=owner).role == Role.OWNER


def test_account_is_connected_and_disconnected(client: Client, provider: Provider) -> None:
    bert = factories.make_user("bert")
    bert.set_password("seven green ladders")
    bert.save()
    client.force_login(bert)
    assert log_in(client, "sso_connect")["Location"] == reverse("mfa_index")
    assert SocialAccount.objects.get().user == bert
    elsewhere = Client()
    log_in(elsewhere)
    assert current_user(elsewhere) == "bert"
    other = Client()
    other.force_login(factories.make_user("carl"))
    assert reason_of(log_in(other, "sso_connect")) == "other_person"
    client.post(reverse("sso_disconnect"))
    assert not SocialAccount.objects.exists()


def test_only_way_in_cannot_be_disconnected(client: Client, provider: Provider) -> None:
    log_in(client)
    client.post(reverse("sso_disconnect"))
    assert SocialAccount.objects.exists()


def test_second_factor_at_the_provider_counts_as_one(provider: Provider, settings: Any) -> None:
    settings.SECOND_FACTOR_ROLES = ["annotator"]
    for methods, status in ((["pwd"], 302), (["pwd", "mfa"], 200)):
        provider.claims["amr"] = methods
        client = Client()
        log_in(client)
        assert client.get(reverse("annotate:home")).status_code == status


def test_inactive_account_does_not_log_in(client: Client, provider: Provider) -> None:
    log_in(Client())
    User.objects.filter(username="ada").update(is_active=False)
    assert log_in(client)["Location"] == reverse("account_inactive")
    assert not current_user(client)


def test_provider_that_is_away_is_named(client: Client, provider: Provider, settings: Any) -> None:
    settings.SSO = settings.SSO._replace(issuer="http://127.0.0.1:9")
    response = client.post(reverse("sso_login"))
    assert (response.status_code, reason_of(response)) == (502, "away")


def test_login_page_offers_the_provider_only_when_configured(client: Client, provider: Provider, settings: Any) -> None:
    assert reverse("sso_login") in client.get(reverse("account_login")).content.decode()
    settings.SSO = None
    assert reverse("sso_login") not in client.get(reverse("account_login")).content.decode()
    assert client.post(reverse("sso_login")).status_code == 404
    assert client.get(reverse("sso_callback")).status_code == 404


def test_provider_confirms_who_it_is(client: Client, provider: Provider) -> None:
    log_in(client)
    Session.objects.update(authenticated_at=timezone.now() - dt.timedelta(hours=2))
    asked = client.post(reverse("tokens"), {"name": "CI", "scopes": ["read"], "days": "30"})
    assert urlsplit(asked["Location"]).path == reverse("account_reauthenticate")
    address = go_to_provider(client, "sso_confirm", next=reverse("tokens"))
    assert {"prompt=login", "max_age=0"} <= set(urlsplit(address).query.split("&"))
    assert come_back(client, address).status_code == 201
    assert ApiToken.objects.count() == 1
    assert Event.objects.get(what="account.confirmed").detail["method"] == "socialaccount"


@pytest.mark.parametrize("case", ["other person", "old login"])
def test_provider_does_not_confirm_another_person_or_an_old_login(
    case: str, client: Client, provider: Provider
) -> None:
    log_in(client)
    Session.objects.update(authenticated_at=timezone.now() - dt.timedelta(hours=2))
    provider.overrides = {"sub": "another"} if case == "other person" else {"auth_time": 1}
    response = log_in(client, "sso_confirm", next=reverse("tokens"))
    assert reason_of(response) == ("other_person" if case == "other person" else "failed")
    assert not Event.objects.filter(what="account.confirmed").exists()
