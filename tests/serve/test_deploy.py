"""The files in deploy/: what they run exists, and nothing runs as root or with a floating image."""

import json
import re
from configparser import ConfigParser
from pathlib import Path

import pytest

from clew.cli.app import load_commands

DEPLOY = Path(__file__).parents[2] / "deploy"


def options_of(command: str) -> set[str]:
    """The options that a command takes."""
    return {name for one in load_commands("serve")[command].params for name in one.opts}


def read_commands() -> list[list[str]]:
    """The `clew serve` commands of all three files."""
    docker = re.findall(r"^CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    compose = re.findall(r"^ +command: (\[.*\])$", (DEPLOY / "compose.yaml").read_text(), re.M)
    unit = re.findall(r"^ExecStart=(.*)$", (DEPLOY / "clew.service").read_text(), re.MULTILINE)
    return [*map(json.loads, docker[-1:] + compose), *(line.split() for line in unit)]


@pytest.mark.parametrize("words", read_commands())
def test_every_command_has_options_that_exist(words: list[str]) -> None:
    assert Path(words[0]).name == "clew" and words[1] == "serve"
    assert {word for word in words if word.startswith("--")} <= options_of("serve")


def test_the_image_is_pinned_and_runs_as_a_user() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    images = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert all(re.fullmatch(r"[a-z]+:\d+\.\d+[\w.-]*", image) for image in images)
    last_user = [line for line in lines if line.startswith(("FROM", "USER"))][-1]
    assert last_user.startswith("USER") and "root" not in last_user
    assert not any(re.match(r"(ADD|RUN .*curl .*\|)", line) for line in lines)


def test_the_container_and_the_unit_have_few_rights() -> None:
    compose = (DEPLOY / "compose.yaml").read_text()
    for part in ("read_only: true", "- ALL", "no-new-privileges:true", '"127.0.0.1:8321:8321"'):
        assert part in compose
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "clew.service")
    service = unit["Service"]
    assert service["NoNewPrivileges"] == service["PrivateTmp"] == "yes"
    assert service["User"] != "root" and "HUP" in service["ExecReload"]
