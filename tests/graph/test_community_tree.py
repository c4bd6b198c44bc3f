"""Trees as arrays: marks, joining, and what a new generation keeps of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from clew.graph.community_tree import (
    TREES,
    CommunityForest,
    assign_marks,
    carry_over_trees,
    empty_forest,
    forest_from_arrays,
    forest_to_arrays,
    merge_forests,
    remove_tree,
    select_tree,
)
from clew.graph.csr import build_csr


def forest(tree: str, parent: list[int], homes: list[int], chunks: int = 3) -> CommunityForest:
    """Communities with these parents; entity i is in community homes[i] with score i + 1."""
    parents = np.array(parent, np.int64)
    level = np.zeros(len(parent), np.int64)
    for at, up in enumerate(parent):
        level[at] = 0 if up < 0 else level[up] + 1
    inner = np.flatnonzero(parents >= 0)
    none = np.zeros(0, np.int64)
    who = np.flatnonzero(np.array(homes) >= 0)
    held = build_csr(len(parent), np.array(homes)[who], who, (who + 1).astype(np.float32))
    return CommunityForest(
        np.full(len(parent), TREES.index(tree)),
        level,
        parents,
        np.array([who[np.array(homes)[who] == c].max(initial=-1) for c in range(len(parent))]),
        np.zeros((len(parent), 2), np.uint64),
        np.arange(len(parent)) + 100,
        build_csr(len(parent), parents[inner], inner),
        held,
        build_csr(len(parent), none, none),
        np.zeros(chunks, np.uint64),
        np.ones((len(parent), 2), np.float32),
    )


def codes(count: int) -> NDArray[np.uint64]:
    return np.arange(count).astype(np.uint64) * 7 + 1


def arrays(keys: list[int], names: Mapping[int, int] | None = None) -> dict[str, Any]:
    """Entities with these keys, named after them."""
    place = np.arange(len(keys))
    return {
        "entity_keys": np.array(keys, np.int64),
        "chunk_keys": np.array([1, 2, 3], np.int64),
        "name_weights": np.full(len(keys), 2, np.float32),
        "name_entities": place.astype(np.int32),
        "name_hashes": np.array(keys, np.uint64),
    }


TWO_LEVELS = ([-1, -1, 0, 0], [2, 2, 3, 1, 1])


def test_sizes_and_members_go_all_the_way_down() -> None:
    one = forest("dual", *TWO_LEVELS)
    assert one.sizes().tolist() == [3, 2, 2, 1]
    members, scores = one.members(0)
    assert members.tolist() == [2, 1, 0]
    assert scores.tolist() == [3.0, 2.0, 1.0]
    assert one.leaf_communities("dual", 5).tolist() == [2, 2, 3, 1, 1]
    assert one.leaf_communities("leiden", 5).tolist() == [-1] * 5
    assert one.at_level("dual", 0).tolist() == [0, 1]
    assert one.at_level("dual", 1).tolist() == [1, 2, 3]  # community 1 has nothing below it


def test_equal_members_have_equal_marks_however_they_are_split() -> None:
    one = assign_marks(forest("dual", *TWO_LEVELS), codes(5))
    flat = assign_marks(forest("leiden", [-1, -1], [0, 0, 0, 1, 1]), codes(5))
    assert one.marks[0].tolist() == flat.marks[0].tolist()
    assert one.marks[1].tolist() == flat.marks[1].tolist()
    assert len({tuple(mark) for mark in one.marks.tolist()}) == 4


def test_a_forest_survives_being_written_joined_and_taken_apart() -> None:
    one, two = forest("dual", *TWO_LEVELS), forest("leiden", [-1, 0], [1, 1, 1, 1, 0])
    both = forest_from_arrays(forest_to_arrays(merge_forests([two, one])))
    assert both.tree_names() == ("dual", "leiden")
    for name, old in (("dual", one), ("leiden", two)):
        back = select_tree(both, name)
        assert back.parent.tolist() == old.parent.tolist()
        assert back.leaf_communities(name, 5).tolist() == old.leaf_communities(name, 5).tolist()
        assert back.rows.tolist() == old.rows.tolist()
        assert len(remove_tree(both, name)) == len(both) - len(old)
    assert len(merge_forests([empty_forest(3), one])) == len(one)
    assert len(forest_from_arrays({})) == 0


def test_what_is_gone_leaves_and_what_stays_keeps_its_mark() -> None:
    before = arrays([10, 20, 30, 40, 50])
    held = assign_marks(forest("dual", *TWO_LEVELS), before["name_hashes"])
    after = arrays([10, 20, 25, 40, 50])  # 30 is gone, 25 is new
    now = forest_from_arrays(carry_over_trees(before | forest_to_arrays(held), after))
    # Community 3 held nothing but entity 30.
    assert now.parent.tolist() == [-1, -1, 0]
    assert now.leaf_communities("dual", 5).tolist() == [2, 2, -1, 1, 1]
    assert now.marks[1].tolist() == held.marks[1].tolist()
    assert now.marks[2].tolist() == held.marks[2].tolist()
    assert now.marks[0].tolist() != held.marks[0].tolist()
    assert now.centre[1] == 4


def test_nothing_is_carried_where_there_is_no_tree() -> None:
    assert carry_over_trees({}, arrays([1, 2])) == {}
    assert carry_over_trees(arrays([1]), arrays([1, 2])) == {}


HOMES = st.lists(st.integers(-1, 5), min_size=1, max_size=30)


@given(HOMES, st.sets(st.integers(0, 29)), st.integers(0, 5))
def test_every_entity_that_stays_keeps_its_community(
    homes: list[int], gone: set[int], new: int
) -> None:
    parent = [-1, -1, 0, 0, 1, 2]
    keys = list(range(1, len(homes) + 1))
    before = arrays(keys)
    held = assign_marks(forest("dual", parent, homes), before["name_hashes"])
    left = [key for key in keys if key - 1 not in gone]
    after = arrays(left + [100 + at for at in range(new)])
    found = carry_over_trees(before | forest_to_arrays(held), after)
    now = forest_from_arrays(found) if found else empty_forest()
    old_home = {key: home for key, home in zip(keys, homes, strict=True) if key in left}
    place = now.leaf_communities("dual", len(after["entity_keys"]))
    groups: dict[int, set[int]] = {}
    for at, key in enumerate(left):
        assert (place[at] >= 0) == (old_home[key] >= 0)
        if place[at] >= 0:
            groups.setdefault(int(place[at]), set()).add(old_home[key])
    assert all(len(olds) == 1 for olds in groups.values())
    assert (place[len(left) :] < 0).all()
    assert (now.sizes() > 0).all()
    assert (now.parent < np.arange(len(now))).all()
