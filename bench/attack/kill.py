"""Kills every writing command at one of its changes, and repeats it; the result must be the same.

`python -m bench.attack.kill [--count N] [--seconds S] [--seed N] [--part FAMILY]`. A trial takes a
command of `bench/attack/families.py`, and kills it up to twelve times: at its n-th change of a file
or statement of a transaction, or after a share of its time. After each kill the knowledge base
verifies; after the command is repeated, tables, rankings and trees equal those of a run that was
not killed, and no text was embedded twice but those in flight.
"""

import os
import random
import shutil
import signal
import time
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from bench.attack.campaign import expect, make_kept_folder, parse_options, run_campaign
from bench.attack.families import FAMILIES, IN_FLIGHT, Family, Work
from bench.attack.sample import (
    build_sample,
    describe_trees,
    fingerprint,
    open_kb,
    rank_all,
    read_truth,
    run,
)
from clew.errors import ClewError
from clew.testing.kill_points import KillPoints

_SHARE_BY_TIME = 0.25  # of the kills: those within a statement or a write
_MAX_KILLS = 12
_POINTS_FILE = "points"  # beside the folder of a run


@dataclass(frozen=True)
class Reference:
    """The state a family starts from, and what it comes to undisturbed."""

    folder: Path
    before: Any
    after: Any
    seconds: float
    points: int
    """At how many of its changes it can be killed."""
    embedded: int
    fingerprint: str
    """Of the state after it: an equal one need not be searched again."""


@cache
def make_reference(number: int) -> Reference:
    """Prepare a family's starting state, run it once, and keep what comes of it."""
    family = FAMILIES[number]
    root = make_kept_folder()
    (root / "start").mkdir()
    run(build_sample(root / "start/kb"))
    family.prepare(root / "start")
    before = inspect_kb(root / "start") if family.sound else None
    (root / "start/embedded").unlink(missing_ok=True)
    shutil.copytree(root / "start", root / "done")
    began = time.monotonic()
    expect(_fork(family.work, root / "done") == 0, f"{family.name} fails undisturbed")
    seconds = time.monotonic() - began
    points = int((root / _POINTS_FILE).read_text())
    after = inspect_kb(root / "done")
    count, mark = _count(root / "done"), fingerprint(root / "done/kb")
    return Reference(root / "start", before, after, seconds, points, count, mark)


def inspect_after(folder: Path, reference: Reference) -> Any:
    """The same as `inspect_kb`; searches only if anything that is read differs from the reference.

    `verify` has the last word on both: a fingerprint leaves out what only it looks at.
    """
    if fingerprint(folder / "kb") != reference.fingerprint:
        return inspect_kb(folder)
    (rankings, trees, _), truth = reference.after

    async def work() -> list[str]:
        base = await open_kb(folder / "kb")
        try:
            return await base.verify()
        finally:
            await base.close()

    expect(read_truth(folder / "kb") == truth, "other tables than undisturbed")
    return (rankings, trees, run(work())), truth


def inspect_kb(folder: Path) -> Any:
    """Tables, rankings, trees and what verify says."""

    async def work() -> Any:
        base = await open_kb(folder / "kb")
        try:
            found = await rank_all(base), await describe_trees(base), await base.verify()
        finally:
            await base.close()
        return found

    return run(work()), read_truth(folder / "kb")


def _count(folder: Path) -> int:
    file = folder / "embedded"
    return sum(map(int, file.read_text().split())) if file.exists() else 0


def verify_kb(folder: Path) -> list[str]:
    """What verify says, but of descriptions that are embedded after the write."""

    async def work() -> list[str]:
        base = await open_kb(folder / "kb")
        try:
            found = await base.verify()
        finally:
            await base.close()
        return [one for one in found if not one.endswith("have no vector yet")]

    return run(work())


def _fork(work: Work, folder: Path, *, delay: float = 0.0, kill_at: int = 0) -> int:
    """Run in a child process, killed after `delay` seconds or at a point; return its status."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            if delay:
                signal.setitimer(signal.ITIMER_REAL, delay)
            os.chdir(folder)  # document names are relative
            points = KillPoints(Path(), kill_at)
            points.install()
            run(work(Path()))  # type: ignore[arg-type]
            Path("..", _POINTS_FILE).write_text(str(points.count))
            code = 0
        except ClewError as error:
            os.write(2, f"{error}\n".encode())
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def attack_kill(rng: random.Random, folder: Path, name: str = "") -> str:
    """One trial: kill and look, a few times; then repeat and compare."""
    names = [family.name for family in FAMILIES]
    number = names.index(name) if name else rng.randrange(len(FAMILIES))
    family, reference = FAMILIES[number], make_reference(number)
    trial = Path(shutil.copytree(reference.folder, folder / "trial"))
    kills = 0
    for _ in range(rng.randint(1, _MAX_KILLS)):
        status = _kill(rng, family, reference, trial)
        if not os.WIFSIGNALED(status):
            expect(status == 0, f"{family.name}: refused after a kill")
            break
        kills += 1
        if family.sound:
            problems = verify_kb(trial)
            expect(not problems, f"{family.name}: after a kill, verify: {problems}")
    expect(_fork(family.work, trial) == 0, f"{family.name}: cannot be repeated")
    _compare(family, inspect_after(trial, reference), reference.after)
    again = _count(trial) - reference.embedded if family.stores_vectors else 0
    expect(again <= kills * IN_FLIGHT, f"{family.name}: {again} texts embedded twice")
    return f"{family.name}: {kills} kills"


def _kill(rng: random.Random, family: Family, reference: Reference, trial: Path) -> int:
    if rng.random() < _SHARE_BY_TIME:
        return _fork(family.work, trial, delay=max(rng.random() * reference.seconds, 1e-4))
    # Often early: what is kept of a killed run makes the next one shorter.
    last = rng.randint(1, reference.points) if rng.random() < 0.5 else reference.points
    return _fork(family.work, trial, kill_at=rng.randint(1, last))


def _compare(family: Family, found: Any, wanted: Any) -> None:
    for what, one, other in zip(
        ("rankings", "trees", "problems", "tables"),
        (*found[0], found[1]),
        (*wanted[0], wanted[1]),
        strict=True,
    ):
        differ = one != other and [a for a, b in zip(one, other, strict=False) if a != b][:1]
        expect(one == other, f"{family.name}: other {what} than undisturbed: {str(differ)[:300]}")


if __name__ == "__main__":
    options = parse_options(str(__doc__), 5_000)
    run_campaign("kill", partial(attack_kill, name=options.part), options)
