"""`clew doctor --ann`: what it says of few vectors, of a good index and of a bad one."""

from pathlib import Path

import pytest

from clew import doctor
from clew.config import IndexSettings, Settings
from clew.doctor import check_nearest
from clew.engine import KnowledgeBase
from clew.index import nearest, view
from clew.store import sign_bits, vector_files
from clew.store.sign_bits import SignBits
from clew.store.sqlite import store
from clew.testing.hashed_kb import open_hashed


def _index_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use an index of few vectors, too, which proposes all of them."""
    monkeypatch.setattr(nearest, "MIN_INDEXED", 1)
    monkeypatch.setattr(nearest, "CANDIDATES", 1)
    monkeypatch.setattr(nearest, "CANDIDATES_PER_HIT", 0)
    whole = SignBits.nearest_positions
    monkeypatch.setattr(
        SignBits,
        "nearest_positions",
        lambda self, vector, rows, most: whole(self, vector, rows, 99),
    )


async def test_few_vectors_are_compared_exactly(valley: KnowledgeBase) -> None:
    told = {check.name: check for check in await check_nearest(valley.settings)}
    assert told["nearest chunk"].message == "exact: all 6 are compared"
    assert {check.state for check in told.values()} == {"ok"}


async def test_recall_is_measured_and_a_low_one_names_the_way_out(
    valley: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "MIN_INDEXED", 1)
    monkeypatch.setattr(nearest, "CANDIDATES", 0)
    monkeypatch.setattr(nearest, "CANDIDATES_PER_HIT", 0)
    [chunk, *_] = await check_nearest(valley.settings)
    assert (chunk.name, chunk.state) == ("nearest chunk", "broken")
    assert "over 6" in chunk.message and "set `exact = true` under [index]" in chunk.message
    exact = valley.settings.model_copy(update={"index": IndexSettings(exact=True)})
    [chunk, *_] = await check_nearest(exact)
    assert chunk.message == "exact: all 6 are compared"


async def test_an_index_that_proposes_all_has_full_recall(
    valley: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    _index_all(monkeypatch)
    [chunk, *_] = await check_nearest(valley.settings)
    assert (chunk.state, chunk.message[:22]) == ("ok", "recall@10 1.000 over 6")


async def test_it_says_what_to_install_and_what_an_index_lacks(
    valley: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    _index_all(monkeypatch)
    monkeypatch.setattr(doctor, "MIN_IVF_ROWS", 1)
    monkeypatch.setattr(doctor, "has_faiss", lambda: False)
    [chunk, *_] = await check_nearest(valley.settings)
    assert chunk.state == "ok" and "[ann]" in chunk.message
    monkeypatch.setattr(vector_files, "MIN_SIGNED_ROWS", 1)
    monkeypatch.setattr(sign_bits, "BLOCK_ROWS", 1)
    [chunk, *_] = await check_nearest(valley.settings)
    assert chunk.state == "missing" and "the sign bits are missing" in chunk.message


async def test_a_damaged_index_is_to_be_repaired_not_avoided(
    valley: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (vector_files, store):
        monkeypatch.setattr(module, "MIN_SIGNED_ROWS", 1)
    monkeypatch.setattr(sign_bits, "BLOCK_ROWS", 2)
    for name, value in (("MIN_INDEXED", 1), ("CANDIDATES", 1), ("CANDIDATES_PER_HIT", 0)):
        monkeypatch.setattr(nearest, name, value)
    await valley.repair()
    [file] = valley.settings.kb.glob("vectors/*/chunk.signs.npy")
    written = bytearray(file.read_bytes())
    written[-4:] = bytes(byte ^ 255 for byte in written[-4:])  # of the second row of its block
    file.write_bytes(written)
    [chunk, *_] = await check_nearest(valley.settings)
    assert chunk.state == "broken" and chunk.message.startswith("recall@10")
    assert "run `clew verify --repair`" in chunk.message and "exact = true" not in chunk.message
    await valley.repair()
    [chunk, *_] = await check_nearest(valley.settings)
    assert "verify" not in chunk.message


async def test_recall_is_measured_where_names_have_no_vectors_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = Settings(kb=tmp_path / "kb", extractor="offline")
    base = await open_hashed(kb, create=True)
    (tmp_path / "notes").mkdir()
    for name in ("Marrow", "Kell", "Oslen", "Vessen", "Tarn"):
        text = f"Ada Lind built the {name} Bridge beside {name} Mill."
        (tmp_path / "notes" / f"{name}.txt").write_text(text)
    await base.add([tmp_path / "notes"])
    _index_all(monkeypatch)
    told = {check.name: check for check in await check_nearest(kb)}
    assert told["nearest chunk"].message.startswith("recall@10 1.000 over 5")
    assert "facts as queries" in told["nearest chunk"].message
    assert "passages as queries" in told["nearest fact"].message
    assert told["nearest entity"].state == "missing"
    assert "clew reembed --kinds entity" in told["nearest entity"].message


async def test_it_says_where_other_cosines_are_estimated(
    valley: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MIN_ESTIMATED", 6)
    [chunk, *_] = await check_nearest(valley.settings)
    assert "all 6 are compared" in chunk.message and "estimate the others" in chunk.message
    exact = valley.settings.model_copy(update={"index": IndexSettings(exact=True)})
    [chunk, *_] = await check_nearest(exact)
    assert chunk.message == "exact: all 6 are compared"


async def test_lists_that_there_are_none_of_are_told(
    valley: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "has_faiss", lambda: False)
    chosen = valley.settings.model_copy(update={"index": IndexSettings(lists=9)})
    [lists, *_] = await check_nearest(chosen)
    assert (lists.name, lists.state) == ("lists", "missing")
    assert "`lists = 9` has no effect" in lists.message and "[ann]" in lists.message


async def test_without_a_knowledge_base_it_says_so(valley: KnowledgeBase) -> None:
    absent = valley.settings.model_copy(update={"kb": valley.settings.kb / "absent"})
    [check] = await check_nearest(absent)
    assert check.state == "broken" and "no knowledge base" in check.message
