"""Damages one file of a knowledge base, uses it, verifies and repairs it.

`python -m bench.attack.files [--count N] [--seconds S] [--seed N]`. A trial truncates, zeroes,
flips, swaps, deletes or ages one file, or swaps sectors or words in it. Afterwards every question
is either answered as before or refused in one sentence; a damage that changed anything is reported
by `verify`; what is derived is right again after `verify --repair`.
"""

import random
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from bench.attack.campaign import (
    describe_error,
    expect,
    make_kept_folder,
    parse_options,
    run_campaign,
)
from bench.attack.sample import TREES, build_sample, make_sample, open_kb, rank_all, run, stream
from clew.errors import ClewError

_SECTOR = 512


@cache
def make_template() -> tuple[Path, Path, list[Any]]:
    """A sound knowledge base, an older state of it, and what it finds."""
    root = make_kept_folder()
    run(build_sample(root / "kb"))
    shutil.copytree(root / "kb", root / "old")

    async def extend() -> list[Any]:
        base = await open_kb(root / "kb")
        await base.take(stream([make_sample(number) for number in range(12, 15)]))
        await base.builder.make_tree_manager().build(TREES)  # as a repair would
        found = await rank_all(base)
        await base.close()
        return found

    return root / "kb", root / "old", run(extend())


def truncate(rng: random.Random, path: Path) -> None:
    """Cut the file somewhere."""
    raw = path.read_bytes()
    path.write_bytes(raw[: rng.randrange(len(raw))] if raw else raw)


def zero(rng: random.Random, path: Path) -> None:
    """Overwrite a run of sectors with zeros."""
    raw = bytearray(path.read_bytes())
    at = rng.randrange(len(raw) + 1) // _SECTOR * _SECTOR
    size = min(_SECTOR * rng.randint(1, 8), len(raw) - at)
    raw[at : at + size] = bytes(size)
    path.write_bytes(raw)


def flip(rng: random.Random, path: Path) -> None:
    """Flip one bit."""
    raw = bytearray(path.read_bytes())
    if raw:
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    path.write_bytes(raw)


def garble(rng: random.Random, path: Path) -> None:
    """Overwrite a few bytes with others."""
    raw = bytearray(path.read_bytes())
    at = rng.randrange(len(raw) + 1)
    raw[at : at + 16] = rng.randbytes(len(raw[at : at + 16]))
    path.write_bytes(raw)


def swap(rng: random.Random, path: Path) -> None:
    """Swap it with another file of its folder."""
    others = [one for one in sorted(path.parent.iterdir()) if one != path and one.is_file()]
    if others:
        other, aside = rng.choice(others), path.with_name("aside")
        path.replace(aside)
        other.replace(path)
        aside.replace(other)


def swap_sectors(rng: random.Random, path: Path) -> None:
    """Swap two of its sectors, as a disk that mixes up its writes."""
    _swap_parts(rng, path, _SECTOR)


def swap_words(rng: random.Random, path: Path) -> None:
    """Swap two words of one sector."""
    _swap_parts(rng, path, rng.choice((2, 4, 8)), _SECTOR)


def _swap_parts(rng: random.Random, path: Path, size: int, within: int = 0) -> None:
    raw = bytearray(path.read_bytes())
    begin = rng.randrange(len(raw) // within) * within if within and len(raw) >= within else 0
    parts = (min(within, len(raw)) if within else len(raw)) // size
    if parts > 1:
        first, second = (begin + size * at for at in rng.sample(range(parts), 2))
        one, other = raw[first : first + size], raw[second : second + size]
        raw[first : first + size], raw[second : second + size] = other, one
    path.write_bytes(raw)


def delete(_: random.Random, path: Path) -> None:
    """Delete it."""
    path.unlink()


def age(rng: random.Random, path: Path) -> None:
    """Replace it by its state some writes ago."""
    _, old, _ = make_template()
    root = next(parent for parent in path.parents if (parent / "kb.sqlite").exists())
    earlier = old / path.relative_to(root)
    if "arrays" in path.parts:
        folders = [one for one in sorted((old / "arrays").iterdir()) if one.name.isdigit()]
        earlier = rng.choice(folders) / path.name
    if earlier.exists():
        shutil.copy(earlier, path)
    else:
        path.unlink()


DAMAGES = (truncate, zero, flip, garble, swap, swap_sectors, swap_words, delete, age)


def attack_file(rng: random.Random, folder: Path) -> str:
    """One trial."""
    template, _, expected = make_template()
    kb = Path(shutil.copytree(template, folder / "kb"))
    generation = max(int(one.name) for one in (kb / "arrays").iterdir())
    files = [
        path
        for path in sorted(kb.rglob("*"))
        if path.is_file()
        and path.name != "writer.lock"
        and not ("arrays" in path.parts and path.parent.name != str(generation))
    ]
    # The database is one file of a hundred, but the one that matters most.
    path = kb / "kb.sqlite" if rng.random() < 0.3 else rng.choice(files)
    before = path.read_bytes()
    damage = rng.choice(DAMAGES)
    damage(rng, path)
    what = f"{damage.__name__} {path.relative_to(kb)}"
    if path.exists() and path.read_bytes() == before:
        return "unchanged"
    return run(_use(kb, expected, what, path.name == "kb.sqlite"))


async def _use(kb: Path, expected: list[Any], what: str, is_truth: bool) -> str:
    """Search, verify, repair; compare with what was found before the damage."""
    used = await _search(kb, expected)
    expect(used != "differs", f"{what}: other results, unseen")
    problems = await _verify(kb)
    expect(used == "same" or bool(problems), f"{what}: {used}, but verify found nothing")
    try:
        base = await open_kb(kb)
        await base.repair()
        left = await base.verify()
        await base.close()
    except ClewError as error:
        expect(is_truth, f"{what}: not repaired: {error}")
        return f"{used}; truth: {describe_error(error)}"
    if is_truth and left:
        return f"{used}; truth: reported"
    expect(not left, f"{what}: after repair {left}")
    again = await _search(kb, expected)
    expect(is_truth or again == "same", f"{what}: after repair {again}")
    return f"{used}; {'reported' if problems else 'harmless'}; repaired"


async def _search(kb: Path, expected: list[Any]) -> str:
    try:
        base = await open_kb(kb)
        try:
            found = await rank_all(base)
        finally:
            await base.close()
    except ClewError as error:
        return describe_error(error)
    return "same" if found == expected else "differs"


async def _verify(kb: Path) -> list[str]:
    try:
        base = await open_kb(kb)
        try:
            return await base.verify()
        finally:
            await base.close()
    except ClewError as error:
        return [str(error)]


if __name__ == "__main__":
    run_campaign("files", attack_file, parse_options(str(__doc__), 2_000))
