"""The table in docs/security.md has every requirement of ASVS 5.0, levels 1 and 2, once, and none is open."""

import re
from collections import Counter
from typing import NamedTuple

import pytest

from tests.conventions.rule import ROOT

pytestmark = pytest.mark.static

# Requirements of levels 1 and 2 in each section of the standard. The remaining numbers of a section belong to level 3.
SECTIONS = {
    "1.1": range(1, 3),
    "1.2": range(1, 10),
    "1.3": range(1, 12),
    "1.4": range(1, 4),
    "1.5": range(1, 3),
    "2.1": range(1, 4),
    "2.2": range(1, 4),
    "2.3": range(1, 5),
    "2.4": range(1, 2),
    "3.2": range(1, 3),
    "3.3": range(1, 5),
    "3.4": range(1, 7),
    "3.5": range(1, 6),
    "3.7": range(1, 3),
    "4.1": range(1, 4),
    "4.2": range(1, 2),
    "4.3": range(1, 3),
    "4.4": range(1, 5),
    "5.1": range(1, 2),
    "5.2": range(1, 4),
    "5.3": range(1, 3),
    "5.4": range(1, 4),
    "6.1": range(1, 4),
    "6.2": range(1, 13),
    "6.3": range(1, 5),
    "6.4": range(1, 5),
    "6.5": range(1, 6),
    "6.6": range(1, 4),
    "6.8": range(1, 5),
    "7.1": range(1, 4),
    "7.2": range(1, 5),
    "7.3": range(1, 3),
    "7.4": range(1, 6),
    "7.5": range(1, 3),
    "7.6": range(1, 3),
    "8.1": range(1, 3),
    "8.2": range(1, 4),
    "8.3": range(1, 2),
    "8.4": range(1, 2),
    "9.1": range(1, 4),
    "9.2": range(1, 5),
    "10.1": range(1, 3),
    "10.2": range(1, 3),
    "10.3": range(1, 5),
    "10.4": range(1, 12),
    "10.5": range(1, 6),
    "10.6": range(1, 3),
    "10.7": range(1, 4),
    "11.1": range(1, 3),
    "11.2": range(1, 4),
    "11.3": range(1, 4),
    "11.4": range(1, 5),
    "11.5": range(1, 2),
    "11.6": range(1, 2),
    "12.1": range(1, 4),
    "12.2": range(1, 3),
    "12.3": range(1, 5),
    "13.1": range(1, 2),
    "13.2": range(1, 6),
    "13.3": range(1, 3),
    "13.4": range(1, 6),
    "14.1": range(1, 3),
    "14.2": range(1, 5),
    "14.3": range(1, 4),
    "15.1": range(1, 4),
    "15.2": range(1, 4),
    "15.3": range(1, 8),
    "16.1": range(1, 2),
    "16.2": range(1, 6),
    "16.3": range(1, 5),
    "16.4": range(1, 4),
    "16.5": range(1, 4),
}
_ROW = re.compile(r"^\| (\d+\.\d+\.\d+) \| (.+) \| (met|declined) \| (.+) \| (.*) \|$", re.MULTILINE)
_NOT_APPLICABLE = re.compile(r"^\| ((?:\d+\.\d+\.\d+(?:, )?)+) \| ([^|]+) \|$", re.MULTILINE)
_PROOF = re.compile(r"^(?:\[[^\]]+\]\(([^)]+)\)|`([\w/.]+)`)(?: `(\w+)`)?$")
TEXT = (ROOT / "docs/security.md").read_text()


class Requirement(NamedTuple):
    number: str
    asks: str
    state: str
    how: str
    proof: str


REQUIREMENTS = [Requirement(*found.groups()) for found in _ROW.finditer(TEXT)]

MET = [each for each in REQUIREMENTS if each.state == "met"]


def list_requirements() -> list[str]:
    return [f"{section}.{number}" for section, numbers in SECTIONS.items() for number in numbers]


def test_every_requirement_is_decided_once() -> None:
    decided = Counter(each.number for each in REQUIREMENTS)
    for found in _NOT_APPLICABLE.finditer(TEXT):
        decided.update(found[1].split(", "))
    assert decided == Counter(list_requirements())


def test_declined_requirements_have_a_reason() -> None:
    declined = [each for each in REQUIREMENTS if each.state == "declined"]
    assert [each.number for each in declined if len(each.how) < 60 or each.proof] == []


@pytest.mark.parametrize("requirement", MET, ids=lambda each: each.number)
def test_proof_of_a_requirement_exists(requirement: Requirement) -> None:
    proof = _PROOF.match(requirement.proof)
    assert proof, requirement
    path = (ROOT / "docs" / proof[1]).resolve().relative_to(ROOT).as_posix() if proof[1] else proof[2]
    assert (ROOT / path).is_file(), path
    if proof[3]:
        assert re.search(rf"^def {proof[3]}\(", (ROOT / path).read_text(), re.MULTILINE), proof[3]
