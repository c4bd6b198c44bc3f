"""Descriptions, keywords and attributes: embedded, found, kept up to date, and removed cleanly."""

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.config import EmbedSettings, ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.errors import ModelError
from clew.index.derive import derive_arrays
from clew.index.details import load_details
from clew.index.view import View
from clew.llm.embed import EmbedRole, Vectors
from clew.store.memory import MemoryStore
from clew.store.merge import attribute_texts, detailed_text
from clew.store.protocol import Arrays, Change, Store, Tables
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import make_triple, read_content
from clew.testing.fakes import AgentScript, HashEmbed
from clew.testing.stub_endpoint import StubEndpoint
from clew.types import LITERAL_TYPES, Chunk, Document, Extraction, RawEntity
from conftest import document, stream

DISTRACTORS = {
    f"d{at}": Extraction(
        (RawEntity(f"Quarrel {word}"), RawEntity(f"Mile {word}")),
        (make_triple(f"Quarrel {word}", "precedes", f"Mile {word}"),),
    )
    for at, word in enumerate(("alder", "birch", "cedar", "dogwood", "elder"))
}


class RecordingEmbed(HashEmbed):
    """Remembers the passages it embedded, and refuses texts with a forbidden word."""

    def __init__(self, name: str = "hash", dim: int = 512) -> None:
        super().__init__(name, dim)
        self.seen: list[str] = []
        self.forbidden = ""

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        if self.forbidden and any(self.forbidden in text for text in texts):
            raise ModelError("the embedder is down")
        if role == "passage":
            self.seen += texts
        return await super().__call__(texts, role=role)


@dataclass(frozen=True)
class TableExtractor:
    """Returns the extraction that a table has for a document's name."""

    table: Mapping[str, Extraction] = field(repr=False)

    async def __call__(self, document: Document, chunks: Sequence[Chunk]) -> list[Extraction]:
        return [self.table[document.names[0]] for _ in chunks]


def make_kb(store: Store, folder: Path = Path("unused"), **more: Any) -> KnowledgeBase:
    embed = EmbedSettings(kinds=("chunk", "entity", "fact"))
    settings = Settings(kb=folder, wait=0.2, embed=embed, **more)
    return KnowledgeBase(store, settings, RecordingEmbed())


def text_of(name: str) -> Document:
    """A document whose words are in no question."""
    return document(name, f"Page {name} of the register.")


async def add(kb: KnowledgeBase, table: Mapping[str, Extraction], *names: str) -> list[str]:
    """Add documents with these extractions; return the texts that were embedded."""
    assert isinstance(kb.embed, RecordingEmbed)
    kb.embed.seen.clear()
    await kb.take(stream(map(text_of, names or table)), TableExtractor(table))
    return list(kb.embed.seen)


async def find_docs(kb: KnowledgeBase, question: str, recipe: str, k: int = 10) -> list[str]:
    found = await kb.search(question, recipe=recipe, k=k)
    return [passage.doc for passage in found.evidence.chunks]


@pytest.fixture
async def kb(tmp_path: Path) -> Any:
    opened = make_kb(SqliteStore(tmp_path / "kb", create=True, durable=False), tmp_path / "kb")
    yield opened
    await opened.close()


LIGHT = RawEntity("Norr", "tower", "a lighthouse painted yellow")
YELLOW = "painted yellow lighthouse?"


@pytest.mark.parametrize("recipe", ["lightrag-local", "lightrag", "rograg-dual", "hypergraphrag"])
async def test_a_description_leads_to_its_entity(kb: KnowledgeBase, recipe: str) -> None:
    fact = make_triple("Norr", "precedes", "Sund")
    plain = replace(LIGHT, description="")
    await add(kb, DISTRACTORS | {"norr": Extraction((plain,), (fact,))})
    assert "Norr" not in await find_entities(kb, YELLOW, recipe)
    await kb.remove(["norr"])
    await add(kb, {"norr": Extraction((LIGHT,), (fact,))})
    assert (await find_entities(kb, YELLOW, recipe))[0] == "Norr"


