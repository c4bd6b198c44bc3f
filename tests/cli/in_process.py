"""The command line called in this process: the same words, output and exit codes, no start-up."""

import os
from contextlib import chdir
from pathlib import Path

from typer.testing import CliRunner, Result

from clew.cli import common as door
from clew.cli.app import app

WIDE = 200


def clew(*words: str, cwd: Path, code: int = 0, told: str = "") -> str:
    """Run the command in a folder; return stdout, or stderr when it should fail."""
    done = invoke(*words, cwd=cwd, code=code, told=told)
    return done.stdout if code == 0 else done.stderr


def invoke(*words: str, cwd: Path, code: int = 0, told: str = "") -> Result:
    """The same with both streams."""
    unset = {key: None for key in os.environ if key.startswith(("CLEW", "OPENAI"))}
    for console in (door.out, door.err):
        console.width = WIDE
    with chdir(cwd):
        done = CliRunner().invoke(app, list(words), input=told, env=unset)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.stderr
    return done
