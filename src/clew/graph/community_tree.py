"""Community trees as arrays: parents, levels and members, also across generations.

Communities of all trees and levels are numbered together, within a tree parents before children.
Level 0 is the coarsest. Members belong to leaf communities only, by position and with a score.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, Floats, Ints, build_csr

Codes = NDArray[np.uint64]
# A tree is stored as its index here: append, never reorder.
TREES = ("dual", "paper", "released", "leiden", "raptor", "e2")
FIRST_CHUNK_TREE = TREES.index("raptor")  # from here on, members are chunks
LAYOUT = 2
_PREFIX = "tree_"


@dataclass(frozen=True, slots=True)
class CommunityForest:
    """Communities by number; `below` holds the children, weighted by membership."""

    tree: Ints
    level: Ints
    parent: Ints  # the strongest parent where there are several; -1 at the top
    centre: Ints  # position of the most central member; -1 where it has no member of its own
    marks: Codes  # n × 2: 128-bit hash of its members; equal members, equal marks
    rows: Ints  # row of its summary's vector; -1 for none
    below: Csr
    entities: Csr
    chunks: Csr
    codes: Codes  # per chunk, its content hash; 0 where it is in no tree
    middles: Floats  # n × width: the mean of its members' vectors; zeros where not needed

    def __len__(self) -> int:
        """Return the number of communities."""
        return len(self.tree)

    def communities(self, tree: str) -> Ints:
        """Return the communities of one tree."""
        return np.flatnonzero(self.tree == TREES.index(tree))

    def tree_names(self) -> tuple[str, ...]:
        """Return the names of the trees present."""
        present = set(self.tree.tolist())
        return tuple(name for at, name in enumerate(TREES) if at in present)

    def sizes(self) -> Ints:
        """Return the member count of each community, descendants included."""
        sizes: Ints = self.entities.degrees() + self.chunks.degrees()
        for upper, lower in iterate_levels_up(self.level, self.below):
            np.add.at(sizes, upper, sizes[lower])
        return sizes

    def leaf_communities(self, tree: str, count: int) -> Ints:
        """Return for each of `count` entities its leaf community in a tree; -1 for none."""
        found = np.full(count, -1)
        community = self.entities.row_numbers()
        mine = self.tree[community] == TREES.index(tree)
        found[self.entities.columns[mine]] = community[mine]
        return found

    def descendants(self, communities: Ints) -> Ints:
        """Return these communities and all below them, each once, ascending."""
        found = level = np.unique(communities)
        while len(level):
            _, edges = self.below.edges_of(level)
            level = np.unique(self.below.columns[edges].astype(np.int64))
            found = np.union1d(found, level)
        return found

    def members(self, community: int) -> tuple[Ints, Floats]:
        """Return the entities in a community with their scores, highest first."""
        return self._collect_members(self.entities, community)

    def passages(self, community: int) -> tuple[Ints, Floats]:
        """Return the chunks in a community with their scores, highest first."""
        return self._collect_members(self.chunks, community)

    def _collect_members(self, links: Csr, community: int) -> tuple[Ints, Floats]:
        _, edges = links.edges_of(self.descendants(np.array([community])))
        who, weight = links.columns[edges].astype(np.int64), links.weights[edges]
        order = np.lexsort((who, -weight))
        kept, first = np.unique(who[order], return_index=True)
        order = order[np.sort(first)]
        return who[order], weight[order]

    def at_level(self, tree: str, level: int) -> Ints:
        """Return a tree's communities on one level, and leaves above that level."""
        here = self.communities(tree)
        ends = self.below.degrees()[here] == 0
        found: Ints = here[(self.level[here] == level) | (ends & (self.level[here] < level))]
        return found


def empty_forest(chunks: int = 0) -> CommunityForest:
    """Return a forest without trees."""
    none = np.zeros(0, np.int64)
    marks = np.zeros((0, 2), np.uint64)
    links = build_csr(0, none, none)
    codes = np.zeros(chunks, np.uint64)
    middles = np.zeros((0, 0), np.float32)
    return CommunityForest(none, none, none, none, marks, none, links, links, links, codes, middles)


def iterate_levels_up(level: Ints, below: Csr) -> Iterator[tuple[Ints, Ints]]:
    """Yield (parent, child) pairs level by level, the deepest first."""
    upper = below.row_numbers()
    lower = below.columns.astype(np.int64)
    for at in range(int(level.max(initial=0)), 0, -1):
        here = level[lower] == at
        yield upper[here], lower[here]


