import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import InputError
from clew.graph import pagerank_exact as diffuse_exact
from clew.graph import transition as terrain_file
from clew.graph.csr import build_csr
from clew.graph.pagerank import PageRankResult, approximate_pagerank, global_pagerank, pagerank
from clew.graph.pagerank_push import allocate_slots
from clew.graph.transition import TransitionGraph, build_transition_graph

NODES = 8
NODE = st.integers(0, NODES - 1)
# Self-loops, parallel edges, nodes without edges and weights of 0 all come up.
EDGES = st.lists(st.tuples(NODE, NODE, st.sampled_from([0.0, 0.5, 1.0, 3.0])), max_size=24)
SEEDS = st.dictionaries(NODE, st.sampled_from([0.5, 1.0, 4.0]), min_size=1, max_size=3)
DAMPING = st.sampled_from([0.0, 0.5, 0.85])
Edges = list[tuple[int, int, float]]


def ground_of(
    edges: Edges, directed: bool, *, nodes: int = NODES, weighted: bool = True, back: bool = True
) -> TransitionGraph:
    table = np.array(edges, np.float64).reshape(-1, 3)
    one, other = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    weight = table[:, 2].astype(np.float32) if weighted else np.ones(len(one), np.float32)
    if not directed:
        one, other = np.concatenate([one, other]), np.concatenate([other, one])
        weight = np.concatenate([weight, weight])
    links = build_csr(nodes, one, other, weight)
    return build_transition_graph(
        links, directed=directed, incoming=links.transpose(nodes) if directed and back else None
    )


def dense(ground: TransitionGraph, seeds: dict[int, float], damping: float) -> np.ndarray:
    """The same scores by solving the whole linear system."""
    count, links = len(ground), ground.links
    start = np.zeros(count)
    for node, weight in seeds.items():
        start[node] = weight / sum(seeds.values())
    step = np.zeros((count, count))
    for node in range(count):
        np.add.at(step[node], links.row(node), links.row_weights(node).astype(float))
        step[node] = step[node] / step[node].sum() if step[node].sum() > 0 else start
    return np.linalg.solve(np.eye(count) - damping * step.T, (1 - damping) * start)


def asked(
    ground: TransitionGraph, seeds: dict[int, float], k: int = 1000, **more: float
) -> PageRankResult:
    return approximate_pagerank(ground, allocate_slots(len(ground)), seeds, k, **more)  # type: ignore[arg-type]


def as_vector(found: PageRankResult, count: int) -> np.ndarray:
    scores = np.zeros(count)
    scores[found.nodes] = found.scores
    return scores


@given(EDGES, st.booleans(), st.booleans(), SEEDS, DAMPING)
def test_exact_scores_solve_the_linear_system(
    edges: Edges, directed: bool, back: bool, seeds: dict[int, float], damping: float
) -> None:
    ground = ground_of(edges, directed, back=back)
    scores = pagerank(ground, [seeds, {0: 1.0}], damping=damping, tolerance=1e-10)
    assert np.abs(scores[0] - dense(ground, seeds, damping)).sum() < 2e-10
    assert np.abs(scores[1] - dense(ground, {0: 1.0}, damping)).sum() < 2e-10


@given(EDGES, st.booleans(), st.booleans(), SEEDS, DAMPING, st.integers(0, 60), st.booleans())
def test_approximate_scores_are_within_their_bounds(
    edges: Edges,
    directed: bool,
    back: bool,
    seeds: dict[int, float],
    damping: float,
    budget: int,
    weighted: bool,
) -> None:
    ground = ground_of(edges, directed, weighted=weighted, back=back)
    exact = dense(ground, seeds, damping)
    for k in (3, 1000):
        found = asked(ground, seeds, k, damping=damping, budget=budget)
        assert np.all(np.abs(found.scores - exact[found.nodes]) <= found.bounds + 1e-8)
        assert np.abs(as_vector(found, NODES) - exact).max() <= found.bound + 1e-8
        assert found.scores.sum() <= 1 + 1e-8
        assert len(found.nodes) <= k
        assert np.all(np.diff(found.scores) <= 0)


@given(EDGES, SEEDS, st.integers(0, 60))
def test_a_background_keeps_the_bounds_of_a_directed_graph(
    edges: Edges, seeds: dict[int, float], budget: int
) -> None:
    plain = ground_of(edges, directed=True)
    ground = build_transition_graph(
        plain.links, directed=True, incoming=plain.incoming, background=global_pagerank(plain)
    )
    found = asked(ground, seeds, 4, budget=budget)
    exact = dense(ground, seeds, 0.85)
    assert np.all(np.abs(found.scores - exact[found.nodes]) <= found.bounds + 1e-6)
    assert found.scores.sum() <= 1 + 1e-6


@given(EDGES, st.booleans(), SEEDS, st.permutations(range(NODES)))
def test_renaming_nodes_renames_scores(
    edges: Edges, directed: bool, seeds: dict[int, float], new: list[int]
) -> None:
    ground = ground_of(edges, directed)
    other = ground_of([(new[a], new[b], w) for a, b, w in edges], directed)
    moved = {new[node]: weight for node, weight in seeds.items()}
    one = pagerank(ground, [seeds], tolerance=1e-12)[0]
    assert np.allclose(pagerank(other, [moved], tolerance=1e-12)[0][new], one, atol=1e-11)
    few = as_vector(asked(ground, seeds, budget=40), NODES)
    again = asked(other, moved, budget=40)
    assert np.abs(as_vector(again, NODES)[new] - few).max() <= 2 * again.bound + 1e-8


