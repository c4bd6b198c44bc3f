"""Mutation testing: which small faults in the code do the tests detect?

`python -m bench.mutants [--packages P,P…] [--sample N] [--seed N] [--minutes N] [--workers N]`.
The tests run once under `coverage`, which records the lines that each test runs. Then, for every
mutant of a seeded sample, the tests that run its lines are run until one fails: those of the
package first, then the fastest, up to `--test-seconds` in all. A run that does not end counts as
detected. A mutant survives if no test fails, or if no test runs its lines. All runs use copies of
the tree, and are forks of a process that has imported the large libraries. The coverage is cached
in `.mutants/` until a source or a test changes. `--save FILE` writes the survivors, `--only FILE`
runs the survivors of such a file again, and `--tests DIR` adds tests.
"""

import argparse
import hashlib
import json
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.machine import print_result
from bench.mutant_runs import TestRun, Worker, copy_tree, trace_tests
from bench.mutations import Mutation, apply_mutation, find_mutations

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".mutants"
FIRST_FILES, FIRST_SECONDS = 3, 2.0


@dataclass(frozen=True)
class Mutant:
    """A mutation of a file, and the tests that may detect it."""

    package: str
    file: str
    mutation: Mutation
    rounds: tuple[tuple[str, ...], ...] = ()
    """Tests by round; the first is short, as it detects most mutants."""
    tests: int = 0
    of: int = 0
    """Number of tests to run, and of all tests that run the lines."""
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return what is needed to find the mutant again."""
        where = {"package": self.package, "file": self.file}
        return where | asdict(self.mutation) | {"tests": self.tests, "of": self.of}

    def __str__(self) -> str:
        mutation = self.mutation
        where = f"{self.file}:{mutation.line} {mutation.function or '(module)'}"
        return f"{where} [{mutation.kind}] {mutation.before} -> {mutation.after}"


@dataclass
class Coverage:
    """The duration of each test, and which tests run each line."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]
    """Tests by file and line."""

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that run the statement: the package's own first, then the fastest."""
        lines, mutation = self.lines.get(mutant.file, {}), mutant.mutation
        wanted = range(mutation.first, mutation.last + 1)
        if not _in_function(mutation):  # runs once, at import: any test of the file may detect it
            wanted = range(1, 1 + max(lines, default=0))
        found = {test for line in wanted for test in lines.get(line, ()) if test in self.seconds}
        own = f"/{mutant.package}/"
        return sorted(found, key=lambda test: (own not in test, self.seconds[test], test))


def _in_function(mutation: Mutation) -> bool:
    """Whether the innermost scope is a function: class names begin with a capital."""
    last = mutation.function.rpartition(".")[2].lstrip("_")
    return bool(last) and not last[0].isupper()


@dataclass
class Score:
    """Results of one package."""

    detected: int = 0
    survived: list[Mutant] = field(default_factory=list)
    uncovered: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the figures."""
        tried = self.detected + len(self.survived)
        return {
            "score": round(100 * self.detected / tried, 1) if tried else None,
            "detected": self.detected,
            "tried": tried,
            "survived": len(self.survived),
            "on_uncovered_lines": self.uncovered,
        }


# -- the sample


def sample_mutants(how: argparse.Namespace, coverage: Coverage) -> list[Mutant]:
    """Sample each package by the seed; they alternate, so that a time limit is fair to all."""
    packages = [list(_draw_sample(name, how, coverage)) for name in how.packages.split(",")]
    longest = max(map(len, packages))
    return [one[at] for at in range(longest) for one in packages if at < len(one)]


def _draw_sample(package: str, how: argparse.Namespace, coverage: Coverage) -> Iterator[Mutant]:
    folders = [one for one in sorted((ROOT / "src").glob(f"*/{package}")) if one.is_dir()]
    if not folders:
        raise SystemExit(f"there is no src/*/{package}; name packages with --packages")
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    every = [
        (str(file.relative_to(ROOT)), mutation)
        for file in files
        for mutation in find_mutations(file.read_text(encoding="utf-8"))
    ]
    random.Random(f"{how.seed} {package}").shuffle(every)
    for file, mutation in every[: how.sample] if how.sample else every:
        yield choose_tests(Mutant(package, file, mutation), coverage, how.test_seconds)


def load_survivors(file: Path, how: argparse.Namespace, coverage: Coverage) -> list[Mutant]:
    """Return the survivors of an earlier run that still exist in the code."""
    found = []
    for row in json.loads(file.read_text(encoding="utf-8"))["survivors"]:
        source = (ROOT / row["file"]).read_text(encoding="utf-8")
        same = [one for one in find_mutations(source) if _is_same(one, row)]
        found += [
            choose_tests(Mutant(row["package"], row["file"], one), coverage, how.test_seconds)
            for one in same
        ]
    return found


def _is_same(mutation: Mutation, row: dict[str, Any]) -> bool:
    return all(
        getattr(mutation, name) == row[name] for name in ("number", "kind", "before", "after")
    )


def choose_tests(mutant: Mutant, coverage: Coverage, limit: float) -> Mutant:
    """Return the mutant with tests that take at most `limit` seconds, but at least one test."""
    found = coverage.tests_of(mutant)
    taken: list[str] = []
    seconds = 0.0
    for test in found:
        if taken and seconds + coverage.seconds[test] > limit:
            break
        taken.append(test)
        seconds += coverage.seconds[test]
    rounds = tuple(part for part in _rounds(taken, coverage) if part)
    return replace(mutant, rounds=rounds, tests=len(taken), of=len(found), seconds=seconds)


def _rounds(tests: Sequence[str], coverage: Coverage) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split into two rounds; the first uses few files, since importing many is slow."""
    files: set[str] = set()
    first: list[str] = []
    seconds = 0.0
    for test in tests:
        file = test.partition("::")[0]
        if len(files | {file}) > FIRST_FILES or seconds > FIRST_SECONDS:
            continue
        files.add(file)
        first.append(test)
        seconds += coverage.seconds[test]
    rest = set(tests).difference(first)
    return tuple(first), tuple(test for test in tests if test in rest)


