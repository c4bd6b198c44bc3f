"""Applies random histories of writes and compares the result with a fresh build of what remains.

`python -m bench.attack.history [--count N] [--seconds S] [--seed N]`. A history adds, changes,
renames and removes documents and rows, cuts their file, imports and removes a graph, re-embeds,
repairs, grows trees, decides on names and withdraws decisions, and searches in between, from one
or two handles of the folder or by the command line. In the end the tables equal those of a fresh
build with the same decisions, and so do the rankings of the recipes, up to the order of equal
scores. A tree equals one built now, or says that it is not fresh.
"""

import asyncio
import json
import os
import random
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import chdir, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from bench.attack.campaign import expect, parse_options, run_campaign
from bench.attack.sample import (
    QUESTIONS,
    RECIPES,
    TREES,
    describe_trees,
    make_text,
    open_kb,
    read_truth,
    run,
)
from clew import engine
from clew.cli.app import app
from clew.engine import KnowledgeBase
from clew.errors import StoreError
from clew.testing.fakes import QuotingEmbed

_DOCUMENTS = 8
_ROWS = 6
_TREE_RECIPES = ("raptor", "youtu")  # compared where their trees are fresh
EXACT = tuple(one for one in RECIPES if one not in _TREE_RECIPES)
_ALL = 100  # more chunks than there are
_PAIRS = (("Upper Sarn", "Deepwell"), ("Hallowmere", "Pellworth"), ("Oda Falk", "Edda Marling"))
DECISION_KINDS = ("resolution", "senses")
_GRAPH = ({"head": "Ilse Brandvik", "relation": "taught", "tail": "Oda Falk"},)


@dataclass
class World:
    """The files as they should be, by name, and the knowledge base under attack."""

    rng: random.Random
    folder: Path
    texts: dict[str, str] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=dict)
    graph: bool = False
    log: list[str] = field(default_factory=list)
    handles: list[KnowledgeBase] = field(default_factory=list)

    def base(self) -> KnowledgeBase:
        """One of the open handles."""
        return self.rng.choice(self.handles)

    def save(self, name: str, text: str) -> None:
        """Write a file."""
        (self.folder / name).write_text(text)

    def delete(self, name: str) -> None:
        """Delete a file."""
        (self.folder / name).unlink()

    def cut(self, name: str) -> None:
        """Cut a file within its last line."""
        raw = (self.folder / name).read_bytes()
        (self.folder / name).write_bytes(raw[:-9])

    def save_rows(self) -> None:
        """Write the file of rows."""
        lines = [json.dumps({"id": name, "text": text}) for name, text in self.rows.items()]
        (self.folder / "rows.jsonl").write_text("\n".join(lines) + "\n")


async def add_text(world: World) -> None:
    """Add or change a text file."""
    number = world.rng.randrange(_DOCUMENTS)
    name, text = f"{number}.txt", make_text(number, world.rng.randrange(3))
    world.texts[name] = text
    world.save(name, text)
    await world.base().add([name])


async def rename_text(world: World) -> None:
    """Add the same text under another name, and remove the first."""
    if not world.texts:
        return
    old = world.rng.choice(sorted(world.texts))
    new = f"renamed-{world.rng.randrange(3)}.txt"
    if new == old:
        return
    world.texts[new] = world.texts.pop(old)
    world.save(new, world.texts[new])
    world.delete(old)
    await world.base().add([new])
    await world.base().remove([old])


async def remove_text(world: World) -> None:
    """Remove a document."""
    if world.texts:
        name = world.rng.choice(sorted(world.texts))
        del world.texts[name]
        world.delete(name)
        await world.base().remove([name])


async def change_rows(world: World) -> None:
    """Add, change or drop rows, then add their file again."""
    for _ in range(world.rng.randint(1, 3)):
        number = world.rng.randrange(_ROWS)
        if f"r{number}" in world.rows and world.rng.random() < 0.4 and len(world.rows) > 1:
            del world.rows[f"r{number}"]
        else:
            world.rows[f"r{number}"] = make_text(100 + number, world.rng.randrange(3))
    world.save_rows()
    await world.base().add(["rows.jsonl"])


async def cut_rows(world: World) -> None:
    """Add a file of rows that was cut in its last line: nothing is removed."""
    if len(world.rows) < 2:
        return
    world.save_rows()
    world.cut("rows.jsonl")
    await world.base().add(["rows.jsonl"])
    world.save_rows()


async def remove_rows(world: World) -> None:
    """Remove all rows of the file."""
    if world.rows:
        world.rows.clear()
        await world.base().remove(["rows.jsonl"])


async def toggle_graph(world: World) -> None:
    """Import the graph, or remove it."""
    if world.graph:
        await world.base().remove(["graph.jsonl"])
    else:
        world.save("graph.jsonl", "\n".join(map(json.dumps, _GRAPH)))
        await world.base().import_graph("graph.jsonl")
    world.graph = not world.graph


async def reembed(world: World) -> None:
    """Recompute the vectors."""
    await world.base().reembed()


async def repair(world: World) -> None:
    """Derive everything again."""
    await world.base().repair()


async def grow(world: World) -> None:
    """Build the trees."""
    if world.texts or world.rows:
        await world.base().builder.make_tree_manager().build(TREES)


