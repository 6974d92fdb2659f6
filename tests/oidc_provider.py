"""An OpenID Connect provider for tests: discovery, JWKS, authorization code with PKCE, and signed ID tokens over HTTP.

It checks what a strict provider checks. A test may change `claims`, sign with another key, or break a part."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "stepmark", "the secret of the client"
CODE_LIFETIME = 60


class Provider:
    """A running provider. `claims` describes the person who logs in at it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.claims: dict[str, Any] = {"sub": "248289761001", "preferred_username": "ada", "name": "Ada Lovelace"}
        self.overrides: dict[str, Any] = {}  # replace registered claims of the ID token
        self.keys = {"first": _make_key()}
        self.id_token = ""  # in place of a signed one
        self.signs_with: tuple[str, Any, str] | None = None  # key id, key and algorithm, in place of the published ones
        self.requests: list[tuple[str, dict[str, str]]] = []
        self._codes: dict[str, dict[str, str]] = {}

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "jwks_uri": f"{self.address}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
        }

    def key_set(self) -> dict[str, Any]:
        published = []
        for name, key in self.keys.items():
            public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
            published.append({**public, "kid": name, "use": "sig", "alg": "RS256"})
        return {"keys": published}

    def authorize(self, asked: dict[str, str]) -> str:
        """Return the address to which the browser goes after the person logged in."""
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT_ID
        assert "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self._codes[code] = {**asked, "at": str(time.time())}
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def exchange(self, form: dict[str, str]) -> dict[str, Any] | None:
        """Return tokens for a code, None for an invalid request. A code works once."""
        asked = self._codes.pop(form.get("code", ""), None)
        verifier = form.get("code_verifier", "")
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        is_valid = (
            asked is not None
            and form.get("grant_type") == "authorization_code"
            and form.get("client_id") == CLIENT_ID
            and form.get("client_secret") == CLIENT_SECRET
            and form.get("redirect_uri") == asked["redirect_uri"]
            and digest == asked["code_challenge"]
            and time.time() - float(asked["at"]) < CODE_LIFETIME
        )
        if asked is None or not is_valid:
            return None
        return {"access_token": secrets.token_urlsafe(), "token_type": "Bearer", "id_token": self._sign(asked)}

    def _sign(self, asked: dict[str, str]) -> str:
        if self.id_token:
            return self.id_token
        now = int(time.time())
        registered = {"iss": self.address, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": asked.get("nonce")}
        if "max_age" in asked:
            registered["auth_time"] = now
        name, key, algorithm = self.signs_with or ("first", self.keys["first"], "RS256")
        claims = {**self.claims, **registered, **self.overrides}
        return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": name})


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.provider.requests.append((parts.path, asked))
        if parts.path == "/authorize":
            self._answer(302, b"", Location=self.provider.authorize(asked))
        elif parts.path == "/.well-known/openid-configuration":
            self._answer_json(200, self.provider.discovery())
        elif parts.path == "/keys":
            self._answer_json(200, self.provider.key_set())
        else:
            self._answer_json(404, {"error": "not_found"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self.provider.requests.append((self.path, form))
        tokens = self.provider.exchange(form) if self.path == "/token" else None
        self._answer_json(200, tokens) if tokens else self._answer_json(400, {"error": "invalid_grant"})

    def _answer_json(self, status: int, content: dict[str, Any]) -> None:
        self._answer(status, json.dumps(content).encode(), **{"Content-Type": "application/json"})

    def _answer(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Print nothing."""


def _make_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@contextmanager
def running_provider() -> Iterator[Provider]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_address[1]}")
    server.RequestHandlerClass = type("Handler", (_Handler,), {"provider": provider})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