# -- coverage


def load_coverage(how: argparse.Namespace) -> Coverage:
    """Return the cached coverage, or run all tests once to measure it."""
    kept = CACHE / f"{_digest(how)}.json"
    if not kept.exists():
        print("running the tests once to measure their coverage", flush=True)
        CACHE.mkdir(exist_ok=True)
        tree = copy_tree(ROOT, CACHE / "traced", how.tests)
        packages = how.packages.split(",")
        kept.write_text(
            json.dumps(trace_tests(tree, packages, CACHE / "traced.log")), encoding="utf-8"
        )
    found = json.loads(kept.read_text(encoding="utf-8"))
    lines = {
        file: {int(line): [found["tests"][at] for at in tests] for line, tests in rows.items()}
        for file, rows in found["lines"].items()
    }
    return Coverage(found["seconds"], lines)


def _digest(how: argparse.Namespace) -> str:
    """Hash the sources and tests."""
    folders = [ROOT / "src", ROOT / "tests", *([how.tests] if how.tests else [])]
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    digest = hashlib.sha256(how.packages.encode())
    for file in files:
        digest.update(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}".encode())
    return digest.hexdigest()[:16]


# -- running


def run_mutants(
    mutants: Sequence[Mutant], how: argparse.Namespace, until: float
) -> dict[str, Score]:
    """Run one mutant after the other until all are run or the time is over."""
    scores: dict[str, Score] = defaultdict(Score)
    workers = [
        Worker(copy_tree(ROOT, CACHE / f"worker{at}", how.tests)) for at in range(how.workers)
    ]
    waiting = list(reversed(mutants))
    busy: dict[Worker, Mutant] = {}
    while busy or (waiting and time.monotonic() < until):
        for worker in [one for one in workers if one not in busy]:
            if waiting and time.monotonic() < until:
                mutant = waiting.pop()
                if mutant.rounds:
                    busy[worker] = _start_round(worker, mutant)
                else:
                    scores[mutant.package].uncovered += 1
                    _record(scores, mutant, False)
        time.sleep(0.02)
        for worker, mutant in list(busy.items()):
            if (detected := worker.poll()) is None:
                continue
            if not detected and mutant.rounds:
                busy[worker] = _start_round(worker, mutant)
            else:
                del busy[worker]
                _record(scores, mutant, detected)
    return scores


def _start_round(worker: Worker, mutant: Mutant) -> Mutant:
    """Start the next round; return the mutant with the rounds after it."""
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    source = apply_mutation(source, mutant.mutation.number)
    worker.start(TestRun(mutant.file, source, mutant.rounds[0], 20 + 5 * mutant.seconds))
    return replace(mutant, rounds=mutant.rounds[1:])


def _record(scores: dict[str, Score], mutant: Mutant, detected: bool) -> None:
    score = scores[mutant.package]
    if detected:
        score.detected += 1
    else:
        score.survived.append(mutant)
        tried = sum(one.detected + len(one.survived) for one in scores.values())
        print(f"survived (of {tried}): {mutant}", flush=True)


def main() -> None:
    """Measure coverage, sample, run and report."""
    how = _options()
    started = time.monotonic()
    coverage = load_coverage(how)
    mutants = load_survivors(how.only, how, coverage) if how.only else sample_mutants(how, coverage)
    scores = run_mutants(mutants, how, started + 60 * how.minutes)
    figures = {name: score.as_dict() for name, score in sorted(scores.items())}
    survivors = [one.as_dict() for score in scores.values() for one in score.survived]
    if how.save:
        result = {"figures": figures, "survivors": survivors}
        how.save.write_text(json.dumps(result, indent=1), encoding="utf-8")
    for name, row in figures.items():
        print(f"{name}: {row['detected']} of {row['tried']} detected ({row['score']} %)")
    sizes = {"sample": how.sample, "seed": how.seed, "mutants": len(mutants)}
    seconds = round(time.monotonic() - started)
    print_result(
        "mutants", figures | {"seconds": seconds}, sizes | {"tests": len(coverage.seconds)}
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--packages", default="store,agents,retrieve")
    parser.add_argument("--sample", type=int, default=60, help="of each package; 0 takes all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=14.0, help="in all")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--test-seconds", type=float, default=15.0, help="seconds of tests per mutant"
    )
    parser.add_argument("--save", type=Path)
    parser.add_argument("--only", type=Path)
    parser.add_argument("--tests", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
