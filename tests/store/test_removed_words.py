"""Nothing that a removed document said is left after `clew verify --repair`."""

import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.store import bm25
from clew.testing.hashed_kb import open_hashed
from clew.text.unicode import digest, hash64, normalize_name
from clew.types import Document

SECRET = "Zorbulax Quizzleton"
TEXT = f"{SECRET} has the illness Krypthemia. {SECRET} was treated in Plonkerville."
COUNT = 300


async def _stream(texts: list[str]) -> AsyncIterator[Document]:
    for text in texts:
        yield Document(digest(text), text, names=(f"{digest(text)}.txt",))


def _find(folder: Path) -> set[str]:
    """The files that hold a word or a name of the removed document, as text or by its hash."""
    said = ("krypthemia", "zorbulax", "plonkerville", normalize_name(SECRET))
    wanted = [struct.pack("<Q", hash64(one)) for one in said]
    wanted += [one.encode() for one in ("Krypthemia", "Zorbulax", digest(TEXT))]
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = {path.name for path, raw in files.items() if any(one in raw for one in wanted)}
    # The record of when a document arrived, by its name, stays.
    return found - {"kb.sqlite", "kb.sqlite-wal"}


@pytest.mark.parametrize("embeds", [True, False])
async def test_a_repair_leaves_nothing_of_what_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embeds: bool
) -> None:
    monkeypatch.setattr(bm25, "MIN_SEGMENTED", 1)
    settings = Settings(kb=tmp_path / "kb", extractor="offline")
    base = await open_hashed(settings, create=True)
    if not embeds:
        base = KnowledgeBase(base.store, settings, None)
    texts = [
        f"Weir {n} was built by Ada Lind{n} beside the Mill of Oslen{n}." for n in range(COUNT)
    ]
    await base.take(_stream([*texts, TEXT]))
    assert _find(settings.kb)
    await base.remove([f"{digest(TEXT)}.txt"])
    for number in range(3):
        await base.take(_stream([f"Lock {number} was built by Bo Tarn{number} at Aske{number}."]))
    # Arrays of which few rows changed are not written again by a small write.
    assert {"text_terms.npy", "name_hashes.npy"} <= _find(settings.kb)
    await base.repair()
    assert _find(settings.kb) == set()
    assert await base.verify() == []
    found = await base.search("Who built Weir 7?", recipe="bm25")
    assert found.evidence.chunks[0].text == texts[7]


async def test_postings_of_removed_passages_go_when_they_are_two_percent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bm25, "MIN_SEGMENTED", 1)
    base = await open_hashed(Settings(kb=tmp_path / "kb", extractor="offline"), create=True)
    texts = [f"Weir {n} was built by Ada Lind{n}." for n in range(100)]
    await base.take(_stream([*texts, TEXT]))
    for gone, held in ((TEXT, 101), (texts[0], 101), (texts[1], 98)):
        await base.remove([f"{digest(gone)}.txt"])
        async with base.store.snapshot() as now:
            index = bm25.index_from_arrays(now.arrays)
        assert index is not None and sum(len(one.keys) for one in index.segments) == held