async def test_a_description_leads_to_its_passage(kb: KnowledgeBase) -> None:
    await add(kb, DISTRACTORS | {"norr": Extraction((replace(LIGHT, description=""),))})
    assert await find_docs(kb, YELLOW, "lightrag-local") == []
    await kb.remove(["norr"])
    await add(kb, {"norr": Extraction((LIGHT,))})
    assert await find_docs(kb, YELLOW, "lightrag-local") == ["norr"]


STATED = make_triple("Norr", "precedes", "Sund")


@pytest.mark.parametrize(
    "detail", [{"keywords": ("coastal trade", "salt")}, {"description": "coastal trade in salt"}]
)
async def test_keywords_and_description_lead_to_their_fact(
    kb: KnowledgeBase, detail: dict[str, Any]
) -> None:
    await add(kb, DISTRACTORS | {"norr": Extraction((), (STATED,))})
    assert "norr" not in await find_docs(kb, "coastal trade salt?", "lightrag-global")
    await kb.remove(["norr"])
    await add(kb, {"norr": Extraction((), (replace(STATED, **detail),))})
    assert (await find_docs(kb, "coastal trade salt?", "lightrag-global"))[:1] == ["norr"]


async def test_exact_matching_sees_keywords_and_aliases(kb: KnowledgeBase) -> None:
    named = RawEntity("Norr", aliases=("Sea Candle",))
    plain = Extraction((RawEntity("Norr"),), (STATED,))
    await add(kb, DISTRACTORS | {"norr": plain})
    assert await find_docs(kb, "coastal trade", "rograg-exact") == []
    assert await find_docs(kb, "Where is Sea Candle?", "rograg-exact") == []
    await kb.remove(["norr"])
    words = Extraction((named,), (replace(STATED, keywords=("Coastal Trade",)),))
    await add(kb, {"norr": words})
    assert await find_docs(kb, "coastal trade", "rograg-exact") == ["norr"]
    assert await find_docs(kb, "Where is Sea Candle?", "rograg-exact") == ["norr"]


def schema_reply(*attributes: dict[str, str]) -> AgentScript:
    thing = {"name": "Norr", "type": "place", "description": ""}
    return AgentScript({"schema": {"entities": [thing], "attributes": [*attributes]}})


async def test_an_attribute_leads_to_its_entity(tmp_path: Path) -> None:
    """A schema-bounded build by a model: the passage has no word of the question."""
    (tmp_path / "clew-schema.toml").write_text(
        '[entities]\nplace = "a place"\n[attributes]\nmaterial = "what it is made of"\n'
    )
    oak = {"entity": "Norr", "name": "material", "value": "oak"}
    for script, expected in ((schema_reply(oak), ["norr"]), (schema_reply(), [])):
        async with StubEndpoint(script) as stub:
            folder = tmp_path / f"kb {len(expected)}"
            models = ModelSettings(model="stub", base_url=stub.base_url, api_key="k")  # type: ignore[arg-type]
            kb = make_kb(
                SqliteStore(folder, create=True, durable=False),
                folder,
                models=models,
                schema_file=tmp_path / "clew-schema.toml",
            )
            await add(kb, DISTRACTORS)
            await kb.take(stream([document("norr", "Norr stands there.")]), "schema")
            docs = await find_docs(kb, "Which material is oak?", "youtu", k=3)
            assert [doc for doc in docs if doc == "norr"] == expected
            await kb.close()


async def test_without_details_nothing_is_added(kb: KnowledgeBase) -> None:
    await add(kb, DISTRACTORS)
    async with kb.store.snapshot() as now:
        assert not [name for name in now.arrays if name.startswith("detail_")]
        assert now.generation == 1
    for kind in ("description", "attribute"):
        assert not len(kb.store.vectors("hash", kind).matrix())  # type: ignore[arg-type]


