"""A hub with a million neighbours: every graph module does bounded work, and none hangs."""

from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np
import pytest

from clew.context import Context
from clew.graph.csr import build_csr
from clew.index.view import View
from clew.retrieve.paths.beam import BeamPaths
from clew.retrieve.paths.ranked import RankAnswers, RankedPaths, StructuralPaths
from clew.retrieve.step import Step
from clew.retrieve.subgraph.extract import (
    AdaptiveSubgraph,
    EgoSubgraph,
    PprSubgraph,
    WalkedSubgraph,
)
from clew.retrieve.subgraph.prune import Prune
from clew.testing.fakes import HashEmbed
from clew.types import HEAD, TAIL, Entity, EntityLabel, Fact, FactText, Found, Hit
from conftest import one_in_three

COUNT = 1_000_000
RARE = 777_777  # the one fact of the hub's other relation
ROLES = {HEAD: 2.0, TAIL: 3.0}
RELATIONS = ("starred_actors", "directed_by")


class Leaves:
    """A snapshot whose elements are made when asked for."""

    async def entities(self, keys: Sequence[int]) -> dict[int, Entity]:
        return {key: Entity(str(key), "Hub" if key == 0 else f"Leaf {key}") for key in keys}

    async def entity_labels(self, keys: Sequence[int]) -> dict[int, EntityLabel]:
        found = await self.entities(keys)
        return {key: EntityLabel(one.id, one.name) for key, one in found.items()}

    async def facts(self, keys: Sequence[int]) -> dict[int, Fact]:
        return {key: _fact(key) for key in keys}

    async def fact_texts(self, keys: Sequence[int]) -> dict[int, FactText]:
        facts = await self.facts(keys)
        return {key: FactText(one.id, one.text, one.relation) for key, one in facts.items()}

    async def relations(self, keys: Sequence[int]) -> dict[int, str]:
        return {key: _fact(key).relation for key in keys}


def _fact(key: int) -> Fact:
    relation = RELATIONS[key == RARE]
    return Fact(str(key), f"Hub {relation} Leaf {key + 1}", (), relation)


@pytest.fixture(scope="module")
def hub() -> View:
    fact = np.arange(COUNT)
    head, tail = np.zeros(COUNT, np.int64), np.arange(1, COUNT + 1)
    roles = np.repeat(np.array([ROLES[HEAD], ROLES[TAIL]], np.float32), COUNT)
    entity, which = np.concatenate([head, tail]), np.concatenate([fact, fact])
    links = {
        "entity_fact": build_csr(COUNT + 1, entity, which, roles),
        "fact_entity": build_csr(COUNT, which, entity, roles),
    }
    empty = build_csr(1, *(np.zeros(0, np.int64),) * 2, np.zeros(0, np.float32))
    for name in ("chunk_entity", "entity_chunk", "fact_chunk", "chunk_fact", "owners"):
        links[name] = empty
    labels = np.zeros(COUNT, np.int32)
    labels[RARE] = 1
    arrays: dict[str, Any] = {
        "chunk_keys": np.zeros(0, np.int64),
        "entity_keys": np.arange(COUNT + 1),
        "fact_keys": np.arange(COUNT),
        "fact_relation": labels,
        "relation_fact": np.array([0, RARE]),
    }
    for name, one in links.items():
        parts = zip(
            ("starts", "columns", "weights"), (one.starts, one.columns, one.weights), strict=True
        )
        arrays |= {f"{name}_{part}": array for part, array in parts}
    return View(arrays, {})


@pytest.mark.parametrize(
    "extract",
    one_in_three([PprSubgraph(), EgoSubgraph(), WalkedSubgraph(), AdaptiveSubgraph(), None]),
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize(
    "find", [RankedPaths(), BeamPaths(), StructuralPaths()], ids=lambda one: type(one).__name__
)
async def test_work_at_a_hub_is_bounded(hub: View, extract: Step | None, find: Step) -> None:
    ctx = Context("Hub directed by", hub, Leaves(), HashEmbed())  # type: ignore[arg-type]
    found = Found(entities=(Hit(0, 1.0, "given"),), names=("Hub",))
    steps: list[Step] = [find, RankAnswers()]
    if extract is not None:
        steps = [extract, Prune("edges"), *steps]
    started = process_time()
    for step in steps:
        found = await step(ctx, found)
        assert len(found.facts) <= 4096 and len(found.paths) <= 1000
    assert process_time() - started < 10
    assert found.paths and all(path.entities[0] == 0 for path in found.paths)
    if extract is None and not isinstance(find, StructuralPaths):
        # The one fact that is asked for is found among a million others.
        assert found.entities[0].at == RARE + 1
