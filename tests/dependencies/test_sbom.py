"""The bill of materials."""

import json
from pathlib import Path

import pytest

from dependencies import sbom
from dependencies.lock_file import LockFileUnreadable, read_lock_file, read_vendored


def test_sbom_has_every_locked_package(tmp_path: Path) -> None:
    sbom.main(["--output", str(tmp_path / "sbom.json")])
    content = json.loads((tmp_path / "sbom.json").read_text())
    assert (content["bomFormat"], content["specVersion"]) == ("CycloneDX", "1.6")
    components = {(each["name"], each["version"]) for each in content["components"]}
    assert components == {(name, version) for name, version, _ in [*read_lock_file(), *read_vendored()]}
    assert {"django", "katex", "htmx"} <= {name for name, _version in components}
    references = [each["bom-ref"] for each in content["components"]]
    assert len(references) == len(set(references))
    root = content["metadata"]["component"]["bom-ref"]
    needed = {each["ref"]: each["dependsOn"] for each in content["dependencies"]}
    assert set(needed) >= {root}
    assert {other for others in needed.values() for other in others} <= set(references)
    assert any(other.startswith("pkg:pypi/django@") for other in needed[root])


def test_sbom_of_a_lock_file_is_always_the_same() -> None:
    packages, vendored = read_lock_file(), read_vendored()
    assert sbom.build_sbom(packages, vendored) == sbom.build_sbom(packages, vendored)
    assert (
        sbom.build_sbom(packages[1:], vendored)["serialNumber"] != sbom.build_sbom(packages, vendored)["serialNumber"]
    )


@pytest.mark.parametrize("content", ["", "django>=5\n", "./folder\n"])
def test_lock_file_without_pins_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(content)
    with pytest.raises(LockFileUnreadable):
        read_lock_file(tmp_path / "requirements.txt")


def test_markers_and_names_are_read(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("# made\nPsycopg_Binary==3.3.9 ; implementation_name != 'pypy' \\\n    --hash=sha256:00\n")
    (package,) = read_lock_file(path)
    assert package == ("psycopg-binary", "3.3.9", "implementation_name != 'pypy'")