async def test_a_huge_description_costs_no_more_than_a_long_one(kb: KnowledgeBase) -> None:
    huge = RawEntity("Norr", description="tide " * 20_000, attributes={"note": "x" * 100_000})
    wordy = replace(STATED, keywords=("k" * 100_000,), description="y " * 50_000)
    seen = await add(kb, {"norr": Extraction((huge,), (wordy,))})
    assert len(seen) > 3
    assert max(map(len, seen)) < 2000
    assert await find_docs(kb, "tide?", "lightrag-local") == ["norr"]


async def test_a_changed_description_embeds_that_element_alone(kb: KnowledgeBase) -> None:
    other = RawEntity("Sund", description="a harbour")
    table = {
        "norr": Extraction((LIGHT, other)),
        "more": Extraction((replace(LIGHT, description="a beacon"),)),
    }
    await add(kb, table, "norr")
    seen = await add(kb, table, "more")
    assert sorted(seen) == [
        "Norr (tower): a beacon a lighthouse painted yellow",
        "Page more of the register.",
    ]
    assert await add(kb, table, "more") == []  # nothing is new
    assert isinstance(kb.embed, RecordingEmbed)
    kb.embed.seen.clear()
    await kb.remove(["norr"])
    assert kb.embed.seen == ["Norr (tower): a beacon"]


async def test_a_merge_by_hand_merges_the_descriptions(kb: KnowledgeBase) -> None:
    await add(
        kb, {"a": Extraction((LIGHT,)), "b": Extraction((RawEntity("Vega", "tower", "a reef"),))}
    )
    await kb.identity.merge("Norr", "Vega")
    [text] = await embedded_texts(kb)
    assert text.endswith(" (tower): a lighthouse painted yellow a reef")
    await check_vectors(kb)


async def test_a_summary_written_later_is_what_is_embedded(tmp_path: Path) -> None:
    long = replace(LIGHT, description="It shines at night. " * 100)
    async with StubEndpoint(
        AgentScript({"description": {"description": "a shining beam"}})
    ) as stub:
        folder = tmp_path / "kb"
        models = ModelSettings(model="stub", base_url=stub.base_url, api_key="k")  # type: ignore[arg-type]
        kb = make_kb(SqliteStore(folder, create=True, durable=False), folder, models=models)
        seen = await add(kb, {"norr": Extraction((long,))})
        assert seen[-1] == "Norr (tower): a shining beam"
        assert await embedded_texts(kb) == ["Norr (tower): a shining beam"]
        await kb.close()


async def test_what_a_failing_embedder_left_is_embedded_later(kb: KnowledgeBase) -> None:
    assert isinstance(kb.embed, RecordingEmbed)
    kb.embed.forbidden = "yellow"
    with pytest.raises(ModelError):
        await add(kb, {"norr": Extraction((LIGHT,))})
    assert (await kb.search("Norr", recipe="lightrag-local")).evidence.entities[0].name == "Norr"
    assert await embedded_texts(kb) == []
    kb.embed.forbidden = ""
    await add(kb, {"norr": Extraction((LIGHT,))})
    assert len(await embedded_texts(kb)) == 1
    assert await kb.verify() == []


async def test_lost_vectors_of_descriptions_are_reported_and_repaired(kb: KnowledgeBase) -> None:
    detailed = replace(LIGHT, attributes={"made of": "oak"})
    await add(kb, {"norr": Extraction((detailed,), (STATED,))})
    for file in (kb.settings.kb / "vectors").rglob("description*.npy"):
        file.unlink()
    [problem] = await kb.verify()
    assert "description" in problem
    await kb.repair()
    assert await kb.verify() == []
    await check_vectors(kb)


async def test_another_embedder_has_its_own_details(kb: KnowledgeBase) -> None:
    await add(
        kb,
        {
            "norr": Extraction(
                (replace(LIGHT, attributes={"made of": "oak"}),),
                (replace(STATED, keywords=("salt",)),),
            )
        },
    )
    other = KnowledgeBase(kb.store, kb.settings, RecordingEmbed("other"))
    await other.reembed()
    assert len(await embedded_texts(other)) == 1
    await check_vectors(other)


