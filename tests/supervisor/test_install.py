"""Requirements files, and error messages of the installation."""

from labeling.traces import locations
from supervisor import install, paths


def pins(name: str) -> set[str]:
    """Return packages with versions, without their system markers, which may differ between the lists."""
    lines = (paths.BASE / name).read_text().splitlines()
    return {line.split("\\")[0].split(";")[0].strip() for line in lines if line[:1].isalnum()}


def test_development_requirements_hold_the_runtime_ones_pinned_alike() -> None:
    """`install` relies on it: the development requirements include the runtime ones."""
    assert pins("requirements.txt") <= pins("requirements-stores.txt") <= pins("requirements-dev.txt")


def test_requirements_of_stores_hold_the_packages_that_messages_name() -> None:
    assert "requirements-stores.txt" in locations.MISSING_PACKAGES
    names = {pin.partition("==")[0] for pin in pins("requirements-stores.txt") - pins("requirements.txt")}
    assert {"obstore", "huggingface-hub"} <= names


def test_reason_names_the_missing_package_of_a_cut_down_python() -> None:
    output = "Error: Command '[…, '-m', 'ensurepip', …]' returned non-zero exit status 1.\n"
    assert "python3-venv" in install._explain_failure(output, ["python3", "-m", "venv", ".venv"])


def test_reason_ends_with_the_last_line_of_output() -> None:
    assert "no space left" in install._explain_failure("Collecting a\nERROR: no space left\n\n", ["pip", "install"])
