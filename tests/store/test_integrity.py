"""No damage stays unseen: every file of a knowledge base is checked, and what is derived mended."""

import shutil
import sqlite3
from pathlib import Path
from time import time_ns

import numpy as np
import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase, open_store
from clew.errors import ClewError, DamagedArrays, StoreError, VersionError
from clew.index.derive import derive_arrays
from clew.ingest.graphs.import_graph import GraphImport
from clew.llm.embed import EmbedRole, Vectors
from clew.store.checked_files import FileNote
from clew.store.protocol import Change
from clew.store.sqlite.store import SqliteStore
from clew.store.vector_files import VectorFile
from clew.store.vector_records import DamagedVectors
from clew.testing.contracts import MARIE, PIERRE
from clew.testing.fakes import HashEmbed
from clew.text.unicode import digest
from conftest import VALLEY, document, one_in_three, stream

QUESTION = "Where was the designer of Marrow Bridge born?"


async def open_kb(folder: Path, embed: HashEmbed | None = None) -> KnowledgeBase:
    settings = Settings(kb=folder, wait=0.2, extractor="offline")
    return KnowledgeBase(await open_store(settings, create=True), settings, embed or HashEmbed())


async def ranking(base: KnowledgeBase, recipe: str = "naive") -> list[tuple[str, float]]:
    found = await base.search(QUESTION, recipe=recipe)
    return [(chunk.doc, round(chunk.score, 5)) for chunk in found.evidence.chunks]


class _Killed(BaseException):
    """Ends a run as a kill would: nothing that follows is executed."""


class _DyingEmbed(HashEmbed):
    """Embeds one block in an order of its own, then the process is killed."""

    async def __call__(self, texts: list[str], /, *, role: EmbedRole = "passage") -> Vectors:
        if self.texts and role == "passage":
            raise _Killed
        return await super().__call__(texts, role=role)