async def test_a_knowledge_base_of_an_earlier_version_is_brought_up_to_date(
    kb: KnowledgeBase,
) -> None:
    table = {"norr": Extraction((LIGHT,), (replace(STATED, keywords=("salt",)),))}
    await add(kb, DISTRACTORS | table)

    def derive_as_before(tables: Tables) -> Arrays:
        arrays = derive_arrays(replace(tables, previous={}))
        return {n: a for n, a in arrays.items() if not n.startswith("detail_")}

    await kb.store.write(Change(), derive_as_before)
    await kb.store.set("manifest", {"details": ""})
    assert await embedded_texts(kb) == []
    assert await find_docs(kb, YELLOW, "lightrag-local") == []
    assert await add(kb, DISTRACTORS | table) == []  # the vectors are there: only rows are missing
    assert len(await embedded_texts(kb)) == 1
    assert await find_docs(kb, YELLOW, "lightrag-local") == ["norr"]
    await check_vectors(kb)


# -- the law: any order of adds and removes gives what a fresh build gives

NAMES = st.sampled_from(["Norr", "NORR", "Sund", "Norr Light"])
WORDS = st.sampled_from(["", "yellow", "a beacon", "oak"])
ENTITIES = st.builds(
    lambda name, kind, about, value: RawEntity(
        name,
        kind,
        about,
        aliases=("Norr",) if name == "Norr Light" else (),
        attributes={"made of": value} if value else {},
    ),
    NAMES,
    st.sampled_from(["", "tower"]),
    WORDS,
    WORDS,
)
FACTS = st.builds(
    lambda head, word, about: replace(
        make_triple(head, "guards", "Bay"), keywords=(word,) if word else (), description=about
    ),
    NAMES,
    WORDS,
    WORDS,
)
EXTRACTIONS = st.builds(
    lambda entities, facts: Extraction(tuple(entities), tuple(facts)),
    st.lists(ENTITIES, max_size=3),
    st.lists(FACTS, max_size=2),
)


async def read_vectors(kb: KnowledgeBase) -> dict[str, list[list[float]]]:
    """Read the vectors of every entity, its attributes, and every fact, by id."""
    assert kb.embed is not None
    async with kb.store.snapshot() as now:
        ctx = await kb.context(now, "?")
        view = ctx.view
        entities = await now.entities(view.keys("entity").tolist())
        facts = await now.facts(view.keys("fact").tolist())
        found: dict[str, list[Any]] = {}
        basis = np.eye(kb.embed.dim, dtype=np.float32)
        columns = np.array([view.cosines("description", axis) for axis in basis]).T
        for key, row in zip(view.keys("entity").tolist(), columns, strict=True):
            found[entities[key].id] = [row]
        owners, rows = view.attributes
        for at, row in zip(owners.tolist(), rows.tolist(), strict=True):
            found[entities[int(view.keys("entity")[at])].id].append(view.matrices["attribute"][row])
        for at, key in enumerate(view.keys("fact").tolist()):
            found[facts[key].id] = [view.vectors("fact", np.array([at]))[0]]
    return {
        name: sorted(np.asarray(one).round(4).tolist() for one in many)
        for name, many in found.items()
    }


async def check_vectors(kb: KnowledgeBase) -> None:
    """Check that every element has the vector of the text it has now."""
    assert kb.embed is not None
    held = await read_vectors(kb)
    async with kb.store.snapshot() as now:
        view = View(now.arrays, {})
        entities = (await now.entities(view.keys("entity").tolist())).values()
        facts = (await now.facts(view.keys("fact").tolist())).values()
    for one in [*entities, *facts]:
        texts = [detailed_text(one) or getattr(one, "name", "") or getattr(one, "text", "")]
        if one in entities:
            assert one.type not in LITERAL_TYPES  # type: ignore[union-attr]
            texts += attribute_texts(one)  # type: ignore[arg-type]
        vectors = np.asarray(await kb.embed(texts))
        expected = sorted(vectors.round(4).tolist())
        # 16 bits are half of 4.9e-4 apart from what they stand for, and both are rounded.
        np.testing.assert_allclose(held[one.id], expected, atol=4e-4, err_msg=str(one))


