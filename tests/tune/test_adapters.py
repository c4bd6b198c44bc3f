"""Adapters: what learning promises, and that what was learnt comes back as it was."""

import numpy as np
import pytest

from clew.adapters import (
    PathAdapter,
    QueryAdapter,
    Tuning,
    adapt_embedder,
    attach_tuning,
    delete_tuning,
    get_tuning,
    load_tuning,
    save_tuning,
    step_slots,
)
from clew.errors import StoreError
from clew.index.view import View
from clew.store.memory import MemoryStore
from clew.testing.fakes import HashEmbed
from clew.tune.fit import (
    PassageExample,
    PathExample,
    PathFitOptions,
    QueryFitOptions,
    fit_hop_classifier,
    fit_path_adapter,
    fit_query_adapter,
)

DIM = 16


def units(count: int, seed: int) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_slots_tell_place_from_the_end_and_direction() -> None:
    codes = np.array([[4, 5, -1], [0, 1, 2]])
    assert step_slots(codes).tolist() == [[2, 1, -1], [4, 3, 0]]


def worlds(count: int, seed: int) -> tuple[list[PathExample], np.ndarray]:
    """Questions of three kinds, each kind meaning another relation, which no observation shows."""
    labels, kinds = units(3, 1), units(3, 2)
    noise = np.random.default_rng(seed)
    examples = []
    for _ in range(count):
        kind = int(noise.integers(3))
        asked = kinds[kind] + 0.1 * noise.standard_normal(DIM)
        codes = np.array([[0, -1], [2, -1], [4, -1], [2 * kind, 2 * kind + 1]])
        right = np.arange(4) == kind
        seen = np.array([0.0, 0.0, 0.0, 1.0], np.float32)
        examples.append(PathExample(asked.astype(np.float32), codes, seen, right))
    return examples, labels


def first_right(adapter: PathAdapter, one: PathExample, labels: np.ndarray) -> bool:
    scores = adapter.score_paths(one.question, labels, one.codes, one.scores)
    return bool(one.is_right[scores.argmax()])


def test_paths_are_learnt_from_questions_alone_and_hold_for_new_ones() -> None:
    examples, labels = worlds(200, 3)
    fresh, _ = worlds(100, 4)
    adapter, fit = fit_path_adapter(examples, labels, PathFitOptions(rank=4, epochs=60))
    assert fit > -0.2
    assert np.mean([first_right(adapter, one, labels) for one in fresh]) > 0.95
    again, _ = fit_path_adapter(examples, labels, PathFitOptions(rank=4, epochs=60))
    assert np.array_equal(adapter.question, again.question)


def test_an_example_without_a_right_path_is_left_out() -> None:
    examples, labels = worlds(20, 5)
    lost = PathExample(
        examples[0].question, examples[0].codes, examples[0].scores, np.zeros(4, bool)
    )
    adapter, fit = fit_path_adapter([*examples, lost], labels, PathFitOptions(4, 5))
    assert np.isfinite(fit) and np.isfinite(adapter.question).all()


def test_hops_are_learnt() -> None:
    kinds, noise = units(3, 6), np.random.default_rng(7)
    hops = noise.integers(1, 4, 300)
    asked = (kinds[hops - 1] + 0.1 * noise.standard_normal((300, DIM))).astype(np.float32)
    choice = fit_hop_classifier(asked[:200], hops[:200])
    told = [choice.predict(one) for one in asked[200:]]
    assert np.mean(np.array(told) == hops[200:]) > 0.95


def test_questions_are_turned_towards_their_passages() -> None:
    turn, asked, noise = units(DIM, 8), units(120, 9), np.random.default_rng(10)
    examples = []
    for one in asked:
        passages = np.vstack([one @ turn, units(8, int(noise.integers(1000)))])
        passages /= np.linalg.norm(passages, axis=1, keepdims=True)
        examples.append(PassageExample(one, passages.astype(np.float32), np.arange(9) == 0))
    before = np.mean(
        [one.is_right[(one.passages @ one.question).argmax()] for one in examples[90:]]
    )
    adapter, _ = fit_query_adapter(
        examples[:90], QueryFitOptions(rank=DIM, epochs=300, learning_rate=0.02)
    )
    after = np.mean(
        [o.is_right[(o.passages @ adapter(o.question)).argmax()] for o in examples[90:]]
    )
    assert after > before + 0.3
    assert np.allclose(np.linalg.norm(adapter(asked), axis=1), 1, atol=1e-5)


async def test_what_was_learnt_comes_back_and_only_for_its_embedder() -> None:
    store = MemoryStore()
    examples, labels = worlds(20, 11)
    paths, _ = fit_path_adapter(examples, labels, PathFitOptions(4, 3))
    queries = QueryAdapter(units(4, 1).T, units(4, 2))
    tuning = Tuning(paths=paths, queries=queries, helped_recipes=("naive",))
    assert await save_tuning(store, "mine", tuning) > 100
    back = await load_tuning(store, "mine")
    assert back.paths is not None and back.queries is not None and back.hops is None
    assert np.allclose(back.paths.question, paths.question, atol=1e-3)
    assert back.helped_recipes == ("naive",)
    assert (await load_tuning(store, "other")).paths is None
    await delete_tuning(store, "mine")
    assert (await load_tuning(store, "mine")).paths is None


@pytest.mark.parametrize("text", ["4 []\nnot base64 of anything", "4 nothing", "4 []"])
async def test_what_cannot_be_read_is_one_clear_error(text: str) -> None:
    store = MemoryStore()
    await store.set("tuning", {"mine": text})
    with pytest.raises(StoreError, match="clew tune --forget"):
        await load_tuning(store, "mine")


async def test_only_questions_are_turned() -> None:
    store, embed, view = MemoryStore(), HashEmbed(dim=DIM), View({}, {})
    assert (
        adapt_embedder(view, embed, "naive") is embed
        and adapt_embedder(view, None, "naive") is None
    )
    queries = QueryAdapter(np.ones((DIM, 2), np.float32), np.ones((2, DIM), np.float32))
    await save_tuning(store, embed.name, Tuning(queries=queries, helped_recipes=("naive",)))
    await attach_tuning(view, store, embed)
    assert get_tuning(view).queries is not None
    assert adapt_embedder(view, embed, "clew") is embed  # it was not found to help there
    turned = adapt_embedder(view, embed, "naive")
    assert turned is not None and (turned.name, turned.dim) == (embed.name, DIM)
    plain = await embed(["a question"])
    assert np.array_equal(await turned(["a question"], role="passage"), plain)
    assert not np.allclose(await turned(["a question"], role="query"), plain)
    assert len(await turned([], role="query")) == 0