@pytest.mark.parametrize("work", ["reembed", "repair"])
async def test_a_killed_repair_of_vectors_leaves_no_wrong_ones(
    valley: KnowledgeBase, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, before = valley.settings.kb, await ranking(valley)
    [path] = folder.glob("vectors/*/chunk.npy")
    path.write_bytes(path.read_bytes()[:200])
    monkeypatch.setattr("clew.ingest.embedding.BLOCK", 2)
    with pytest.raises((_Killed, BaseExceptionGroup)):
        await getattr(await open_kb(folder, _DyingEmbed()), work)()
    hurt = await open_kb(folder)
    assert await hurt.verify() != []
    with pytest.raises(StoreError):
        await ranking(hurt)
    await (await open_kb(folder)).repair()
    mended = await open_kb(folder)
    assert await mended.verify() == []
    assert await ranking(mended) == before


async def test_vectors_that_are_sound_are_not_computed_again(valley: KnowledgeBase) -> None:
    [path] = valley.settings.kb.glob("vectors/*/chunk.npy")
    raw = bytearray(path.read_bytes())
    raw[-10] ^= 1  # of the last row
    path.write_bytes(raw)
    counted = HashEmbed()
    base = await open_kb(valley.settings.kb, counted)
    with pytest.raises(DamagedVectors, match="1 vectors have another checksum"):
        await ranking(base)
    await base.repair()
    assert counted.texts == 1
    assert await base.verify() == []


@pytest.mark.parametrize("at", [0, 3])
def test_rows_of_a_damaged_file_stay_where_they_are(tmp_path: Path, at: int) -> None:
    names = [digest(str(n)) for n in range(6)]
    table = VectorFile(tmp_path / "v.npy")
    table.append(names, np.arange(24, dtype=np.float32).reshape(6, 4))
    raw = bytearray((tmp_path / "v.npy").read_bytes())
    raw[128 + at * 8] ^= 8  # four 16-bit numbers a row
    (tmp_path / "v.npy").write_bytes(raw)
    again = VectorFile(tmp_path / "v.npy")
    with pytest.raises(DamagedVectors):
        again.matrix()
    assert again.repair()
    rows = again.find_rows(names)
    assert rows[at] == -1
    assert np.delete(rows, at).tolist() == [n for n in range(6) if n != at]
    assert again.find_lost_rows(np.arange(6)).tolist() == [at]
    again.append([names[at]], np.ones((1, 4), np.float32))
    assert again.find_rows([names[at]]).tolist() == [6]


def test_lost_rows_are_looked_for_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, rows = [digest(str(n)) for n in range(50_000)], np.arange(50_000)
    VectorFile(tmp_path / "v.npy").append(names, np.ones((50_000, 2), np.float32))
    # As if the file had been there for a while: nothing is noted of one that just changed.
    monkeypatch.setattr("clew.store.checked_files.time_ns", lambda: time_ns() + 10**10)
    assert not len(VectorFile(tmp_path / "v.npy").find_lost_rows(rows))
    assert VectorFile(tmp_path / "v.npy").find_lost_rows(rows + 1).tolist() == [50_000]
    path = tmp_path / "v.hash.npy"
    assert FileNote(path, "full").holds()
    raw = bytearray(path.read_bytes())
    raw[-24:] = bytes(24)  # as of a vector that was dropped
    path.write_bytes(raw)
    assert not FileNote(path, "full").holds()
    assert VectorFile(tmp_path / "v.npy").find_lost_rows(rows).tolist() == [49_999]
    monkeypatch.setattr(FileNote, "holds", lambda _: True)
    assert not len(VectorFile(tmp_path / "v.npy").find_lost_rows(rows))


def test_vectors_are_summed_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, path = [digest(str(n)) for n in range(50_000)], tmp_path / "v.npy"
    VectorFile(path).append(names, np.ones((50_000, 2), np.float32))
    assert VectorFile(path).matrix().shape == (50_000, 2)
    note = FileNote(path, "right", tmp_path / "v.hash.npy")
    assert not note.holds()  # nothing is noted of a file that just changed
    monkeypatch.setattr("clew.store.checked_files.time_ns", lambda: time_ns() + 10**10)
    assert VectorFile(path).matrix().shape == (50_000, 2)
    assert note.holds()
    with monkeypatch.context() as unsummed:
        unsummed.setattr("clew.store.vector_files.is_right", None)
        assert VectorFile(path).matrix().shape == (50_000, 2)
    for file, at in ((path, 128), (tmp_path / "v.hash.npy", 128 + 16)):
        before = file.read_bytes()
        file.write_bytes(before[:at] + bytes([before[at] ^ 8]) + before[at + 1 :])
        assert not note.holds()
        with pytest.raises(DamagedVectors):
            VectorFile(path).matrix()
        assert not note.holds()
        file.write_bytes(before)
    assert VectorFile(path).count_checked_rows() == 50_000
    assert not note.holds()  # whoever verifies goes by no note


@pytest.mark.parametrize(
    "name", one_in_three(["chunk_keys", "text_counts", "fact_entity_columns", "raw_chunks"])
)
async def test_a_flipped_bit_in_an_array_is_told_and_mended(
    valley: KnowledgeBase, name: str
) -> None:
    folder = valley.settings.kb
    before = await ranking(valley, "clew")
    path = max(folder.glob("arrays/*"), key=lambda one: int(one.name)) / f"{name}.npy"
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    path.write_bytes(raw)
    hurt = await open_kb(folder)
    [problem] = await hurt.verify()
    assert f"{name}.npy is damaged" in problem
    await hurt.repair()
    mended = await open_kb(folder)
    assert await mended.verify() == []
    assert await ranking(mended, "clew") == before


async def test_an_array_of_another_generation_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True, durable=False)
    await store.write(Change(add=[MARIE]), derive_arrays)
    await store.write(Change(add=[PIERRE]), derive_arrays)
    shutil.rmtree(tmp_path / "arrays/2")
    shutil.copytree(tmp_path / "arrays/1", tmp_path / "arrays/2")
    reader = SqliteStore(tmp_path)
    with pytest.raises(DamagedArrays, match="not that of this generation"):
        async with reader.snapshot():
            pass


_DAMAGED_CELLS = {
    "documents": "UPDATE documents SET text = replace(text, 'stone', 'stane')",
    "chunks": "UPDATE chunks SET text = text || '.'",
    "names": "UPDATE sources SET name = 'x' || name",
    "mentions": "UPDATE mentions SET surface = 'Nobody' WHERE surface = 'Hallowmere'",
    "statements": "UPDATE sayings SET weight = 7",
    "entities": "UPDATE entities SET name = 'Nobody' WHERE name = 'Hallowmere'",
    "facts": "UPDATE facts SET text = 'It is false.'",
    "participants": "UPDATE participants SET role = 'tail' WHERE role = 'member'",
    "forms": "DELETE FROM forms",
    "stored values": "UPDATE memory SET value = 'x' WHERE key = 'dim'",
}


@pytest.mark.parametrize("statement", _DAMAGED_CELLS.values(), ids=_DAMAGED_CELLS.keys())
async def test_a_changed_cell_of_any_table_is_told(valley: KnowledgeBase, statement: str) -> None:
    assert await valley.verify() == []
    with sqlite3.connect(valley.settings.kb / "kb.sqlite") as db:
        assert db.execute(statement).rowcount > 0
    db.close()
    store = await open_store(valley.settings, create=False, check=False)  # as `clew verify` does
    assert await KnowledgeBase(store, valley.settings, HashEmbed()).verify() != []


