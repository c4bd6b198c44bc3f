"""A long document is extracted and written in blocks; the result is that of a plain write."""

import sqlite3
from pathlib import Path

import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase, open_store
from clew.extract import rules
from clew.store.packed import PackedExtractions
from clew.testing.fakes import HashEmbed
from clew.text.names import lowercase_keys, tokenize
from clew.types import Extraction, RawEntity, RawFact

_SENTENCE = "Anton Reeve {} met Clara Lindqvist in Vessen in {}. Deepwell {} stood there."
_QUERIES = (
    "SELECT id, title, text, metadata, pages, stamp, checksum FROM documents",
    "SELECT * FROM chunks",
    "SELECT id, name, name_hash, type, description, aliases, support, checksum FROM entities",
    "SELECT id, text, relation, keywords, description, weight, support, checksum FROM facts",
    "SELECT e.id, m.chunk, m.surface, m.type, m.spans, m.times, m.about FROM mentions m "
    "JOIN entities e ON e.key = m.entity",
    "SELECT f.id, s.chunk, s.text, s.start FROM sayings s JOIN facts f ON f.key = s.fact",
    "SELECT f.id, p.ordinal, e.id, p.role FROM participants p JOIN facts f ON f.key = p.fact "
    "JOIN entities e ON e.key = p.entity",
)


async def _build(folder: Path) -> tuple[list[list[object]], list[object]]:
    settings = Settings(kb=folder / "kb", extractor="offline", chunk={"size": 20})
    base = KnowledgeBase(await open_store(settings, create=True), settings, HashEmbed())
    lines = [_SENTENCE.format(n % 40, 1800 + n % 90, n % 7) for n in range(150)]
    (folder / "long.txt").write_text("\n".join(lines))
    (folder / "short.txt").write_text("Oda Falk was born in Vessen.")
    await base.add([folder / "long.txt", folder / "short.txt"])
    assert await base.verify() == []
    found = await base.search("Who met Clara Lindqvist?", recipe="hipporag2", k=8)
    await base.close()
    db = sqlite3.connect(folder / "kb/kb.sqlite")
    tables: list[list[object]] = [sorted(db.execute(one).fetchall(), key=repr) for one in _QUERIES]
    db.close()
    return tables, [(c.text, c.score) for c in found.evidence.chunks]


async def test_a_packed_document_is_written_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "packed").mkdir()
    monkeypatch.chdir(tmp_path)
    plain = await _build(tmp_path / "plain")
    assert len(plain[0][1]) > 64  # several blocks of chunks
    monkeypatch.setattr(rules, "PACK_FROM", 10)
    assert await _build(tmp_path / "packed") == plain


def test_packed_extractions_are_those_that_were_packed() -> None:
    made = [
        Extraction(
            (RawEntity(f"Name {n}", spans=((n, n + 4),), aliases=("N",), attributes={"a": "b"}),),
            (RawFact(f"Fact {n}.", (("Name", "member"),), span=(0, n)),),
            failed="late" if n % 9 == 0 else "",
        )
        for n in range(70)
    ]
    packed = PackedExtractions(made)
    assert (list(packed), len(packed)) == (made, 70)
    assert (packed[33], packed[-1], packed[5:40:7]) == (made[33], made[-1], made[5:40:7])
    with pytest.raises(IndexError):
        packed[70]


@pytest.mark.parametrize("text", ["The Mill saw a mill; été ÉTÉ été 東京 x1 X1.", ""])
def test_lowercase_keys_are_those_of_the_tokens(text: str) -> None:
    found = tokenize(text)
    rows = zip(found.keys, found.upper, found.unspaced, strict=True)
    assert lowercase_keys(text) == {key for key, upper, solo in rows if not upper and not solo}