@given(EDGES, SEEDS)
def test_the_same_question_gives_the_same_bits(edges: Edges, seeds: dict[int, float]) -> None:
    ground, where = ground_of(edges, directed=False), allocate_slots(NODES)
    first = approximate_pagerank(ground, where, seeds, budget=20)
    # What another query left behind must not count.
    approximate_pagerank(ground, where, {3: 1.0}, budget=30)
    again = approximate_pagerank(ground, where, seeds, budget=20)
    assert first.nodes.tolist() == again.nodes.tolist()
    assert first.scores.tobytes() == again.scores.tobytes()


def test_places_begin_anew_when_their_numbers_run_out() -> None:
    ground, where = ring(50), allocate_slots(50)
    first = approximate_pagerank(ground, where, {0: 1.0}, budget=40)
    where.next = np.iinfo(np.int32).max - 20
    again = approximate_pagerank(ground, where, {0: 1.0}, budget=40)
    assert where.next < 1000
    assert first.scores.tobytes() == again.scores.tobytes()


def ring(count: int) -> TransitionGraph:
    return ground_of([(at, (at + 1) % count, 1.0) for at in range(count)], False, nodes=count)


def star(leaves: int) -> TransitionGraph:
    """Node 0 in the middle of `leaves`, and a tail of two more nodes that hangs on it."""
    one = np.concatenate([np.zeros(leaves + 1, np.int64), [leaves + 1]])
    other = np.arange(1, leaves + 3)
    both = build_csr(leaves + 3, np.concatenate([one, other]), np.concatenate([other, one]))
    return build_transition_graph(both)


def test_a_hub_with_a_million_leaves_costs_no_more_than_the_budget() -> None:
    leaves = 1_000_000
    ground = star(leaves)
    found = asked(ground, {leaves + 2: 1.0}, 10, budget=20_000)
    assert found.touched < 20_000
    assert set(found.nodes[:3].tolist()) == {leaves + 2, leaves + 1, 0}
    exact = pagerank(ground, [{leaves + 2: 1.0}])[0]
    assert np.all(np.abs(found.scores - exact[found.nodes]) <= found.bounds + 1e-8)
    top = asked(ground, {0: 1.0}, 10, budget=20_000)
    assert top.nodes[0] == 0


def test_the_best_thousand_are_found_without_looking_at_everything() -> None:
    random = np.random.default_rng(0)
    ends = (random.random((2, 300_000)) ** 3 * 100_000).astype(np.int64)
    links = build_csr(100_000, np.concatenate(ends), np.concatenate(ends[::-1]))
    ground = build_transition_graph(links)
    seeds = {70_000: 1.0, 91_234: 2.0}
    found = asked(ground, seeds, budget=60_000)
    exact = np.argsort(-pagerank(ground, [seeds])[0])[:1000]
    assert len(np.intersect1d(found.nodes, exact)) >= 950
    assert found.touched < 50_000


def test_long_rows_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pagerank(star(500), [{0: 1.0}, {7: 1.0}])
    monkeypatch.setattr(diffuse_exact, "EDGES", 64)
    monkeypatch.setattr(terrain_file.row_blocks, "__defaults__", (64,))
    monkeypatch.setattr(terrain_file, "ROWS", 100)
    monkeypatch.setattr(diffuse_exact, "ROWS", 100)
    assert np.allclose(pagerank(star(500), [{0: 1.0}, {7: 1.0}]), whole, atol=1e-9)


def test_a_seed_without_edges_keeps_everything() -> None:
    ground = ground_of([(1, 2, 1.0)], directed=False)
    assert pagerank(ground, [{0: 1.0}])[0].tolist() == [1.0] + [0.0] * 7
    for budget in (1, 1000):
        found = asked(ground, {0: 1.0}, budget=budget)
        assert (found.nodes[0], found.scores[0]) == (0, pytest.approx(1.0))


def test_threads_may_share_places() -> None:
    ground, where = ring(3000), allocate_slots(3000)
    expected = asked(ground, {5: 1.0}, budget=500).scores.tobytes()
    wrong: list[bytes] = []

    def ask() -> None:
        for _ in range(20):
            scores = approximate_pagerank(ground, where, {5: 1.0}, budget=500).scores.tobytes()
            wrong.extend([scores] * (scores != expected))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("seeds", "more", "said"),
    [
        ({}, {}, "seeds must be nodes"),
        ({99: 1.0}, {}, "seeds must be nodes"),
        ({-1: 1.0}, {}, "seeds must be nodes"),
        ({1: -1.0}, {}, "seed weights must be"),
        ({1: float("nan")}, {}, "seed weights must be"),
        ({1: 0.0}, {}, "one above 0"),
        ({1: 1.0}, {"damping": 1.0}, "damping is 1.0"),
    ],
)
def test_wrong_questions_are_named(
    seeds: dict[int, float], more: dict[str, float], said: str
) -> None:
    ground = ring(9)
    with pytest.raises(InputError, match=said):
        asked(ground, seeds, **more)
    with pytest.raises(InputError, match=said):
        pagerank(ground, [seeds], **more)


def test_an_empty_graph_has_no_seeds() -> None:
    ground = ground_of([], directed=False, nodes=0)
    assert pagerank(ground, []).shape == (0, 0)
    assert global_pagerank(ground).shape == (0,)
    with pytest.raises(InputError, match="seeds must be nodes"):
        asked(ground, {0: 1.0})


def test_wrong_weights_and_backgrounds_are_named() -> None:
    with pytest.raises(InputError, match="edge weights must be"):
        ground_of([(0, 1, -1.0)], directed=False)
    with pytest.raises(InputError, match="edge weights must be"):
        ground_of([(0, 1, float("inf"))], directed=False)
    with pytest.raises(InputError, match="3 scores for 9 nodes"):
        build_transition_graph(ring(9).links, directed=True, background=np.zeros(3))
