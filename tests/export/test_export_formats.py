"""What is exported comes back as the same graph; what is shown cannot become a command."""

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clew.engine import KnowledgeBase
from clew.errors import InputError, StoreError
from clew.export.cypher import quote_string
from clew.export.formats import FORMATS, export
from clew.export.graph import Community, ExportGraph, load_communities
from clew.export.html import GraphPage
from clew.index.derive import derive_arrays
from clew.ingest.graphs import fields
from clew.ingest.graphs.import_graph import GraphImport
from clew.store.memory import MemoryStore
from clew.store.protocol import Addition, Change, Store
from clew.text.unicode import clean, digest
from clew.types import (
    HEAD,
    LITERAL_TYPES,
    MEMBER,
    TAIL,
    Chunk,
    Document,
    Extraction,
    RawEntity,
    RawFact,
)

HOSTILE = "</script><script>alert(1)</script>"


def _said(*facts: RawFact, entities: Sequence[RawEntity] = ()) -> Addition:
    text = "\n".join(fact.text for fact in facts) or "nothing"
    document = Document(digest("", text), text, "", ("doc",))
    chunk = Chunk(digest(document.id, "0"), document.id, 0, len(text), text)
    said = Extraction(tuple(entities), facts, exact=True)
    return Addition(document, (chunk,), (said,), "s")


def _triple(head: str, relation: str, tail: str, **more: Any) -> RawFact:
    return RawFact(
        f"{head} {relation} {tail}", ((head, HEAD), (tail, TAIL)), relation, span=(0, 1), **more
    )


async def _store(addition: Addition) -> MemoryStore:
    store = MemoryStore()
    await store.write(Change(add=[addition]), derive_arrays)
    return store


async def _graph(store: Store) -> tuple[dict[str, Any], dict[Any, Any]]:
    """Entities and facts as an export would tell them, without ids and places."""
    async with store.snapshot() as now:
        graph = ExportGraph(now)
        entities = {
            e.name: (e.type, e.description, e.aliases, dict(e.attributes))
            async for _, e in graph.entities()
        }
        facts = {
            (s.fact.relation, s.members, s.fact.text): (
                s.fact.weight,
                s.fact.description,
                s.fact.keywords,
            )  # fmt: skip
            async for s in graph.facts()
        }
    return entities, facts


async def _there_and_back(store: Store, form: str, folder: Path) -> MemoryStore:
    file = folder / f"g.{form}"
    async with store.snapshot() as now:
        await export(ExportGraph(now), file)
    back = MemoryStore()
    done = await GraphImport(back, folder / "import")(file)
    assert done.bad == 0, done.bad_rows
    return back


def _usable(name: str) -> str:
    return clean(name).strip()


