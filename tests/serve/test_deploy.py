"""The files in deploy/: they can be built and run, as no root and from no floating image."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from configparser import ConfigParser
from contextlib import nullcontext
from pathlib import Path

import pytest

from clew.cli.app import load_commands
from clew.testing.postgres_server import start_server, why_not

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BASE_MB = 130  # of python:3.13-slim on a disk
MOST_MB = 600


def options_of(command: str) -> set[str]:
    """The options that a command takes."""
    return {name for one in load_commands("serve")[command].params for name in one.opts}


def read_commands() -> list[list[str]]:
    """The `clew serve` commands of all files."""
    docker = re.findall(r"^CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    files = "".join(one.read_text() for one in DEPLOY.glob("compose*.yaml"))
    compose = re.findall(r"^ +command: (\[.*\])$", files, re.MULTILINE)
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


def steps_of(stage: int) -> list[tuple[str, str]]:
    """The instructions of one stage of the Dockerfile, each with its words."""
    lines = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    joined = lines.replace("\\\n", " ")
    stages = re.split(r"^FROM .*$", joined, flags=re.MULTILINE)[1:]
    return [(one.split()[0], one.partition(" ")[2]) for one in stages[stage].splitlines() if one]


def run_step(kind: str, words: str, place: Path) -> None:
    """Run a step of the build stage in a folder that stands for the root of its file system."""
    work = place / "build"
    if kind == "COPY":
        *sources, target = words.split()
        (work / target).mkdir(parents=True, exist_ok=True)
        for source in (ROOT / one for one in sources):
            if source.is_dir():
                held = shutil.ignore_patterns("__pycache__", "*.so")
                shutil.copytree(source, work / target, dirs_exist_ok=True, ignore=held)
            else:
                shutil.copy(source, work / target)
    elif kind == "RUN":
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        script = words.replace("/opt/clew", str(place / "opt/clew"))
        subprocess.run(["sh", "-ec", script], cwd=work, env={**own, "PATH": path}, check=True)
    else:
        assert kind == "WORKDIR" and words == "/build", f"the test cannot do {kind}"


def wait_until_healthy(server: "subprocess.Popen[str]", port: int, python: Path) -> None:
    """Run the image's own health check until it passes."""
    [check] = [words for kind, words in steps_of(1) if kind == "HEALTHCHECK"]
    _, *words = json.loads(check.partition("CMD ")[2])
    words = [one.replace(":8321", f":{port}") for one in words]
    for _ in range(120):
        if not subprocess.run([python, *words], capture_output=True).returncode:
            return
        assert server.poll() is None, server.stderr and server.stderr.read()
        time.sleep(0.5)
    pytest.fail("the server did not become healthy")


@pytest.mark.slow
def test_the_steps_of_the_image_give_a_server_of_a_bearable_size(tmp_path: Path) -> None:
    for kind, words in steps_of(0):
        run_step(kind, words, tmp_path)
    commands = tmp_path / "opt/clew/bin"
    held = sum(one.lstat().st_blocks * 512 for one in (tmp_path / "opt").rglob("*"))
    assert BASE_MB + held / 1e6 <= MOST_MB, f"the installation has {held / 1e6:.0f} MB"
    data = tmp_path / "data"
    data.mkdir()
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    own |= {"HOME": str(tmp_path), "CLEW_CACHE": str(data / ".cache")}
    folders = [("--root", str(data))]
    if not why_not():
        folders.append(())
    subprocess.run([commands / "clew", "demo"], cwd=tmp_path, env=own, check=True)
    with nullcontext("") if why_not() else start_server() as address:
        for chosen in folders:
            own["CLEW_KB"] = "" if chosen else address
            made = [commands / "clew", "keys", "add", "test", *chosen]
            subprocess.run(made, cwd=data, env=own, check=True)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            asked = [commands / "clew", "serve", *chosen, "--host", "0.0.0.0", "--port", str(port)]
            server = subprocess.Popen(asked, cwd=data, env=own, text=True, stderr=subprocess.PIPE)
            try:
                wait_until_healthy(server, port, commands / "python")
            finally:
                server.terminate()
                server.communicate(timeout=60)


def find_builder() -> str:
    """A program here that can build an image, or ""."""
    for name in filter(shutil.which, ("docker", "podman")):
        if not subprocess.run([name, "info"], capture_output=True).returncode:
            return name
    return ""


@pytest.mark.slow
def test_the_image_is_built_small_and_becomes_healthy() -> None:
    builder = find_builder()
    if not builder:
        pytest.skip("no docker or podman runs here; the steps are run by another test")
    tag = "clew-test"
    subprocess.run([builder, "build", "-f", DEPLOY / "Dockerfile", "-t", tag, ROOT], check=True)
    try:
        shown = subprocess.check_output([builder, "image", "inspect", tag], text=True)
        [image] = json.loads(shown)
        assert image["Size"] <= MOST_MB * 1e6
        assert image["Config"]["User"] == "clew" and list(image["Config"]["Volumes"]) == ["/data"]
        assert "clew" in subprocess.check_output([builder, "run", "--rm", tag, "id"], text=True)
        subprocess.run([builder, "run", "--rm", tag, "clew", "demo"], check=True)
        for files in (["compose.yaml"], ["compose.yaml", "compose.postgres.yaml"]):
            named = [word for one in files for word in ("-f", str(DEPLOY / one))]
            password = {**os.environ, "POSTGRES_PASSWORD": "test"}
            subprocess.run([builder, "compose", *named, "build"], env=password, check=True)
    finally:
        subprocess.run([builder, "image", "rm", "--force", tag], check=True)


def test_the_image_has_a_health_check_and_one_volume() -> None:
    last = steps_of(1)
    assert [words for kind, words in last if kind == "VOLUME"] == ["/data"]
    assert len([words for kind, words in last if kind == "HEALTHCHECK"]) == 1


def test_everything_that_the_build_needs_is_copied() -> None:
    """What the build reads besides the sources: its hook, and the files that pyproject names."""
    copied = {word for kind, words in steps_of(0) if kind == "COPY" for word in words.split()[:-1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    held = project["project"]
    assert copied >= {"pyproject.toml", "hatch_build.py", "src", held["readme"]}
    assert copied >= set(held["license-files"])
    extras = re.search(r"\.\[([\w,]+)\]", dict(steps_of(0))["RUN"])
    assert extras and set(extras[1].split(",")) <= set(held["optional-dependencies"])


def test_the_database_of_the_compose_files_is_the_one_that_is_served() -> None:
    yaml = pytest.importorskip("yaml")
    more = yaml.safe_load((DEPLOY / "compose.postgres.yaml").read_text())
    base = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    clew, database = more["services"]["clew"], more["services"]["postgres"]
    assert set(more["services"]) - {"postgres"} <= set(base["services"])
    user = database["environment"]["POSTGRES_USER"]
    assert clew["environment"]["CLEW_KB"] == f"postgresql://{user}@postgres/{user}"
    assert clew["environment"]["PGPASSWORD"] == database["environment"]["POSTGRES_PASSWORD"]
    assert {one.partition(":")[0] for one in database["volumes"]} == set(more["volumes"])
    assert re.fullmatch(r"postgres:\d+", database["image"])
