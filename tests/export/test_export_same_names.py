"""Two senses of one name leave under two names, and come back as two."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.engine import KnowledgeBase
from clew.export.formats import export
from clew.export.graph import Community, ExportGraph, disambiguate_names
from clew.index.derive import derive_arrays
from clew.ingest.graphs.import_graph import GraphImport
from clew.store.memory import MemoryStore
from clew.store.protocol import Addition, Change, Store
from clew.text.unicode import digest
from clew.types import HEAD, TAIL, Chunk, Document, Extraction, Fact, RawEntity, RawFact
from conftest import document, stream

SENSES = {"planet": ("near", "Sun"), "god": ("sent by", "Jupiter"), "metal": ("found in", "Spain")}


class Triples:
    """An extractor that finds `head | relation | tail`, one per line, and members that are more."""

    name = "triples"

    async def __call__(self, document: Document, chunks: Sequence[Chunk]) -> Sequence[Extraction]:
        return [self._of(chunk) for chunk in chunks]

    def _of(self, chunk: Chunk) -> Extraction:
        entities, facts = [], []
        for line in chunk.text.splitlines():
            head, relation, tail, *more = line.split(" | ")
            span = (chunk.start, chunk.end)
            entities += [RawEntity(name, spans=(span,)) for name in (head, tail, *more)]
            who = [(head, HEAD), (tail, TAIL), *((name, "member") for name in more)]
            facts.append(RawFact(line, tuple(who), relation, span=span))
        return Extraction(tuple(entities), tuple(facts))


@pytest.fixture
async def mercury(base: KnowledgeBase) -> KnowledgeBase:
    """Three senses of one name, each with a triple and a fact of three members."""
    documents = [
        document(name, f"Mercury | {r} | {tail}\nMercury | is | {name} | {tail}")
        for name, (r, tail) in SENSES.items()
    ]
    await base.take(stream(documents), Triples())
    for name in ("god", "metal"):
        await base.identity.split("Mercury", documents=[name])
    return base


async def _told(store: Store) -> tuple[dict[str, Any], set[Any]]:
    async with store.snapshot() as now:
        graph = ExportGraph(now)
        entities = {e.name: e.aliases async for _, e in graph.entities()}
        facts = {(s.fact.relation, s.members, s.fact.text) async for s in graph.facts()}
    return entities, facts


async def _written(base: KnowledgeBase, file: Path) -> str:
    async with base.store.snapshot() as now:
        senses = [at async for at, e in ExportGraph(now).entities() if e.name.startswith("Mercury")]
        tree = [Community("c", "dual", 0, "", "", "", ("Mercury",) * 3, tuple(senses))]
        await export(ExportGraph(now, tree), file)
    return _text(file)


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["jsonl", "graphml"])
async def test_senses_come_back(mercury: KnowledgeBase, form: str, tmp_path: Path) -> None:
    entities, facts = await _told(mercury.store)
    assert {name for name in entities if "Mercury" in name} == {
        "Mercury", "Mercury (2)", "Mercury (3)"
    }  # fmt: skip
    assert "Mercury" in entities["Mercury (2)"]
    await _written(mercury, tmp_path / f"g.{form}")
    back = MemoryStore()
    done = await GraphImport(back, tmp_path / "import")(tmp_path / f"g.{form}")
    assert (done.bad, done.shared_names) == (0, 0)
    assert await _told(back) == (entities, facts)


async def test_every_format_tells_them_apart(mercury: KnowledgeBase, tmp_path: Path) -> None:
    ends = {("near", "Sun"), ("sent by", "Jupiter"), ("found in", "Spain")}
    table = (await _written(mercury, tmp_path / "g.tsv")).splitlines()[1:]
    rows = [tuple(line.split("\t")[:3]) for line in table]
    assert {row[1:] for row in rows} == ends
    assert len({row[0] for row in rows}) == 3
    script = await _written(mercury, tmp_path / "g.cypher")
    nodes = script.partition("MERGE (e:Entity")[0]
    assert len(set(re.findall(r"\{name: ('Mercury[^']*')", nodes))) == 3
    page = await _written(mercury, tmp_path / "g.html")
    packed = re.search(r'id="graph">(.*?)</script>', page, re.DOTALL)
    assert packed is not None
    names = [node["name"] for node in json.loads(packed[1])["nodes"]]
    assert len(set(names)) == len(names) == 6 + 3
    *_, last = (await _written(mercury, tmp_path / "g.jsonl")).splitlines()
    assert json.loads(last)["members"] == ["Mercury", "Mercury (2)", "Mercury (3)"]


@given(names=st.lists(st.sampled_from(["a", "a (2)", "a (2) (2)", "a (3)", "b"]), max_size=12))
def test_no_two_names_are_the_same(names: list[str]) -> None:
    other = disambiguate_names(enumerate(names))
    told = [other.get(at, name) for at, name in enumerate(names)]
    assert len(set(told)) == len(names)
    for at, name in enumerate(names):
        if name not in names[:at]:
            assert told[at] == name
        assert told[at].startswith(name)


async def test_a_weight_that_is_no_number_leaves_as_one(tmp_path: Path) -> None:
    """Knowledge bases of before may hold such a weight."""
    text = "a r b"
    fact = RawFact(text, (("a", HEAD), ("b", TAIL)), "r", span=(0, 5))
    held = Document(digest("", text), text, "", ("doc",))
    chunk = Chunk(digest(held.id, "0"), held.id, 0, 5, text)
    store = MemoryStore()
    said = Addition(held, (chunk,), (Extraction((), (fact,), exact=True),), "s")
    await store.write(Change(add=[said]), derive_arrays)

    class Heavy:
        """A snapshot of a knowledge base whose facts weigh too much."""

        def __init__(self, now: Any) -> None:
            self._now = now

        def __getattr__(self, name: str) -> Any:
            return getattr(self._now, name)

        async def facts(self, keys: Sequence[int]) -> dict[int, Fact]:
            found = await self._now.facts(keys)
            return {key: replace(one, weight=float("inf")) for key, one in found.items()}

    async with store.snapshot() as now:
        for form in ("jsonl", "cypher", "graphml", "tsv"):
            await export(ExportGraph(Heavy(now)), tmp_path / f"g.{form}")
            told = _text(tmp_path / f"g.{form}")
            assert ("1e308" if form == "cypher" else "1e+308") in told  # Cypher may know no plus
    for line in _text(tmp_path / "g.jsonl").splitlines():
        json.loads(line, parse_constant=pytest.fail)  # no `Infinity`, which is no JSON
