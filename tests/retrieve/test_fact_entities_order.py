"""The names of a fact come in the same order whatever was added before."""

from pathlib import Path

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.testing.hashed_kb import open_hashed

FRIDA = "Frida Ahlquist was born in Klintford."
ADDED = "Note 1: Ada Lindberg stayed with Otto Walmark."


async def _find_names(base: KnowledgeBase) -> dict[str, tuple[str, ...]]:
    found = await base.search("Where did Ada Lindberg stay?")
    return {fact.text: fact.entities for fact in found.evidence.facts}


async def test_an_edit_leaves_the_order_of_a_fresh_build(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text(FRIDA)
    (notes / "b.md").write_text("Otto Walmark taught Ada Lindberg.")
    bases = [
        await open_hashed(Settings(kb=tmp_path / name, extractor="offline"), create=True)
        for name in ("edited", "fresh")
    ]
    await bases[0].add([notes])
    (notes / "a.md").write_text(f"{FRIDA}\n\n{ADDED}")
    for base in bases:
        await base.add([notes])
    edited, fresh = [await _find_names(base) for base in bases]
    assert edited == fresh
    people = [name for name in edited[ADDED] if name in ("Ada Lindberg", "Otto Walmark")]
    assert people == ["Ada Lindberg", "Otto Walmark"]
