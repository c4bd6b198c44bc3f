"""Retrievers: a recipe of a real knowledge base, and the exported file on torch."""

import numpy as np
import pytest

from clew.agents.graph_r1_protocol import format_pages, prefix_title
from clew.train.search.exported_kb import pack_texts, pack_vectors, unpack_texts, unpack_vectors
from clew.train.search.retrievers import CachedRetriever, format_evidence
from clew.types import Evidence, Passage, Statement


def test_texts_and_vectors_come_back_from_plain_arrays(tmp_path):
    texts = ["", "naïve 漢字", "a\nb", "🐍"]
    rows = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    rows[2] = 0
    np.savez_compressed(tmp_path / "x.npz", **pack_texts("t", texts), **pack_vectors("v", rows))
    with np.load(tmp_path / "x.npz", allow_pickle=False) as held:
        assert unpack_texts(held, "t") == texts
        assert np.abs(unpack_vectors(held, "v") - rows).max() <= np.abs(rows).max() / 127


def test_knowledge_is_facts_or_else_titled_passages():
    passage = Passage("1", "d", "Ann", 1.0, "She is a smith.", 0, 15)
    fact = Statement("f", "Ann met Bea.", "", ("Ann", "Bea"), 1.0)
    assert format_evidence(Evidence(chunks=(passage,))) == "- Ann: She is a smith."
    assert (
        format_evidence(Evidence(chunks=(passage,), facts=(fact,))) == "- Ann met Bea. (score 1.00)"
    )
    assert format_evidence(Evidence()) == ""
    assert prefix_title("ann", "Ann smiths.") == "Ann smiths."


def test_facts_stand_under_their_page_in_the_order_of_its_text():
    facts = [("Ann", 40, "She met Bea."), ("Bea", 0, "Bea sings."), ("Ann", 0, "She is a smith.")]
    assert format_pages([*facts, facts[0], ("", 0, "Loose.")]).splitlines() == [
        "- Ann: She is a smith. She met Bea.",
        "- Bea sings.",
        "- Loose.",
    ]


def test_a_query_is_searched_once():
    asked = []

    def search(queries):
        asked.extend(queries)
        return [query.upper() for query in queries]

    retrieve = CachedRetriever(search)
    assert retrieve(["a", "b", "a"]) == ["A", "B", "A"]
    assert retrieve(["b", "c"]) == ["B", "C"] and asked == ["a", "b", "c"]


def _exported(tmp_path):
    pytest.importorskip("torch")
    from clew.train.search.exported_kb import ExportedKb

    basis = np.eye(4, dtype=np.float32)
    held = {
        **pack_texts("chunk_text", ["Ann is a smith. She met Bea.", "Bea lives in Oslo."]),
        **pack_texts("title_text", ["Ann", "Bea"]),
        **pack_texts("entity_text", ["Ann", "Bea", "Oslo"]),
        **pack_texts("fact_text", ["Ann is a smith.", "She met Bea.", "Bea lives in Oslo."]),
        **pack_vectors("chunk", basis[[0, 2]]),
        **pack_vectors("entity", basis[:3]),
        **pack_vectors("fact", basis[:3]),
        "entity_fact_starts": np.array([0, 2, 4, 5]),
        "entity_fact_columns": np.array([0, 1, 1, 2, 2], np.int32),
        "fact_chunk_starts": np.array([0, 1, 2, 3]),
        "fact_chunk_columns": np.array([0, 0, 1], np.int32),
    }
    np.savez_compressed(tmp_path / "kb.npz", **held)
    return ExportedKb


def test_dual_path_fuses_both_rankings_by_hand(tmp_path):
    loaded = _exported(tmp_path)
    import torch

    from clew.train.search.retrievers import DualPathRetriever, PassageRetriever

    # The query names Bea (facts 1 and 2) but is nearest in meaning to fact 0, then 1.
    vector = torch.tensor([[0.8, 0.5, 0.3, 0.0]])
    kb = loaded(tmp_path / "kb.npz", lambda queries: vector.repeat(len(queries), 1))
    assert [kb.texts["entity"][at] for at in kb.link_entities("Who is Bea?")] == ["Bea"]
    # Paths: by entity 1, 2; direct 0, 1. Scores: 1 → 1+1/2, 0 → 1, 2 → 1/2.
    (found,) = DualPathRetriever(kb, k=3, entities=1, facts=2)(["Who is Bea?"])
    assert found.splitlines() == [
        "- Ann: She met Bea. (score 1.50)",
        "- Ann is a smith. (score 1.00)",
        "- Bea lives in Oslo. (score 0.50)",
    ]
    (two,) = DualPathRetriever(kb, k=1, entities=1, facts=1)(["nobody"])
    assert two == "- Ann is a smith. (score 2.00)"
    (passages,) = PassageRetriever(kb, k=1)(["anything"])
    assert passages == "- Ann is a smith. She met Bea."


async def test_the_trained_and_the_served_retriever_say_the_same(valley, tmp_path):
    """The recipe `own-facts` and its exported twin."""
    torch = pytest.importorskip("torch")
    from clew.recipes.agents import AGENTS
    from clew.train.search.exported_kb import ExportedKb, export_kb
    from clew.train.search.retrievers import KbRetriever, PageFactsRetriever

    agent = AGENTS["graph-r1-facts"].agent
    queries = ["place of birth of Ilse Brandvik", "designer of Marrow Bridge", "the poet"]
    served = await KbRetriever(valley, "own-facts", agent.top_k, agent.format_evidence)(queries)
    await export_kb(valley.store, tmp_path / "kb.npz")
    vectors = await valley.embed(queries)
    kb = ExportedKb(tmp_path / "kb.npz", lambda texts: torch.as_tensor(np.asarray(vectors)))
    assert PageFactsRetriever(kb)(queries) == served
    assert served[0].splitlines()[0].startswith("- Ilse Brandvik was an engineer.")
    assert "born in Hallowmere" in served[0].splitlines()[0]
    assert "designed by Ilse Brandvik" in served[1].splitlines()[0]


async def test_an_export_is_swapped_in_as_a_whole(valley, tmp_path):
    from clew.train.search.exported_kb import export_kb

    file = tmp_path / "kb.npz"
    file.write_bytes(b"an earlier export")
    with file.open("rb") as earlier:
        await export_kb(valley.store, file)
        assert earlier.read() == b"an earlier export"
    assert "chunk_keys" in np.load(file).files
    assert [path.name for path in tmp_path.glob("kb.npz*")] == ["kb.npz"]


async def test_any_recipe_of_a_knowledge_base_answers_queries(tmp_path):
    import clew
    from clew.train.search.exported_kb import export_kb
    from clew.train.search.retrievers import KbRetriever

    (tmp_path / "a.md").write_text("# Marrow Bridge\n\nIlse Brandvik designed Marrow Bridge.\n")
    from clew.config import load_settings
    from clew.engine import KnowledgeBase

    settings = load_settings(None).model_copy(update={"kb": tmp_path / "kb"})
    kb = await KnowledgeBase.open(settings, create=True, embed=False)
    try:
        with pytest.raises(clew.ClewError, match="is empty"):
            await export_kb(kb.store, tmp_path / "x.npz")
        await kb.add([tmp_path / "a.md"], extractor="offline")
        retrieve = KbRetriever(kb, "bm25", k=2)
        first, blank, again = await retrieve(
            ["Marrow Bridge designer", " ", "Marrow Bridge designer"]
        )
        assert "Ilse Brandvik" in first and first == again and blank == ""
    finally:
        await kb.close()
