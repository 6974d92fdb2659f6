"""Check the container files without a container engine: they are valid, and everything they name exists."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from celery.bin.celery import celery

from host import postgresql
from tests import command_server
from tests.check_all import BASE, BIN
from tests.test_docs import commands, variables

COMPOSE: dict[str, Any] = yaml.safe_load((BASE / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "stepmark"}
DOCKERFILE = (BASE / "Dockerfile").read_text()


@pytest.mark.fault
def test_compose_file_follows_its_schema() -> None:
    subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"],
        cwd=BASE,
        check=True,
    )


def test_dockerfile_passes_its_linter() -> None:
    subprocess.run([BIN / "hadolint", "Dockerfile"], cwd=BASE, check=True)


@pytest.mark.parametrize("kind", ["networks", "volumes", "secrets"])
def test_what_services_use_is_declared_and_what_is_declared_is_used(kind: str) -> None:
    used = {str(each).partition(":")[0] for service in SERVICES.values() for each in service.get(kind, [])}
    assert used == set(COMPOSE[kind])


def test_services_wait_for_services_that_can_come_to_that_state() -> None:
    for name, service in SERVICES.items():
        for other, wish in service.get("depends_on", {}).items():
            awaited = SERVICES[other]
            if wish["condition"] == "service_healthy":
                assert "test" in awaited["healthcheck"], (
                    f"{name} waits for the health of {other}, which is never checked"
                )
            else:
                assert awaited["restart"] == "no", f"{name} waits for the end of {other}, which is started again"


def test_every_process_that_stays_is_checked_for_its_health() -> None:
    assert "HEALTHCHECK" in DOCKERFILE  # of the web server, which runs the image's default command
    for name, service in SERVICES.items():
        assert name == "web" or "healthcheck" in service


def test_every_variable_is_one_that_the_settings_read() -> None:
    for service in OURS.values():
        assert {name.removesuffix("_FILE") for name in service["environment"]} <= variables()
    for name in re.findall(r"(?:^ENV|(?<!^ARG)\s)([A-Z][A-Z_]+)=", DOCKERFILE, re.M):
        assert name in variables() or name.startswith(("UV_", "PYTHON", "PATH"))


def test_every_secret_that_a_variable_points_to_is_given_to_its_service() -> None:
    for name, service in SERVICES.items():
        paths = [str(value) for value in service.get("environment", {}).values() if "/run/secrets/" in str(value)]
        for path in paths:
            assert path.removeprefix("/run/secrets/") in service["secrets"], f"{name} has no {path}"


def test_example_names_every_variable_that_the_compose_file_takes_and_no_other() -> None:
    taken = set(re.findall(r"\$\{([A-Z_]+)", (BASE / "docker-compose.yml").read_text()))
    offered = set(re.findall(r"^#?([A-Z_]+)=", (BASE / ".env.example").read_text(), re.M))
    assert offered == taken


def words_of_commands() -> list[list[str]]:
    image = json.loads(re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.M)[-1])
    return [image, *(service["command"] for service in OURS.values() if "command" in service)]


@pytest.mark.parametrize("words", words_of_commands(), ids=shlex.join)
def test_every_command_exists(words: list[str]) -> None:
    assert (BIN / words[0]).exists()
    if words[0] == "python":
        assert words[1] == "manage.py"
        assert words[2] in commands() | {"migrate"}
    elif words[0] == "celery":
        assert {word for word in words[4:] if word.startswith("--")} <= options_of(words[3])
    else:
        assert (BASE / words[words.index("--config") + 1]).exists()


def options_of(command: str) -> set[str]:
    """Return the options of a command of Celery."""
    return {word for option in celery.commands[command].params for word in option.opts}


def test_what_the_image_copies_is_there() -> None:
    for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.M):
        for path in line.split()[:-1]:
            assert (BASE / path).exists()


@pytest.mark.parametrize("folder", [".git", "tests", "bench", ".env", "secrets", "data"])
def test_image_lacks_what_production_does_not_need(folder: str) -> None:
    assert (BASE / ".dockerignore").read_text().splitlines().count(folder) == 1
    copied = {path for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.M) for path in line.split()[:-1]}
    assert not any(Path(path).parts[:1] == (folder,) for path in copied)


def test_image_can_dump_the_database_that_it_is_composed_with() -> None:
    server = re.fullmatch(r"postgres:(\d+)", SERVICES["database"]["image"])
    folder = postgresql.programs()
    assert server
    assert folder
    assert int(server[1]) == postgresql.major_version(folder / "pg_dump")


def test_make_secrets_makes_what_the_compose_file_reads_and_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "secret_key").write_text("kept")
    command = ["make", "--silent", "--file", str(BASE / "Makefile"), "secrets"]
    subprocess.run(command, cwd=tmp_path, check=True)
    files = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert {f"./secrets/{name}" for name in files} == {secret["file"] for secret in COMPOSE["secrets"].values()}
    assert files["secret_key"] == "kept"
    assert len(files["database_password"]) == 50
    assert files["database_password"] in files["database_url"]


def documented_production() -> dict[str, str]:
    section = (BASE / "docs" / "operations.md").read_text().partition("\n## Production\n")[2].partition("\n## ")[0]
    block = section.partition("```sh\n")[2].partition("```")[0]
    return dict(re.findall(r"^(\w+)=(\S+)$", block, re.M))


@pytest.mark.fault
def test_check_deploy_has_no_warning_with_the_documented_environment(tmp_path: Path) -> None:
    given = documented_production()
    secrets = {name: tmp_path / Path(path).name for name, path in given.items() if name.endswith("_FILE")}
    secrets["SECRET_KEY_FILE"].write_text("".join(map(chr, range(48, 110))))
    secrets["DATABASE_URL_FILE"].write_text("postgresql://stepmark:password@database.example.org:5432/stepmark")
    env = {"PATH": str(BIN), **given, **{name: str(path) for name, path in secrets.items()}}
    ended = subprocess.run(
        [command_server.find_python(), "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=BASE,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "no issues" in ended.stdout