# Any text at all, with separators, quotes, markup, controls, RTL and combining characters.
TEXT = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="a\t\n|,\"'\\<>&;:\x01\x0b\x1f\ufffe\u202e\u0301שé{}[]`#", max_size=8),
)
NAME = TEXT.map(_usable).filter(bool)
FACTS = st.lists(
    st.tuples(NAME, NAME, NAME, st.sampled_from([1.0, 0.25, 3.0]), TEXT.map(_usable)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=10, deadline=None)
@example(rows=[("0", "0", "<0>", 1.0, "")], kind="", extra={})  # a name in an IRI's brackets
@example(rows=[("0", "<", "<", 1.0, "")], kind="", extra={})  # a bracket alone is no IRI
@given(rows=FACTS, kind=TEXT.map(_usable), extra=st.dictionaries(NAME, NAME, max_size=3))
@pytest.mark.parametrize("form", ["jsonl", "graphml"])
async def test_everything_comes_back(
    form: str, rows: list[tuple[str, str, str, float, str]], kind: str, extra: dict[str, str]
) -> None:
    facts = [_triple(h, r, t, weight=w, description=d) for h, r, t, w, d in rows]
    entity = RawEntity(rows[0][0], kind, rows[0][4], aliases=tuple(sorted(extra)), attributes=extra)
    first = await _store(_said(*facts, entities=[entity]))
    with tempfile.TemporaryDirectory() as folder:
        back = await _there_and_back(first, form, Path(folder))
        assert await _graph(back) == await _graph(first)


@settings(max_examples=10, deadline=None)
@given(rows=FACTS)
@pytest.mark.parametrize("form", ["tsv", "csv"])
async def test_triples_come_back_from_tables(
    form: str, rows: list[tuple[str, str, str, float, str]]
) -> None:
    first = await _store(
        _said(*(_triple(h, r, t, weight=w, description=d) for h, r, t, w, d in rows))
    )
    with tempfile.TemporaryDirectory() as folder:
        back = await _there_and_back(first, form, Path(folder))

        def told(graph: tuple[dict[str, Any], dict[Any, Any]]) -> dict[Any, Any]:
            return {key[:2]: value for key, value in graph[1].items()}  # its wording is made anew

        assert told(await _graph(back)) == told(await _graph(first))


@pytest.mark.parametrize("form", ["jsonl", "graphml"])
async def test_facts_of_many_members_come_back(form: str, tmp_path: Path) -> None:
    wedding = RawFact(
        "Pierre married Marie in Paris.",
        (("Pierre", MEMBER), ("Marie", MEMBER), ("Paris", "place")),
        keywords=("wedding",),
        span=(0, 30),
    )
    first = await _store(_said(wedding, _triple("Marie", "found", "Radium")))
    back = await _there_and_back(first, form, tmp_path)
    assert await _graph(back) == await _graph(first)


async def test_tables_tell_what_they_have_no_place_for(tmp_path: Path) -> None:
    store = await _store(_said(RawFact("a b c", (("a", MEMBER), ("b", MEMBER)), span=(0, 5))))
    async with store.snapshot() as now:
        done = await export(ExportGraph(now), tmp_path / "g.tsv")
    assert (done.facts, done.left_out) == (1, 1)


async def test_json_lines_cite_and_hold_the_tree(tmp_path: Path) -> None:
    store = await _store(_said(_triple("Ada", "knows", "Bob")))
    tree = [Community("c1", "dual", 0, "", "People", "Who knows whom.", ("Ada", "Bob"))]
    async with store.snapshot() as now:
        await export(ExportGraph(now, tree), tmp_path / "g.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "g.jsonl").read_text().splitlines()]
    fact = next(row for row in rows if row["kind"] == "fact")
    assert fact["said"] == [{"doc": "doc", "start": 0, "end": 1}]
    assert rows[-1] == {
        "kind": "community", "id": "c1", "tree": "dual", "level": 0, "parent": "", "name": "People",
        "summary": "Who knows whom.", "members": ["Ada", "Bob"],
    }  # fmt: skip


async def test_parquet(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    store = await _store(_said(_triple("Ada", "knows", HOSTILE, weight=2.0)))
    async with store.snapshot() as now:
        await export(ExportGraph(now), tmp_path / "g.parquet")
    [fact] = pq.read_table(tmp_path / "g.parquet").to_pylist()
    assert (fact["head"], fact["relation"], fact["tail"], fact["weight"]) == (
        "Ada", "knows", HOSTILE, 2.0
    )  # fmt: skip
    entities = pq.read_table(tmp_path / "g.entities.parquet").to_pylist()
    assert {entity["name"] for entity in entities} == {"Ada", HOSTILE}


def _cypher_strings(script: str) -> tuple[list[str], str]:
    """The strings of a script as Cypher reads them, and the script without them."""
    found: list[str] = []
    unescape = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

    def take(match: re.Match[str]) -> str:
        body = re.sub(r"\\(.)", lambda m: unescape.get(m[1], m[1]), match[1], flags=re.DOTALL)
        found.append(body)
        return "?"

    rest = re.sub(r"'((?:[^'\\]|\\.)*)'", take, script, flags=re.DOTALL)
    return found, rest


@given(
    text=TEXT | st.sampled_from(["\\u0027 OR 1", "'; MATCH (n) DETACH DELETE n //", "\\\\u0060"])
)
def test_a_cypher_string_holds_any_text(text: str) -> None:
    written = quote_string(text)
    parts, rest = _cypher_strings(written)
    assert "".join(parts) == text
    assert set(rest) <= set("? +")
    assert "\\u" not in written  # Cypher would decode it before it looks for quotes


async def test_no_name_becomes_cypher(tmp_path: Path) -> None:
    bad = "x'}) DETACH DELETE (n) //`"
    store = await _store(_said(_triple(bad, bad, "b")))
    async with store.snapshot() as now:
        await export(ExportGraph(now), tmp_path / "g.cypher")
    _, rest = _cypher_strings((tmp_path / "g.cypher").read_text())
    assert "DETACH" not in rest


async def test_the_page_is_whole_safe_and_bounded(tmp_path: Path) -> None:
    facts = [_triple("hub", "to", f"leaf {n}") for n in range(50)]
    store = await _store(_said(*facts, _triple(HOSTILE, "<!--", "שלום \u2028 e\u0301")))
    async with store.snapshot() as now:
        done = await export(ExportGraph(now), tmp_path / "g.html", page=GraphPage(20, "", HOSTILE))
        assert done.left_out == 53 - 20
        near = await export(ExportGraph(now), tmp_path / "h.html", page=GraphPage(5, HOSTILE))
        assert near.left_out == 53 - 2
        with pytest.raises(StoreError, match="nobody"):
            await export(ExportGraph(now), tmp_path / "i.html", page=GraphPage(5, "nobody"))
    for name, size in (("g.html", 20), ("h.html", 2)):
        page = (tmp_path / name).read_text(encoding="utf-8")
        assert ", characters " in page and "max-width:760px" in page
        assert page.count("<script") == page.count("</script>") == 2
        assert not re.search(r"""<[^>]*\b(src|href)\s*=|url\(|@import""", page)
        packed = re.search(r'id="graph">(.*?)</script>', page, re.DOTALL)
        assert packed is not None
        shown = json.loads(packed[1])
        assert len(shown["nodes"]) == size
        names = [node["name"] for node in shown["nodes"]]
        assert names[0] == ("hub" if name == "g.html" else HOSTILE)
        for fact in shown["facts"]:
            assert fact["cited"][0]["doc"] == "doc"


async def test_a_placeholder_in_the_title_stays_as_it_is(tmp_path: Path) -> None:
    store = await _store(_said(_triple("$title", "to", "{{graph}}")))
    async with store.snapshot() as now:
        await export(ExportGraph(now), tmp_path / "g.html", page=GraphPage(title="$graph"))
    page = (tmp_path / "g.html").read_text(encoding="utf-8")
    assert "<title>$graph</title>" in page and '"name": "$title"' in page


async def test_an_empty_graph_can_be_exported(tmp_path: Path) -> None:
    async with MemoryStore().snapshot() as now:
        for form in FORMATS:
            if form != "parquet":
                await export(ExportGraph(now), tmp_path / f"g.{form}")
                assert (tmp_path / f"g.{form}").exists()


async def test_unknown_formats_and_places_are_told(tmp_path: Path) -> None:
    async with MemoryStore().snapshot() as now:
        with pytest.raises(InputError, match="graphml"):
            await export(ExportGraph(now), tmp_path / "g.docx")
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match="cannot write .*file/g.jsonl"):
            await export(ExportGraph(now), tmp_path / "file" / "g.jsonl")
        (tmp_path / "g.jsonl").mkdir()
        with pytest.raises(InputError, match="cannot write .*/g.jsonl"):
            await export(ExportGraph(now), tmp_path / "g.jsonl")
    assert not (tmp_path / ".g.new.jsonl").exists()  # nothing half-written is left


async def test_the_trees_of_a_knowledge_base_are_exported(valley: KnowledgeBase) -> None:
    await valley.builder.make_tree_manager().build(["dual"])
    async with valley.store.snapshot() as now:
        found = await load_communities(now, valley.store)
        entities = [entity async for _, entity in ExportGraph(now).entities()]
    names = {entity.name for entity in entities if entity.type not in LITERAL_TYPES}
    assert found
    ids = {one.id for one in found} | {""}
    for one in found:
        assert one.parent in ids
        assert set(one.members) <= names
    assert {name for one in found for name in one.members} == names


async def test_no_attribute_is_taken_for_something_else(tmp_path: Path) -> None:
    """Whatever our import understands as a name, a type … stays an attribute if it was one."""
    wanted = (
        *fields.NAME_FIELDS,
        *fields.TYPE_FIELDS,
        *fields.DESCRIPTION_FIELDS,
        *fields.ALIAS_FIELDS,
        "n_a me",
        "id",
    )
    attributes = {name: f"value {name}" for name in (*wanted, "clew_exact", "born")}
    first = await _store(_said(entities=[RawEntity("Ada", attributes=attributes)]))
    for form in ("graphml", "jsonl"):
        back = await _there_and_back(first, form, tmp_path)
        assert await _graph(back) == await _graph(first)


@pytest.mark.parametrize("form", ["tsv", "csv"])
async def test_a_formula_is_text_for_a_spreadsheet(form: str, tmp_path: Path) -> None:
    rows = [("=cmd|calc", "@SUM(1)", "+B"), ("-1", "'-5", "'=x")]
    first = await _store(_said(*(_triple(*row) for row in rows)))
    back = await _there_and_back(first, form, tmp_path)
    written = (tmp_path / f"g.{form}").read_text()
    assert all(f"'{cell}" in written for cell in ("=cmd", "@SUM", "+B", "'=x"))
    assert {*(await _graph(back))[0]} == {"=cmd|calc", "+B", "-1", "'=x"}