def mix_bits(codes: Codes, lane: int) -> Codes:
    """Mix bits so that sums of hashes identify sets (the finaliser of SplitMix64)."""
    z = codes + np.uint64((0x9E3779B97F4A7C15 * (lane + 1)) % (1 << 64))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Codes = z ^ (z >> np.uint64(31))
    return found


def assign_marks(forest: CommunityForest, entity_codes: Codes) -> CommunityForest:
    """Compute the mark (member hash) of every community."""
    marks = np.zeros((len(forest), 2), np.uint64)
    for lane in range(2):
        for links, codes in ((forest.entities, entity_codes), (forest.chunks, forest.codes)):
            community = links.row_numbers()
            np.add.at(marks[:, lane], community, mix_bits(codes[links.columns], lane))
    for upper, lower in iterate_levels_up(forest.level, forest.below):
        np.add.at(marks, upper, marks[lower])
    return replace(forest, marks=marks)


def format_marks(forest: CommunityForest, communities: Ints) -> list[str]:
    """Format marks as hexadecimal text."""
    return [f"{int(a):016x}{int(b):016x}" for a, b in forest.marks[communities]]


def merge_forests(forests: Sequence[CommunityForest]) -> CommunityForest:
    """Merge forests over the same entities and chunks, in the order of `TREES`."""
    parts = sorted((f for f in forests if len(f)), key=lambda one: int(one.tree[0]))
    if not parts:
        return forests[0]
    shifts = np.cumsum([0, *map(len, parts)])

    def links(name: str) -> Csr:
        many = [getattr(part, name) for part in parts]
        rows = [m.row_numbers() + s for m, s in zip(many, shifts, strict=False)]
        moved = [
            m.columns.astype(np.int64) + (s if name == "below" else 0)
            for m, s in zip(many, shifts, strict=False)
        ]
        weights = np.concatenate([m.weights for m in many])
        return build_csr(int(shifts[-1]), np.concatenate(rows), np.concatenate(moved), weights)

    def plain(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    parents = [
        np.where(part.parent >= 0, part.parent + shift, -1)
        for part, shift in zip(parts, shifts, strict=False)
    ]
    return CommunityForest(
        plain("tree"),
        plain("level"),
        np.concatenate(parents),
        plain("centre"),
        plain("marks"),
        plain("rows"),
        links("below"),
        links("entities"),
        links("chunks"),
        np.maximum.reduce([part.codes for part in parts]),
        _stack_padded([part.middles for part in parts]),
    )


def _stack_padded(many: list[Floats]) -> Floats:
    """Stack matrices by row; narrower ones (they hold nothing) are padded."""
    width = max(one.shape[1] for one in many)
    return np.concatenate([np.pad(one, ((0, 0), (0, width - one.shape[1]))) for one in many])


def select_communities(forest: CommunityForest, communities: Ints) -> CommunityForest:
    """Select some communities, renumbered in their order; links to others are dropped."""
    place = np.full(len(forest) + 1, -1)
    place[communities] = np.arange(len(communities))

    def links(name: str) -> Csr:
        held: Csr = getattr(forest, name)
        row, edges = held.edges_of(communities)
        to = held.columns[edges].astype(np.int64)
        if name == "below":
            to = place[to]
        return build_csr(len(communities), row[to >= 0], to[to >= 0], held.weights[edges][to >= 0])

    return CommunityForest(
        forest.tree[communities],
        forest.level[communities],
        place[forest.parent[communities]],
        forest.centre[communities],
        forest.marks[communities],
        forest.rows[communities],
        links("below"),
        links("entities"),
        links("chunks"),
        forest.codes,
        forest.middles[communities],
    )


def remove_tree(forest: CommunityForest, tree: str) -> CommunityForest:
    """Return the forest without one tree."""
    return select_communities(forest, np.flatnonzero(forest.tree != TREES.index(tree)))


def select_tree(forest: CommunityForest, tree: str) -> CommunityForest:
    """Return one tree of the forest."""
    return select_communities(forest, forest.communities(tree))


def forest_to_arrays(forest: CommunityForest) -> dict[str, NDArray[Any]]:
    """Convert to named arrays for a generation's folder."""
    found: dict[str, NDArray[Any]] = {
        f"{_PREFIX}layout": np.array([LAYOUT]),
        "community_keys": np.arange(len(forest)),
        "community_rows": forest.rows,
    }
    for field in fields(forest):
        value = getattr(forest, field.name)
        if isinstance(value, Csr):
            for part in ("starts", "columns", "weights"):
                found[f"{_PREFIX}{field.name}_{part}"] = getattr(value, part)
        elif field.name != "rows":
            found[_PREFIX + field.name] = value
    return found


def forest_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> CommunityForest:
    """Read what `forest_to_arrays` wrote; empty where there is none or the layout differs."""
    held = arrays.get(f"{_PREFIX}layout")
    if held is None or int(held[0]) != LAYOUT:
        return empty_forest(len(arrays.get("chunk_keys", ())))

    def links(name: str) -> Csr:
        parts = ("starts", "columns", "weights")
        return Csr(*(arrays[f"{_PREFIX}{name}_{part}"] for part in parts))

    return CommunityForest(
        arrays[f"{_PREFIX}tree"],
        arrays[f"{_PREFIX}level"],
        arrays[f"{_PREFIX}parent"],
        arrays[f"{_PREFIX}centre"],
        arrays[f"{_PREFIX}marks"],
        arrays["community_rows"],
        links("below"),
        links("entities"),
        links("chunks"),
        arrays[f"{_PREFIX}codes"],
        arrays[f"{_PREFIX}middles"],
    )


def has_whole_trees(arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Tell whether all arrays of a forest are there, for some may have been lost to damage."""
    needed = {"entity_keys", "chunk_keys", *forest_to_arrays(empty_forest())}
    return needed <= arrays.keys()


def carry_over_trees(
    previous: Mapping[str, NDArray[Any]], arrays: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Map the previous generation's trees to this generation's elements.

    Removed elements leave their communities and empty communities are dropped. A community whose
    members changed has a new mark and so no summary; its vector stays as an estimate until it is
    described again. New elements are in no community yet.
    """
    old = forest_from_arrays(previous)
    if not len(old):
        return {}
    entity = _map_positions(previous["entity_keys"], arrays["entity_keys"])
    chunk = _map_positions(previous["chunk_keys"], arrays["chunk_keys"])
    codes = np.zeros(len(arrays["chunk_keys"]), np.uint64)
    codes[chunk[chunk >= 0]] = old.codes[chunk >= 0]
    members, passages = _remap_members(old.entities, entity), _remap_members(old.chunks, chunk)
    centre = old.centre.copy()
    for over, moved in (
        (old.tree < FIRST_CHUNK_TREE, entity),
        (old.tree >= FIRST_CHUNK_TREE, chunk),
    ):
        known = over & (centre >= 0)
        centre[known] = moved[centre[known]]
    forest = replace(old, entities=members, chunks=passages, codes=codes, centre=centre)
    forest = select_communities(forest, np.flatnonzero(forest.sizes() > 0))
    return forest_to_arrays(assign_marks(_reassign_centres(forest), entity_name_hashes(arrays)))


def entity_name_hashes(arrays: Mapping[str, NDArray[Any]]) -> Codes:
    """Return the hash of each entity's own name."""
    found = np.zeros(len(arrays["entity_keys"]), np.uint64)
    own = arrays["name_weights"] > 1
    found[arrays["name_entities"][own]] = arrays["name_hashes"][own]
    return found


def _map_positions(before: Ints, after: Ints) -> Ints:
    """Return the position in `after` of each key of `before`; -1 for removed ones."""
    if not len(after):
        return np.full(len(before), -1)
    at = np.minimum(np.searchsorted(after, before), len(after) - 1)
    return np.where(after[at] == before, at, -1)


def _remap_members(links: Csr, position: Ints) -> Csr:
    """Remap an incidence to the members' new positions, without removed ones."""
    row = links.row_numbers()
    to = position[links.columns] if len(links.columns) else np.zeros(0, np.int64)
    present = to >= 0
    return build_csr(len(links), row[present], to[present], links.weights[present])


def _find_strongest(links: Csr) -> Ints:
    """Return the member with the highest score of each row; -1 where there is none."""
    row = links.row_numbers()
    order = np.lexsort((links.columns, -links.weights, row))
    found = np.full(len(links), -1)
    rows, first = np.unique(row[order], return_index=True)
    found[rows] = links.columns[order[first]]
    return found


def _reassign_centres(forest: CommunityForest) -> CommunityForest:
    """Replace removed centres by the strongest member, or else by the first child's centre."""
    own = np.maximum(_find_strongest(forest.entities), _find_strongest(forest.chunks))
    centre = np.where(forest.centre < 0, own, forest.centre)
    for upper, lower in iterate_levels_up(forest.level, forest.below):
        missing = centre[upper] < 0
        centre[upper[missing][::-1]] = centre[lower[missing][::-1]]
    return replace(forest, centre=centre)
