"""Cosines of very many elements: exact where it matters, and results as without estimates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from clew import context as context_module
from clew.engine import KnowledgeBase
from clew.graph.csr import Ints
from clew.index import estimates
from clew.index import view as view_module
from clew.index.view import View
from clew.retrieve import copies, follow_up, rank, walk
from clew.retrieve.expand import ChunksOf
from clew.retrieve.linking.link_names import LinkNames
from clew.retrieve.lookup import NearFacts
from clew.store.sign_bits import make_sign_bits
from clew.types import Document, Found, Hit, Kind
from conftest import document, one_in_three, stream

Floats = NDArray[np.float32]
NAMES = ("Ada Lind", "Bo Tarn", "Carl Moss", "Dora Vess", "Emil Hall", "Fay Grey", "Gus Pell")


def _make_vectors(count: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(0).standard_normal((40, 96))
    found = topics[rng.integers(0, 40, count)] + rng.standard_normal((count, 96))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "MIN_ESTIMATED", 100)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("share", [0, 40])  # what is known is sorted, or looked for among all
def test_the_nearest_and_what_is_asked_for_are_exact(
    monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    monkeypatch.setattr(estimates, "SORTED_SHARE", share)
    vectors = _make_vectors(3000, 1)
    rows = np.append(np.arange(2999), -1)
    arrays = {"fact_keys": np.arange(3000), "fact_rows": rows}
    view = View(arrays, {"fact": vectors}, indexes={"fact": make_sign_bits(vectors)})
    for query in _make_vectors(5, 2):
        exact, found = view.cosines("fact", query), view.estimates("fact", query, 400)
        assert found is not None and found.known is not None
        assert 400 <= np.count_nonzero(found.known) < 700
        np.testing.assert_array_equal(found.values[found.known], exact[found.known])
        best = np.argsort(-exact)[:20]
        assert found.known[best].mean() >= 0.95
        # Nothing is thought to be as near as the best, and the range is about that of all.
        assert found.values[~found.known].max() < exact[best[0]]
        assert abs(found.values[:-1].min() - exact[:-1].min()) < 0.15
        assert found.values[-1] == -1
        asked = np.array([7, 2999, 7, 1500])
        np.testing.assert_array_equal(found.at(asked), exact[asked])
        np.testing.assert_array_equal(found.values[asked], exact[asked])
        np.testing.assert_array_equal(found.find_known(), np.flatnonzero(found.known))
        found.at(np.array([3, 8]))
        np.testing.assert_array_equal(found.find_known(), np.flatnonzero(found.known))


@pytest.mark.usefixtures("few_are_many")
def test_estimates_of_two_vectors_together_are_those_of_each() -> None:
    vectors = _make_vectors(3000, 1)
    arrays = {"fact_keys": np.arange(3000), "fact_rows": np.append(np.arange(2999), -1)}
    view = View(arrays, {"fact": vectors}, indexes={"fact": make_sign_bits(vectors)})
    asked = [*_make_vectors(2, 3)]
    for vector, together in zip(asked, view.estimates_with("fact", asked, 400), strict=True):
        alone = view.estimates("fact", vector, 400)
        assert alone is not None and together is not None
        np.testing.assert_array_equal(together.values, alone.values)
        np.testing.assert_array_equal(together.find_known(), alone.find_known())


def test_few_elements_and_exact_search_have_no_estimates() -> None:
    vectors = _make_vectors(200, 1)
    arrays = {"fact_keys": np.arange(200), "fact_rows": np.arange(200)}
    indexed = View(arrays, {"fact": vectors}, indexes={"fact": make_sign_bits(vectors)})
    assert indexed.estimates("fact", vectors[0], 10) is None
    assert View(arrays, {"fact": vectors}).estimates("fact", vectors[0], 10) is None


async def _search_all(base: KnowledgeBase, recipe: str) -> list[Sequence[str]]:
    base.forget_view()
    questions = [f"Where was the teacher of {name} born?" for name in NAMES]
    results = [await base.search(question, recipe=recipe, k=5) for question in questions]
    return [[passage.id for passage in found.evidence.chunks] for found in results]


@pytest.mark.parametrize(
    ("recipe", "least"),
    one_in_three([("clew", 1), ("small-to-big", 1), ("hipporag2", 0.8), ("graph-r1", 0.8)]),
)
async def test_a_search_with_estimates_finds_what_an_exact_one_finds(
    base: KnowledgeBase, recipe: str, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    await base.take(stream(_make_pages()))
    exact = await _search_all(base, recipe)
    monkeypatch.setattr(view_module, "MIN_ESTIMATED", 60)
    monkeypatch.setattr(context_module, "MAX_COMPARED", 40)
    monkeypatch.setattr(walk, "MAX_NEAR", 40)
    near = await _search_all(base, recipe)
    shares = [len({*one} & {*other}) / len(other) for one, other in zip(near, exact, strict=True)]
    assert np.mean(shares) >= least


def _make_pages() -> list[Document]:
    return [
        document(
            f"{name} {n}",
            f"{name} {n} was born in Town{(7 * n) % 31}. "
            f"{name} {n} was taught by {NAMES[(at + 1) % 7]} {(n * 3) % 14}.",
            f"{name} {n}",
        )
        for at, name in enumerate(NAMES)
        for n in range(14)
    ]


async def test_the_walk_compares_a_few_of_very_many_passages_and_sentences(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    await base.take(stream(_make_pages()))
    monkeypatch.setattr(view_module, "MIN_ESTIMATED", 60)
    monkeypatch.setattr(walk, "MAX_NEAR", 20)
    known = list[int]()
    keep = estimates.keep_exact

    def note(values: Floats, near: Ints, *given: Any) -> estimates.Estimates:
        known.append(len(near))
        return keep(values, near, *given)

    monkeypatch.setattr(estimates, "keep_exact", note)
    await _walk_from(base, NAMES[0])
    assert len(known) == 3  # passages by both vectors, and sentences
    assert 20 <= min(known) and max(known) < 60


async def test_the_best_of_all_are_found_among_those_that_are_settled(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    await base.take(stream(_make_pages()))
    monkeypatch.setattr(view_module, "MIN_ESTIMATED", 60)
    monkeypatch.setattr(walk, "MAX_NEAR", 40)
    looked_at, find = list[int](), rank.top_positions

    def find_among_all(scores: Floats, keys: Ints, k: int, among: Ints | None = None) -> Ints:
        looked_at.append(len(scores) if among is None else len(among))
        return find(scores, keys, k)

    found = [await _walk_from(base, name) for name in NAMES]
    for module in (walk, follow_up, copies, rank):
        monkeypatch.setattr(module, "top_positions", find_among_all)
    assert [await _walk_from(base, name) for name in NAMES] == found
    assert min(looked_at) < len(NAMES) * 14 / 2


async def _walk_from(base: KnowledgeBase, name: str) -> Found:
    async with base.store.snapshot() as now:
        ctx = await base.context(now, f"Where was the teacher of {name} 3 born?")
        linked = await LinkNames()(ctx, Found())
        return await walk.Walk(missing=0.5, top_k=4)(ctx, linked)


async def test_facts_of_near_subjects_are_found_whatever_their_texts_say(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [
        document(f"{name} {n}", f"{name} {n} is a singer. She lives by the sea.", f"{name} {n}")
        for name in NAMES
        for n in range(20)
    ]
    await base.take(stream(pages))
    exact = await _rank_facts(base)
    monkeypatch.setattr(view_module, "MIN_ESTIMATED", 60)
    monkeypatch.setattr(context_module, "MAX_COMPARED", 2)
    assert await _rank_facts(base) == exact
    assert len(exact) == 6


async def _rank_facts(base: KnowledgeBase) -> list[int]:
    """The facts nearest to a name, which in half of them only their subject says."""
    base.forget_view()
    async with base.store.snapshot() as now:
        ctx = await base.context(now, "Carl Moss 7")
        found = await NearFacts("question", top_k=6, subject=2.0)(ctx, Found())
        return [hit.at for hit in found.facts]


async def test_of_many_passages_with_equal_votes_few_are_compared(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [document(f"p{n}", f"Ada Lindberg saw Town{n} in {1700 + n}.") for n in range(90)]
    await base.take(stream(pages))
    exact = await _rank_by_votes(base)
    monkeypatch.setattr(view_module, "MIN_ESTIMATED", 60)
    monkeypatch.setattr(context_module, "MAX_COMPARED", 40)
    compared, read = [], View.cosines

    def note(view: View, kind: Kind, vector: Floats, at: Ints | None = None) -> Floats:
        compared.append(view.count(kind) if at is None else len(at))
        return read(view, kind, vector, at)

    monkeypatch.setattr(View, "cosines", note)
    near = await _rank_by_votes(base)
    assert len(exact) == 5 and len({*near} & {*exact}) >= 4
    assert 0 < max(compared) < 90


async def _rank_by_votes(base: KnowledgeBase) -> list[int]:
    """The best passages that mention Ada Lindberg, of which all have the same vote."""
    base.forget_view()
    async with base.store.snapshot() as now:
        ctx = await base.context(now, "When did Ada Lindberg see Town7?")
        ada = int(ctx.view.find_by_own_name(["Ada Lindberg"])[0][0])
        assert len(ctx.view.links("entity_chunk").row(ada)) == 90
        step = ChunksOf(("entities",), top_k=5)
        found = await step(ctx, Found(entities=(Hit(ada, 1.0, ""),)))
        return [hit.at for hit in found.chunks]