async def test_a_damaged_text_is_not_shown(valley: KnowledgeBase) -> None:
    with sqlite3.connect(valley.settings.kb / "kb.sqlite") as db:
        db.execute(_DAMAGED_CELLS["chunks"])
    db.close()
    with pytest.raises(StoreError, match="a row of kb.sqlite is damaged"):
        await ranking(await open_kb(valley.settings.kb))


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"")])
async def test_an_emptied_database_beside_arrays_is_no_new_knowledge_base(
    valley: KnowledgeBase, damage
) -> None:
    await valley.close()
    damage(valley.settings.kb / "kb.sqlite")
    with pytest.raises(StoreError, match="missing or empty, but arrays or vectors"):
        await open_kb(valley.settings.kb)


async def test_a_lost_write_is_told_until_it_is_accepted(tmp_path: Path) -> None:
    base = await open_kb(tmp_path / "kb")
    await base.take(stream(VALLEY[:3]))
    await base.close()
    shutil.copy(tmp_path / "kb/kb.sqlite", tmp_path / "before")
    base = await open_kb(tmp_path / "kb")
    await base.take(stream(VALLEY[3:]))
    await base.close()
    shutil.copy(tmp_path / "before", tmp_path / "kb/kb.sqlite")
    with pytest.raises(StoreError, match="holds generation 1, but generation 2 was written"):
        await open_kb(tmp_path / "kb")
    settings = Settings(kb=tmp_path / "kb", extractor="offline")
    store = await open_store(settings, create=False, check=False)
    accepted = KnowledgeBase(store, settings, HashEmbed())
    assert "generation 2 was written" in (await accepted.verify())[0]
    await accepted.repair()
    assert await (await open_kb(tmp_path / "kb")).verify() == []


async def test_a_lost_tree_is_told_and_grown_again_with_the_next_write(
    valley: KnowledgeBase,
) -> None:
    await valley.builder.make_tree_manager().build(["dual"])
    folder = valley.settings.kb
    newest = max(folder.glob("arrays/*"), key=lambda one: int(one.name))
    (newest / "tree_level.npy").unlink()
    hurt = await open_kb(folder)
    assert await hurt.verify() == ["the dual tree is missing"]
    assert (await hurt.status())["trees"] == {"dual": "missing"}
    await hurt.take(stream([document("new", "Oda Falk lives in Vessen.")]))
    assert (await hurt.status())["trees"] == {"dual": "fresh"}


async def test_trees_survive_the_loss_of_another_array(valley: KnowledgeBase) -> None:
    await valley.builder.make_tree_manager().build(["dual"])
    newest = max(valley.settings.kb.glob("arrays/*"), key=lambda one: int(one.name))
    (newest / "text_terms.npy").unlink()
    assert (await (await open_kb(valley.settings.kb)).status())["trees"] == {"dual": "fresh"}


async def test_a_tree_says_whether_it_knows_of_the_last_change(valley: KnowledgeBase) -> None:
    trees = valley.builder.make_tree_manager()
    await trees.build(["dual"])

    async def state() -> str:
        return str((await valley.status())["trees"]["dual"])

    assert await state() == "fresh"
    # As if the process were killed between the removal and the update of the tree.
    await valley.store.write(Change(remove=["moss"]), derive_arrays)
    assert await state() == "stale"
    await trees.update()
    assert await state() == "updated"
    await trees.build(["dual"])
    assert await state() == "fresh"


async def test_an_import_killed_before_its_trees_is_completed_by_the_same_command(
    valley: KnowledgeBase, tmp_path: Path
) -> None:
    await valley.builder.make_tree_manager().build(["dual"])
    graph = tmp_path / "graph.jsonl"
    graph.write_text('{"head": "Ilse Brandvik", "relation": "taught", "tail": "Oda Falk"}')
    # All of an import but what follows its write.
    await GraphImport(valley.store, tmp_path / "import", valley.embed)(graph, None)
    assert (await valley.status())["trees"] == {"dual": "stale"}
    assert (await valley.import_graph(graph)).unchanged
    assert (await valley.status())["trees"] == {"dual": "updated"}


async def test_a_backup_is_restored_over_another_state(valley: KnowledgeBase) -> None:
    folder = valley.settings.kb
    before = await ranking(valley)
    await valley.backup(folder.parent / "backup")
    await valley.remove(["bridge", "ilse"])
    await valley.close()
    settings = valley.settings
    await _restore(settings, folder.parent / "backup")
    restored = await open_kb(folder)
    assert await restored.verify() == []
    assert await ranking(restored) == before


