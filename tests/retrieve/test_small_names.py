"""Titles and defined terms are names in other documents too, however these write them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from clew.config import Settings
from clew.context import Context
from clew.engine import KnowledgeBase
from clew.index.view import View
from clew.retrieve import small_names
from clew.retrieve.pack import fetch_fact_texts
from clew.store.protocol import Arrays
from clew.store.resolved_entities import ResolvedSnapshot
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.text.small_names import NOT_SMALL, SMALL_WORD, small_code
from clew.types import Fact
from conftest import document, stream

PAGES = {
    "order-77": "# Order 77\n\nOrder 77 went wrong. The cause was a crack in the batch-oven.",
    "batch-oven": "# batch-oven\n\nIt was built by Sorrel Works.",
    "sorrel": "# Sorrel Works\n\nSorrel Works is led by Mira Voss.",
    "voss": "# Mira Voss\n\nMira Voss comes from Tanner Bay.",
    "tanner": "# Tanner Bay\n\nTanner Bay is a town with a pier. Mira Voss built it.",
    "home": "# Home\n\nEverything about Tanner Bay is listed here.",
    "garden": "# Garden\n\nMany people stay at home and tend roses for Mira Voss.",
    "lamp": "# Lamp\n\nThe lamp of Tanner Bay is made of brass and glass.",
    "boat": "# Boat\n\nThe boat carries salt to Sorrel Works in winter.",
}


async def _open(folder: Path, pages: Mapping[str, str] = PAGES) -> KnowledgeBase:
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    kb = KnowledgeBase(
        SqliteStore(folder / "kb", create=True, durable=False),
        Settings(kb=folder / "kb"),
        HashEmbed(),
    )
    await kb.add([folder / f"{name}.md" for name in pages])
    return kb


async def test_a_walk_follows_a_title_that_another_page_writes_small(tmp_path: Path) -> None:
    kb = await _open(tmp_path)
    found = await kb.search("Who led the maker of what broke in Order 77?", k=4, recipe="clew")
    places = [Path(chunk.doc).stem for chunk in found.evidence.chunks]
    assert {"batch-oven", "sorrel"} <= set(places)
    steps = {entity for path in found.evidence.paths for entity in path.entities}
    assert "batch-oven" in steps and "Home" not in steps


SMALL = {
    "tarnd": "tarnd is a daemon for queues. It is written in the language brindle.",
    "brindle": "brindle is a language. It was made by osk varder.",
    "osk varder": "osk varder is an engineer. He was born in pellow.",
    "pellow": "pellow is a town with a pier.",
    "hollow": "A daemon was made for a town and an engineer. Its language has no name.",
    "lamp": "A town with a pier has an engineer. The daemon of the town is made of brass.",
}


async def test_where_all_names_are_written_small_the_walk_goes_along_them(
    base: KnowledgeBase,
) -> None:
    await base.take(stream([document(name, SMALL[name], title=name) for name in SMALL]))
    question = "In which town was the maker of the language of tarnd born?"
    found = await base.search(question, k=5, recipe="clew")
    assert set(list(SMALL)[:4]) <= {chunk.doc for chunk in found.evidence.chunks}
    signals = next(one.output for one in found.trace if one.step == "signals")
    assert signals.startswith("walk 1.00")


def test_a_word_is_a_name_if_its_own_title_writes_it_small() -> None:
    assert small_code("brindle") == SMALL_WORD
    assert small_code("Brindle") == NOT_SMALL


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("batch-oven", True),
        ("batch-oven (kitchen)", True),
        ("Brown reed mouse", True),
        ("Home", False),
        ("Marrow Bridge", False),
        ("Isle of Wight", False),
        ("--dry-run", False),
        ("of the", False),
    ],
)
def test_only_names_of_several_words_without_capitals_are_looked_for(
    name: str, expected: bool
) -> None:
    assert small_code(name) == (small_names.SMALL if expected else NOT_SMALL)


async def test_names_that_are_not_written_small_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, entity_names = list[str](), ResolvedSnapshot.entity_names

    async def record(self: ResolvedSnapshot, keys: Sequence[int]) -> dict[int, str]:
        found = await entity_names(self, keys)
        read.extend(found.values())
        return found

    kb = await _open(tmp_path)
    monkeypatch.setattr(ResolvedSnapshot, "entity_names", record)
    await kb.search("Who led the maker of what broke in Order 77?", recipe="clew")
    assert read == ["batch-oven"]
    # Names that were stored by an earlier version are read.
    read.clear()
    monkeypatch.setattr(View, "small_codes", property(_not_known))
    (tmp_path / "more.md").write_text("# Moor\n\nMoor is a town.", encoding="utf-8")
    await kb.add([tmp_path / "more.md"])
    await kb.search("Who led the maker of what broke in Order 77?", recipe="clew")
    assert {"batch-oven", "Sorrel Works", "Moor"} <= set(read)


def _not_known(view: View) -> NDArray[np.int8]:
    return np.zeros(view.count("entity"), np.int8)


async def test_only_passages_with_a_name_in_a_row_have_their_facts_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "apart.md").write_text(
        "# Apart\n\nOrder 77 was an oven job. Each batch of bricks went to Tanner Bay.",
        encoding="utf-8",
    )
    kb = await _open(tmp_path)
    await kb.add([tmp_path / "apart.md"])
    asked: list[str] = []

    async def note(ctx: Context, positions: Sequence[int]) -> dict[int, Fact]:
        found = await fetch_fact_texts(ctx, positions)
        asked.extend(fact.text for fact in found.values())
        return found

    monkeypatch.setattr(small_names, "fetch_fact_texts", note)
    await kb.search("Who led the maker of what broke in Order 77?", k=4, recipe="clew")
    assert any("batch-oven" in text for text in asked)
    assert not any("bricks" in text for text in asked)


async def test_names_that_are_kept_are_found_by_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_names, "MIN_KEPT", 1)
    question = "Who led the maker of what broke in Order 77?"
    kb = await _open(tmp_path)
    first = await kb.search(question, k=4, recipe="clew")
    await kb.close()

    async def choose(_: Context) -> Arrays:
        raise AssertionError("chosen again")

    monkeypatch.setattr(small_names, "choose_names", choose)
    store = SqliteStore(tmp_path / "kb", durable=False)
    again = KnowledgeBase(store, Settings(kb=tmp_path / "kb"), HashEmbed())
    assert (await again.search(question, k=4, recipe="clew")).evidence == first.evidence


async def test_a_name_in_the_plural_is_followed_too(tmp_path: Path) -> None:
    several = "# Order 77\n\nOrder 77 went wrong. The cause was a crack in the batch-ovens."
    kb = await _open(tmp_path, {**PAGES, "order-77": several})
    found = await kb.search("Who led the maker of what broke in Order 77?", k=4, recipe="clew")
    steps = {entity for path in found.evidence.paths for entity in path.entities}
    assert "batch-oven" in steps
