"""Our own contract, spoken with the reference scorer of the documentation."""

import json
import time
from collections.abc import Iterator

import pytest

from prm.backends import http, transport
from prm.backends.base import BackendError, BadScores, ScorerInput
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


def test_reference_scorer_is_understood(address: str) -> None:
    found = HttpBackend(address, "short-steps", "s3cret", digest="v1", patience=QUICK).score(TRACES)
    assert [len(each) for each in found] == [2, 0]
    assert found[0][0] > found[0][1]


def test_wrong_secret_and_old_signature_are_refused(address: str) -> None:
    with pytest.raises(BackendError, match="answered 401"):
        HttpBackend(address, "m", "another", patience=QUICK).score(TRACES)
    with pytest.raises(BackendError, match="answered 401"):
        HttpBackend(address, "m", "s3cret", patience=QUICK, clock=lambda: time.time() - 3600).score(TRACES)


def test_another_model_behind_the_address_is_refused(address: str) -> None:
    with pytest.raises(BadScores, match="stands v1, registered is v2"):
        HttpBackend(address, "m", "s3cret", digest="v2", patience=QUICK).score(TRACES)


def test_same_request_has_the_same_key_and_a_fresh_signature() -> None:
    first, second = http.sign_request(b"{}", "s", at=1), http.sign_request(b"{}", "s", at=2)
    assert first["Idempotency-Key"] == second["Idempotency-Key"]
    assert first["X-Stepmark-Signature"] != second["X-Stepmark-Signature"]


def test_contract_names_every_header_and_the_reference_stays_short() -> None:
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
def test_addresses_that_no_request_can_go_to_are_refused(odd: str) -> None:
    with pytest.raises(BackendError, match="must look like"):
        transport.validate_address(odd)


@pytest.mark.parametrize("usual", ["http://127.0.0.1:8000", "https://[::1]:443/a?b=c", "http://127.0.0.1/%C3%A9"])
def test_addresses_of_the_usual_kind_are_taken(usual: str) -> None:
    assert transport.validate_address(usual) == usual