async def _restore(settings: Settings, file: Path) -> None:
    """As `KnowledgeBase.restore`, with the fake embedder."""
    from clew.store.sqlite.restore import restore_database

    restore_database(settings.kb, file, 1.0)
    base = KnowledgeBase(
        await open_store(settings, create=False, check=False), settings, HashEmbed()
    )
    await base.repair()
    await base.close()


async def test_a_restore_killed_halfway_is_not_used_by_mistake(valley: KnowledgeBase) -> None:
    from clew.store.sqlite.restore import restore_database

    folder = valley.settings.kb
    await valley.backup(folder.parent / "backup")
    await valley.remove(["bridge"])
    await valley.close()
    restore_database(folder, folder.parent / "backup", 1.0)  # and killed before the vectors
    with pytest.raises(StoreError, match="was not finished"):
        await open_kb(folder)
    await _restore(valley.settings, folder.parent / "backup")
    assert len(await (await open_kb(folder)).store.sources()) == len(VALLEY)


async def test_what_is_no_backup_changes_nothing(valley: KnowledgeBase, tmp_path: Path) -> None:
    from clew.store.sqlite.restore import restore_database

    (tmp_path / "note.txt").write_text("not a database, but long enough to look like one" * 50)
    for file in (tmp_path / "note.txt", tmp_path / "none"):
        with pytest.raises(StoreError, match="not a backup|no such file"):
            restore_database(valley.settings.kb, file, 1.0)
    assert await valley.verify() == []


async def test_a_newer_format_is_refused_in_one_sentence(valley: KnowledgeBase) -> None:
    await valley.close()
    with sqlite3.connect(valley.settings.kb / "kb.sqlite") as db:
        db.execute("PRAGMA user_version = 77")
    db.close()
    with pytest.raises(VersionError, match="has format 77.*upgrade clew"):
        await open_kb(valley.settings.kb)


async def test_any_flipped_bit_is_harmless_or_told(valley: KnowledgeBase) -> None:
    before = await ranking(valley, "clew")
    await valley.close()
    folder = valley.settings.kb
    rng = np.random.default_rng(5)
    raw = (folder / "kb.sqlite").read_bytes()
    for place in rng.integers(0, len(raw), 40):
        hurt = bytearray(raw)
        hurt[place] ^= 1 << int(rng.integers(8))
        copy = folder.parent / f"copy-{place}"
        shutil.copytree(folder, copy)
        (copy / "kb.sqlite").write_bytes(hurt)
        try:
            base = await open_kb(copy)
            found, problems = await ranking(base, "clew"), await base.verify()
        except ClewError:
            continue
        assert found == before or problems
        await base.close()


@pytest.mark.parametrize(
    ("statement", "is_shown"),
    [
        ("UPDATE sayings SET start = 0, end = 5", True),
        ("UPDATE sayings SET text = 'Mallory founded everything.'", False),
        ("DELETE FROM sayings WHERE fact IN (SELECT fact FROM sayings LIMIT 30)", True),
        ("UPDATE mentions SET spans = '[[0,3]]', description = 'damaged'", False),
    ],
)
async def test_a_damaged_statement_is_not_cited(
    valley: KnowledgeBase, statement: str, is_shown: bool
) -> None:
    before = await valley.ask(QUESTION)
    with sqlite3.connect(valley.settings.kb / "kb.sqlite") as db:
        db.execute(statement)
    damaged = await open_kb(valley.settings.kb)
    with pytest.raises(StoreError, match="damaged"):
        await damaged.show("Marrow Bridge")
    if is_shown:
        with pytest.raises(StoreError, match="damaged"):
            await ask(damaged)
    else:  # an answer shows nothing of what is damaged
        after = await damaged.ask(QUESTION)
        assert (after.answer, after.evidence) == (before.answer, before.evidence)


async def ask(base: KnowledgeBase) -> None:
    """Ask by the default recipe, to the end of the answer."""
    await base.ask(QUESTION)


async def test_a_lost_mention_of_a_merged_name_is_told(valley: KnowledgeBase) -> None:
    await valley.identity.merge("Marrow Bridge", "Vessen")
    async with valley.store.snapshot() as now:
        keys = now.arrays["entity_keys"].tolist()
        assert await now.supports("entity", keys)
        assert await now.supports("fact", now.arrays["fact_keys"].tolist())
    with sqlite3.connect(valley.settings.kb / "kb.sqlite") as db:
        db.execute("DELETE FROM mentions WHERE chunk = (SELECT min(chunk) FROM mentions)")
    async with (await open_kb(valley.settings.kb)).store.snapshot() as now:
        with pytest.raises(StoreError, match="damaged"):
            await now.supports("entity", keys)
