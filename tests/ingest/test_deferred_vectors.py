"""Vectors that the default recipe does not read are made when a recipe first reads them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.config import EmbedSettings, Settings
from clew.engine import KnowledgeBase
from clew.errors import StoreError, VectorsDeferred
from clew.ingest.embedding import load_deferred
from clew.store.protocol import Array
from clew.store.vector_files import VectorFile
from clew.testing.fakes import HashEmbed, QuotingEmbed
from clew.text.unicode import digest
from clew.types import Kind

NOTES = {
    "bridge.md": "# Marrow Bridge\n\nThe Marrow Bridge was designed by Ilse Brandvik in 1905.\n",
    "designer.md": "# Ilse Brandvik\n\nIlse Brandvik was born in Oslo and studied in Bergen.\n",
}
QUESTION = "Who designed the Marrow Bridge?"


async def open_kb(folder: Path, *kinds: str) -> KnowledgeBase:
    chosen = {"kinds": kinds} if kinds else {}
    settings = Settings(kb=folder / "kb", embed=EmbedSettings(**chosen))
    kb = await KnowledgeBase.open(settings, create=True, embed=False)
    return KnowledgeBase(kb.store, settings, HashEmbed())


async def add_notes(kb: KnowledgeBase, folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text(NOTES[name], encoding="utf-8")
    await kb.add([folder / name for name in names])


def count_vectors(kb: KnowledgeBase, kind: Kind) -> int:
    assert kb.embed is not None
    return len(kb.store.vectors(kb.embed.name, kind).matrix())


async def test_add_embeds_what_the_default_recipe_reads(tmp_path: Path) -> None:
    kb = await open_kb(tmp_path)
    await add_notes(kb, tmp_path, *NOTES)
    await kb.ask(QUESTION)
    assert count_vectors(kb, "chunk") == 2 and count_vectors(kb, "fact") > 0
    assert count_vectors(kb, "entity") == 0
    assert await load_deferred(kb.store) == ["entity"]
    assert await kb.verify() == []
    await kb.close()


async def test_first_recipe_that_reads_names_makes_their_vectors(tmp_path: Path) -> None:
    kb = await open_kb(tmp_path)
    await add_notes(kb, tmp_path, "bridge.md")
    told: list[tuple[str, int, int]] = []
    kb.progress = lambda *args: told.append(args)
    found = await kb.search(QUESTION, recipe="hipporag2")
    made = count_vectors(kb, "entity")
    assert found.evidence.chunks and made > 0 and told
    assert await load_deferred(kb.store) == [] and await kb.verify() == []
    await add_notes(kb, tmp_path, "designer.md")  # and from now on with every document
    assert count_vectors(kb, "entity") > made
    assert await kb.verify() == []
    await kb.close()


async def test_vectors_of_names_made_later_leave_those_of_facts_as_they_are(
    tmp_path: Path,
) -> None:
    kb = await open_kb(tmp_path)
    quoting = KnowledgeBase(kb.store, kb.settings, QuotingEmbed())
    await add_notes(quoting, tmp_path, *NOTES)
    before = await read_fact_rows(quoting)
    assert min(before) >= 0
    # Another embedder of the same vectors that embeds no sentence within its passage.
    plain = KnowledgeBase(kb.store, kb.settings, HashEmbed(QuotingEmbed().name))
    await plain.search(QUESTION, recipe="hipporag2")
    assert await load_deferred(kb.store) == [] and await read_fact_rows(plain) == before
    await kb.close()


async def test_vectors_of_names_made_later_are_all_that_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, asked = VectorFile.find_rows, set()

    def note(table: VectorFile, hashes: Sequence[str]) -> Array:
        asked.update(hashes)
        return find(table, hashes)

    monkeypatch.setattr(VectorFile, "find_rows", note)
    fact = digest("The Marrow Bridge was designed by Ilse Brandvik in 1905.")
    kb = await open_kb(tmp_path)
    await add_notes(kb, tmp_path, *NOTES)
    assert fact in asked
    asked.clear()
    found = await kb.search(QUESTION, recipe="hipporag2")
    assert found.evidence.chunks
    assert fact not in asked and digest("Marrow Bridge") in asked
    assert await kb.verify() == []
    async with kb.store.snapshot() as now:
        rows = {name: now.arrays[name].tolist() for name in now.arrays if name.endswith("_rows")}
    await kb.reembed()
    async with kb.store.snapshot() as now:
        assert rows == {name: now.arrays[name].tolist() for name in rows}
    await kb.close()


async def read_fact_rows(kb: KnowledgeBase) -> list[int]:
    async with kb.store.snapshot() as now:
        rows: list[int] = now.arrays["fact_rows"].tolist()
        return rows


async def test_kinds_in_the_settings_are_embedded_at_once_also_of_earlier_documents(
    tmp_path: Path,
) -> None:
    kb = await open_kb(tmp_path)
    await add_notes(kb, tmp_path, "bridge.md")
    await kb.close()
    kb = await open_kb(tmp_path, "chunk", "entity", "fact")
    await add_notes(kb, tmp_path, "designer.md")
    names = await kb.store.counts()
    assert await load_deferred(kb.store) == [] and count_vectors(kb, "entity") >= 4
    assert names.documents == 2 and await kb.verify() == []
    await kb.close()


async def test_reading_deferred_vectors_directly_says_what_makes_them(tmp_path: Path) -> None:
    kb = await open_kb(tmp_path)
    await add_notes(kb, tmp_path, "bridge.md")
    async with kb.store.snapshot() as snapshot:
        ctx = await kb.context(snapshot, QUESTION)
        with pytest.raises(VectorsDeferred, match="clew reembed --kinds entity"):
            ctx.view.cosines("entity", await ctx.vector())
    await kb.close()


async def test_passages_below_headings_keep_their_vectors(tmp_path: Path) -> None:
    parts = [f"## Part {n}\n\n{'The pump of this part is old. ' * 60}" for n in range(5)]
    (tmp_path / "manual.md").write_text("# Manual\n\n" + "\n\n".join(parts), encoding="utf-8")
    kb = await open_kb(tmp_path)
    await kb.add([tmp_path / "manual.md"])
    before = await kb.search("old pump", recipe="naive")
    await kb.reembed()
    after = await kb.search("old pump", recipe="naive")
    assert await kb.verify() == []
    assert [c.id for c in after.evidence.chunks] == [c.id for c in before.evidence.chunks]
    await kb.close()


async def test_a_folder_that_cannot_be_written_says_what_is_missing(tmp_path: Path) -> None:
    kb = await open_kb(tmp_path)
    await add_notes(kb, tmp_path, "bridge.md")
    await kb.close()
    (tmp_path / "kb" / "writer.lock").unlink()
    (tmp_path / "kb" / "writer.lock").mkdir()  # cannot be opened as a file, by nobody
    kb = await open_kb(tmp_path)
    assert (await kb.search(QUESTION)).evidence.chunks  # the default recipe needs none
    with pytest.raises(StoreError, match="first read.*reembed --kinds entity"):
        await kb.search(QUESTION, recipe="hipporag2")
    await kb.close()