async def embedded_texts(kb: KnowledgeBase) -> list[str]:
    """The texts of entities whose description has a vector."""
    async with kb.store.snapshot() as now:
        details = load_details(now.arrays, "entity")
        keys = details.keys[details.rows >= 0].tolist()
        return [detailed_text(one) for one in (await now.entities(keys)).values()]


@settings(max_examples=settings.default.max_examples // 6, deadline=None)
@given(
    st.lists(EXTRACTIONS, min_size=4, max_size=4),
    st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=6),
    st.booleans(),
)
def test_any_history_has_the_vectors_of_a_fresh_build(
    extractions: list[Extraction], history: list[tuple[bool, int]], on_disk: bool
) -> None:
    table = DISTRACTORS | {f"p{at}": one for at, one in enumerate(extractions)}

    async def run(folder: Path) -> None:
        stores: list[Store] = [
            SqliteStore(folder / name, create=True, durable=False) if on_disk else MemoryStore()
            for name in ("one", "two")
        ]
        kb, fresh = map(make_kb, stores)
        kb.embed, fresh.embed = RecordingEmbed(dim=32), RecordingEmbed(dim=32)
        await add(kb, table, "d0")
        present: dict[str, None] = {}
        for adds, at in history:
            name = f"p{at}"
            if adds:
                await add(kb, table, name)
                present[name] = None
            elif name in present:
                await kb.remove([name])
                del present[name]
        await add(fresh, table, "d0", *sorted(present))
        await check_vectors(kb)
        assert await read_content(kb.store) == await read_content(fresh.store)
        for recipe in ("lightrag", "youtu", "rograg-exact"):
            one, other = [
                sorted(await find_docs(each, "yellow oak beacon", recipe)) for each in (kb, fresh)
            ]
            assert one == other
        for each in (kb, fresh):
            await each.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


# -- keyword expansion


async def test_expanded_keywords_find_what_was_taken_for_a_topic(tmp_path: Path) -> None:
    table = DISTRACTORS | {
        "norr": Extraction((RawEntity("harbour pilot"),)),
        "sund": Extraction((RawEntity("Sund"),)),
    }
    script = AgentScript(
        {
            "keywords": {"names": ["Sund"], "topics": ["Sund"]},
            "expand_keywords": {"names": ["sund", "harbour pilot"]},
        }
    )
    async with StubEndpoint(script) as stub:
        models = ModelSettings(model="stub", base_url=stub.base_url, api_key="k")  # type: ignore[arg-type]
        kb = make_kb(SqliteStore(tmp_path / "kb", create=True, durable=False), models=models)
        await add(kb, table)
        best = {
            recipe: await find_entities(kb, "Who leads ships into Sund?", recipe)
            for recipe in ("rograg-dual", "rograg-expanded")
        }
        await kb.close()
    assert "harbour pilot" in best["rograg-expanded"]
    assert "harbour pilot" not in best["rograg-dual"]


async def test_without_a_model_the_phrases_of_topics_are_keywords(kb: KnowledgeBase) -> None:
    await add(kb, DISTRACTORS | {"norr": Extraction((RawEntity("pilot"),))})
    question = "Who was the pilot before Quarrel alder?"
    assert "pilot" in await find_entities(kb, question, "rograg-expanded")
    assert "pilot" not in await find_entities(kb, question, "rograg-dual")


async def find_entities(kb: KnowledgeBase, question: str, recipe: str) -> list[str]:
    """The names of the first three entities that are found."""
    found = await kb.search(question, recipe=recipe)
    return [entity.name for entity in found.evidence.entities[:3]]