async def decide(world: World) -> None:
    """Merge two names by hand, split them, or withdraw the decision."""
    pair = world.rng.choice(_PAIRS)
    how = world.rng.choice(("merge", "split", "undo"))
    identity = world.base().identity
    try:
        if how == "merge":
            await identity.merge(*pair)
        elif how == "split":
            await identity.split(pair[0], other=pair[1])
        else:
            await identity.undo(*pair)
    except StoreError:
        return  # a name is not there (any more), or it is decided already


async def ask(world: World) -> None:
    """Search by one recipe: vectors that were left for their first use are made here."""
    if world.texts or world.rows:
        await world.base().search(QUESTIONS[0], recipe=world.rng.choice(EXACT))


async def use_command_line(world: World) -> None:
    """Add or remove a document by the command line."""
    number = world.rng.randrange(_DOCUMENTS)
    name = f"{number}.txt"
    if name in world.texts and len(world.texts) > 1:
        words = ["rm", name]
        del world.texts[name]
        world.delete(name)
    else:
        world.texts[name] = make_text(number, world.rng.randrange(3))
        world.save(name, world.texts[name])
        words = ["add", name]
    done = await asyncio.to_thread(CliRunner().invoke, app, [*words, "--kb", "kb"])
    expect(done.exit_code == 0, f"clew {' '.join(words)}: {done.output[-300:]}")


async def open_again(world: World) -> None:
    """Close a handle, as a process that ends, and open another."""
    at = world.rng.randrange(len(world.handles))
    await world.handles[at].close()
    world.handles[at] = await open_kb(Path("kb"), QuotingEmbed())


STEPS: tuple[Callable[[World], Awaitable[None]], ...] = (
    *(add_text,) * 4,
    *(change_rows,) * 3,
    *(remove_text,) * 2,
    *(rename_text, cut_rows, remove_rows, toggle_graph, reembed, repair, grow, open_again),
    *(decide, decide, ask, use_command_line),
)


async def _build_fresh(world: World) -> KnowledgeBase:
    fresh = await open_kb(Path("fresh"), QuotingEmbed())
    with closing(sqlite3.connect("kb/kb.sqlite")) as db:
        for kind in DECISION_KINDS:
            held = db.execute("SELECT key, value FROM memory WHERE kind = ?", (kind,)).fetchall()
            await fresh.store.set(kind, dict(held))
    if world.texts:
        await fresh.add(sorted(world.texts))
    if world.rows:
        await fresh.add(["rows.jsonl"])
    if world.graph:
        await fresh.import_graph("graph.jsonl")
    return fresh


async def _run_history(rng: random.Random, folder: Path) -> str:
    world = World(rng, folder)
    world.handles = [await open_kb(Path("kb"), QuotingEmbed()) for _ in range(rng.choice((1, 2)))]
    for _ in range(rng.randint(3, 14)):
        step = rng.choice(STEPS)
        world.log.append(step.__name__)
        await step(world)
    story = ", ".join(world.log)
    base = world.handles[0]
    problems = await base.verify()
    expect(not problems, f"{story}: {problems}")
    fresh = await _build_fresh(world)
    expect(read_truth(Path("kb")) == read_truth(Path("fresh")), f"{story}: other tables")
    if world.texts or world.rows or world.graph:
        # One question each: thousands of histories ask every recipe all of them.
        for recipe in EXACT:
            await _compare_ranking(base, fresh, recipe, rng.choice(QUESTIONS), story)
        await _compare_trees(base, fresh, rng, story)
    for one in (*world.handles, fresh):
        await one.close()
    return "same"


async def _compare_ranking(
    base: KnowledgeBase, fresh: KnowledgeBase, recipe: str, question: str, story: str
) -> None:
    same = await _rank(base, recipe, question) == await _rank(fresh, recipe, question)
    expect(same, f"{story}: {recipe} ranks otherwise ({question})")


async def _rank(base: KnowledgeBase, recipe: str, question: str) -> list[Any]:
    """All chunks a recipe finds, those of equal score in an order of their own."""
    chunks = (await base.search(question, recipe=recipe, k=_ALL)).evidence.chunks
    return sorted((-round(chunk.score, 3), chunk.doc, chunk.text) for chunk in chunks)


async def _compare_trees(
    base: KnowledgeBase, fresh: KnowledgeBase, rng: random.Random, story: str
) -> None:
    states: dict[str, Any] = (await base.status())["trees"]
    expect("stale" not in states.values(), f"{story}: a stale tree after a finished write")
    if not states or "fresh" not in states.values() or "missing" in states.values():
        return
    await fresh.builder.make_tree_manager().build([n for n, s in states.items() if s == "fresh"])
    held, built = (await describe_trees(base))[0], (await describe_trees(fresh))[0]
    numbers = {one[0] for one in built}
    same = [one for one in held if one[0] in numbers] == built
    expect(same, f"{story}: a fresh tree that is not")
    if set(states.values()) == {"fresh"}:
        for recipe in _TREE_RECIPES:
            await _compare_ranking(base, fresh, recipe, rng.choice(QUESTIONS), story)


def _find_fake_embedder(*_: object, **__: object) -> QuotingEmbed:
    return QuotingEmbed()


def attack_history(rng: random.Random, folder: Path) -> str:
    """One trial."""
    real = vars(engine)["find_embedder"]
    vars(engine)["find_embedder"] = _find_fake_embedder  # of the command line
    with chdir(folder):
        try:
            return run(_run_history(rng, folder))
        except StoreError as error:
            raise AssertionError(f"a step was refused: {error}") from error
        finally:
            vars(engine)["find_embedder"] = real


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run_campaign("history", attack_history, parse_options(str(__doc__), 10_000))
