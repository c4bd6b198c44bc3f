import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import ConfigError
from clew.graph.cluster.leiden import leiden_communities
from clew.graph.cluster.relations import build_entity_links
from clew.graph.csr import build_csr

PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=80)


def links(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = np.array(pairs, np.int64).reshape(-1, 2)
    return build_entity_links(
        build_csr(len(rows), np.repeat(np.arange(len(rows)), 2), rows.ravel())
    )


@given(PAIRS, st.integers(2, 12))
def test_every_entity_is_in_one_community_a_level(pairs: list[tuple[int, int]], size: int) -> None:
    pytest.importorskip("graspologic_native")
    tree = leiden_communities(31, links(pairs), max_size=size)
    assert sorted(set(tree.leaf.tolist()) | set(tree.parent[tree.parent >= 0].tolist())) == list(
        range(len(tree.parent))
    )
    for level in range(tree.depth):
        labels = tree.labels_at(level)
        assert (labels >= 0).all()
        lower = tree.level[labels] == level
        if level:
            assert (tree.parent[labels[lower]] == tree.labels_at(level - 1)[lower]).all()
    assert tree.leaf.tolist() == leiden_communities(31, links(pairs), max_size=size).leaf.tolist()


def test_two_cliques_are_two_communities() -> None:
    pytest.importorskip("graspologic_native")
    pairs = [(a, b) for a in range(6) for b in range(a)]
    pairs += [(a + 6, b + 6) for a, b in pairs] + [(0, 6)]
    tree = leiden_communities(13, links(pairs))
    assert len(set(tree.leaf[:6].tolist())) == 1
    assert len(set(tree.leaf.tolist())) == 3
    assert tree.leaf[12] not in tree.leaf[:12]


@pytest.mark.parametrize("leaves", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_star_of_many_leaves_ends(leaves: int) -> None:
    pytest.importorskip("graspologic_native")
    tree = leiden_communities(leaves + 1, links([(0, at) for at in range(1, leaves + 1)]))
    assert (tree.leaf >= 0).all()


def test_nothing_to_link() -> None:
    assert leiden_communities(0, links([])).depth == 0
    assert leiden_communities(3, links([(1, 1)])).leaf.tolist() == [0, 1, 2]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graspologic_native", None)
    with pytest.raises(ConfigError, match=r"pip install .*\[tree\]"):
        leiden_communities(2, links([(0, 1)]))
