"""Runs the trials of an attack campaign: seeded, bounded in time, and resumed where it stopped.

Every campaign takes `--count N` trials and `--seconds S` at most, `--seed` and `--fresh` (forget
the trials done so far). Trial `n` of a seed is always the same; `--only N` repeats one alone.
"""

import argparse
import atexit
import gc
import json
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from types import FrameType

from bench.machine import print_result
from clew.errors import ClewError

Trial = Callable[[random.Random, Path], str]
"""Attacks once, in an empty folder; returns what happened, in a few words, or raises."""
_STATE_FOLDER = Path(".attack")
_SAVE_EVERY = 5.0  # seconds
_MAX_SHOWN = 20
_RAM_DISK = Path("/dev/shm")
RAM_DISK = _RAM_DISK if _RAM_DISK.is_dir() else None  # where syncing to disk costs nothing


class BrokenPromiseError(Exception):
    """The knowledge base did what it promises never to do."""


class HangError(BaseException):
    """A trial ran longer than its limit; no `except Exception` of the attacked code holds it."""


@dataclass
class Progress:
    """What a campaign has done so far."""

    next: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    failures: list[dict[str, str]] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Options:
    """Options of a campaign."""

    count: int
    seconds: float
    seed: int = 1
    only: int | None = None
    fresh: bool = False
    trial_seconds: int = 120
    state: Path | None = None
    part: str = ""


def parse_options(description: str, count: int, seconds: float = 600) -> Options:
    """Parse the command line of a campaign."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=count, help="trials in all")
    parser.add_argument("--seconds", type=float, default=seconds, help="time limit of this run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="repeat this trial alone, with its traceback")
    parser.add_argument("--fresh", action="store_true", help="forget the trials done so far")
    parser.add_argument("--part", default="", help="one part of the campaign alone, by its name")
    given = parser.parse_args()
    return Options(given.count, given.seconds, given.seed, given.only, given.fresh, part=given.part)


def run_campaign(name: str, trial: Trial, options: Options) -> Progress:
    """Run trials until the count or the time is reached, then print the closing JSON object."""
    if options.only is not None:
        print(_attack(name, trial, options, options.only))
        return Progress()
    part = f"-{options.part}" if options.part else ""
    path = options.state or _STATE_FOLDER / f"{name}{part}-{options.seed}.json"
    done = _load_progress(path, options.fresh)
    gc.freeze()  # what is imported is not looked through in every trial
    outcomes, began, saved = Counter(done.outcomes), monotonic(), monotonic()
    before = done.seconds
    while done.next < options.count and monotonic() - began < options.seconds:
        outcome = _try_trial(name, trial, options, done)
        outcomes[outcome] += 1
        done.next += 1
        if monotonic() - saved > _SAVE_EVERY:
            saved = monotonic()
            done.outcomes, done.seconds = dict(outcomes), before + monotonic() - began
            _save_progress(path, done)
            print(f"{done.next} trials, {len(done.failures)} failed", file=sys.stderr)
    done.outcomes, done.seconds = dict(outcomes), before + monotonic() - began
    _save_progress(path, done)
    figures = {
        "trials": done.next,
        "failures": len(done.failures),
        "outcomes": dict(outcomes.most_common()),
        "part": options.part,
        "first_failures": done.failures[:_MAX_SHOWN],
    }
    print_result(f"attack-{name}", figures, {"seed": options.seed, "seconds": round(done.seconds)})
    return done


def _try_trial(name: str, trial: Trial, options: Options, done: Progress) -> str:
    try:
        return _attack(name, trial, options, done.next)
    except (Exception, HangError) as error:  # noqa: BLE001  (whatever escapes is what is sought)
        where = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        done.failures.append({"trial": str(done.next), "error": message[:500]})
        print(f"trial {done.next}: {message[:500]}", file=sys.stderr)
        return "FAILED"


def _attack(name: str, trial: Trial, options: Options, number: int) -> str:
    with tempfile.TemporaryDirectory(prefix="clew-attack-", dir=RAM_DISK) as folder:
        with time_limit(options.trial_seconds):
            return trial(random.Random(f"{name}:{options.seed}:{number}"), Path(folder))


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise `HangError` in the block after so many seconds."""

    def stop(_: int, __: FrameType | None) -> None:
        raise HangError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def make_kept_folder() -> Path:
    """A folder that is kept for all trials, and removed when the campaign ends."""
    folder = Path(tempfile.mkdtemp(prefix="clew-attack-", dir=RAM_DISK))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def expect(holds: bool, promise: str) -> None:
    """Raise if a promise is broken."""
    if not holds:
        raise BrokenPromiseError(promise)


def describe_error(error: ClewError) -> str:
    """The kind of a refusal, for counting."""
    return f"refused: {type(error).__name__}"


def _load_progress(path: Path, fresh: bool) -> Progress:
    if fresh or not path.exists():
        return Progress()
    return Progress(**json.loads(path.read_text()))


def _save_progress(path: Path, done: Progress) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(asdict(done)))
    beside.replace(path)
