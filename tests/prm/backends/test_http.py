"""Our own contract, tested against the reference scorer of the documentation."""

import json
import time
from collections.abc import Iterator

import pytest

from prm.backends import http, transport
from prm.backends.base import InvalidAddress, RequestRefused, ScorerInput, WrongModel
from prm.backends.http import HttpBackend
from prm.backends.transport import RetryPolicy
from tests.conventions.rule import ROOT
from tests.prm.backends import scorer_servers

QUICK = RetryPolicy(timeout=5, tries=2)
TRACES = [ScorerInput("p", ["short", "long " * 80]), ScorerInput("q", [])]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with scorer_servers.running_reference_scorer("s3cret") as address:
        yield address


def test_reference_scorer_returns_scores(address: str) -> None:
    scores = HttpBackend(address, "short-steps", "s3cret", digest="v1", retry=QUICK).score(TRACES)
    assert [len(each) for each in scores] == [2, 0]
    assert scores[0][0] > scores[0][1]


def test_wrong_secret_and_old_signature_are_refused(address: str) -> None:
    for backend in (
        HttpBackend(address, "m", "another", retry=QUICK),
        HttpBackend(address, "m", "s3cret", retry=QUICK, clock=lambda: time.time() - 3600),
    ):
        with pytest.raises(RequestRefused) as refused:
            backend.score(TRACES)
        assert refused.value.status == 401


def test_another_model_behind_the_address_is_refused(address: str) -> None:
    with pytest.raises(WrongModel):
        HttpBackend(address, "m", "s3cret", digest="v2", retry=QUICK).score(TRACES)


def test_same_request_has_the_same_key_and_a_fresh_signature() -> None:
    first, second = http.sign_request(b"{}", "s", at=1), http.sign_request(b"{}", "s", at=2)
    assert first["Idempotency-Key"] == second["Idempotency-Key"]
    assert first["X-Stepmark-Signature"] != second["X-Stepmark-Signature"]


def test_contract_names_every_header_and_the_reference_scorer_stays_short() -> None:
    contract = json.loads((ROOT / "docs" / "scorer.openapi.json").read_text())
    named = {each["name"] for each in contract["paths"]["/"]["post"]["parameters"]}
    assert named == set(http.sign_request(b"", "", at=0))
    assert (ROOT / "docs" / "reference_scorer.py").read_text().count("\n") <= 36


@pytest.mark.parametrize(
    "odd",
    [
        *("", "ftp://gpu", "http://", "http://[", "http://gpu:99999", "http://gpu:x", "http://a..b", "http://\u2100.x"),
        *(f"http://{'a' * 64}.x", "http://gpu/é", "http://gpu/a b", "http://gpu/\n", "http://me:x@gpu/"),
    ],
)
def test_address_without_a_valid_host_is_refused(odd: str) -> None:
    with pytest.raises(InvalidAddress):
        transport.validate_address(odd)


@pytest.mark.parametrize("usual", ["http://127.0.0.1:8000", "https://[::1]:443/a?b=c", "http://127.0.0.1/%C3%A9"])
def test_ordinary_address_is_accepted(usual: str) -> None:
    assert transport.validate_address(usual) == usual
