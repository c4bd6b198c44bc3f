"""Hierarchical Leiden, the baseline partitioner, through graspologic-native."""

import numpy as np

from clew.errors import ConfigError
from clew.graph.cluster.hierarchy import Hierarchy
from clew.graph.csr import Floats, Ints
from clew.version import pip_install_command


def leiden_communities(
    entities: int,
    links: tuple[Ints, Ints, Floats],
    max_size: int = 100,
    resolution: float = 1.0,
    seed: int = 42,
) -> Hierarchy:
    """Find communities by modularity; those above `max_size` are split again.

    `links` are (one, other, weight) as from `build_entity_links`. An entity without links is a
    community of its own.
    """
    one, other, weight = links
    leaf, parents, levels = np.full(entities, -1), np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(one):
        leaf, parents, levels = _run_native(entities, links, max_size, resolution, seed)
    alone = np.flatnonzero(leaf < 0)
    leaf[alone] = len(parents) + np.arange(len(alone))
    return Hierarchy(
        leaf,
        np.concatenate([parents, np.full(len(alone), -1)]),
        np.concatenate([levels, np.zeros(len(alone), np.int64)]),
    )


def _run_native(
    entities: int, links: tuple[Ints, Ints, Floats], max_size: int, resolution: float, seed: int
) -> tuple[Ints, Ints, Ints]:
    """Return the leaf community per entity, and parent and level per community."""
    try:
        import graspologic_native
    except ImportError as missing:
        command = pip_install_command("tree")
        raise ConfigError(f"Leiden communities need graspologic-native: {command}") from missing
    one, other, weight = (part.tolist() for part in links)
    edges = [(str(a), str(b), w) for a, b, w in zip(one, other, weight, strict=True)]
    found = graspologic_native.hierarchical_leiden(
        edges,
        starting_communities=None,
        resolution=resolution,
        randomness=0.001,
        iterations=1,
        use_modularity=True,
        max_cluster_size=max_size,
        seed=seed,
    )
    rows = np.array(
        [
            (
                int(at.node),
                at.cluster,
                at.level,
                -1 if at.parent_cluster is None else at.parent_cluster,
            )
            for at in found
        ],
        np.int64,
    )
    rows = rows[np.argsort(rows[:, 2], kind="stable")]
    # Renumber: parents first, without gaps.
    theirs, first = np.unique(rows[:, 1], return_index=True)
    ours = np.full(int(theirs.max()) + 2, -1)
    ours[theirs[np.argsort(first)]] = np.arange(len(theirs))
    shown = np.sort(first)
    leaf = np.full(entities, -1)
    leaf[rows[:, 0]] = ours[rows[:, 1]]  # deeper rows come later and win
    return leaf, ours[rows[shown, 3]], rows[shown, 2]
