"""Explain, split and merge entities on behalf of the user."""

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from clew.entities.correction_log import (
    CORRECTIONS_KIND,
    WITHDRAWN,
    Correction,
    ShownCorrection,
    apply_cells,
    find_changes,
    log_correction,
    read_corrections,
    revert,
    show_corrections,
)
from clew.entities.model_review import PairReview, review_pairs, summarize_long_descriptions
from clew.errors import StoreError, UnknownEntity
from clew.graph.entity_resolution import MERGE_REASONS
from clew.index.derive import derive_arrays
from clew.index.view import View
from clew.llm.chat import Chat
from clew.store.protocol import SENSE_STRIDE, Arrays, Change, Counts, Snapshot, Store
from clew.store.resolved_entities import (
    FIRST_MANUAL_SENSE,
    RESOLUTION_KIND,
    SENSES_KIND,
    MergeDecision,
    ResolvedSnapshot,
    node_id,
)
from clew.text.entity_types import ENTITY_CLASSES
from clew.text.names import name_key
from clew.text.unicode import normalize_name
from clew.types import Entity


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a correction is about: a merge or a split of these names, or in these documents."""

    what: Literal["merge", "split"]
    names: Sequence[tuple[str, int]]
    documents: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class NameMerge:
    """Two names that were merged, and why."""

    name: str
    into: str
    because: str
    score: float


@dataclass(frozen=True, slots=True)
class EntityExplanation:
    """A resolved entity with its key, merges, merged names and homonyms."""

    key: int
    entity: Entity
    merges: tuple[NameMerge, ...]
    names: tuple[Entity, ...]
    namesakes: tuple[str, ...]
    name_keys: tuple[int, ...] = ()

    def key_names(self, names: Sequence[Entity]) -> list[tuple[str, int]]:
        """Return the ids and keys of some of its names."""
        keys = {name.id: key for name, key in zip(self.names, self.name_keys, strict=True)}
        return [(name.id, keys.get(name.id, self.key)) for name in names]


async def _follow_nothing() -> None:
    """Leave entities with the vectors of their names, and trees as they are."""


@dataclass(frozen=True)
class EntityEditor:
    """Explains, splits and merges the entities of one knowledge base."""

    store: Store
    follow: Callable[[], Awaitable[Counts | None]] = _follow_nothing
    """After a change: embeds merged descriptions and updates the trees."""

    async def explain(self, name: str) -> list[EntityExplanation]:
        """Return the entities with a name, exact spellings first, and how each was resolved."""
        async with self.store.snapshot() as snapshot:
            view = View(snapshot.arrays, {})
            keys = [int(view.keys("entity")[at]) for at in view.find_by_name_or_alias(name)]
            found = [await _explain_entity(snapshot, key) for key in keys]
        if not found:
            raise UnknownEntity(
                f"no entity is named {name!r}; `clew search {name!r}` finds similar names"
            )
        exact = normalize_name(name)
        return sorted(found, key=lambda e: all(normalize_name(n.name) != exact for n in e.names))

    async def split(
        self, name: str, *, other: str | None = None, documents: Sequence[str] = ()
    ) -> Counts:
        """Split merged names, or split off the mentions of one name in some documents."""
        found = await self.explain(name)
        if documents:
            return await self._split_by_document(found[0], documents)
        merged = next((entity for entity in found if len(entity.names) > 1), found[0])
        if len(merged.names) == 1:
            await self.follow()  # a split that was stopped before this
        decisions = _decide_split(merged, other)
        apart = [name for name in merged.names if other is None or name.name == other]
        rest = [name for name in merged.names if name not in apart]
        about = _Subject("split", merged.key_names([*rest[:1], *apart]))
        return await self._correct(about, RESOLUTION_KIND, _to_values(decisions))

    async def merge(self, one: str, other: str) -> Counts:
        """Merge two names into one entity, whatever rules and vectors say."""
        first, second = (await self.explain(one))[0], (await self.explain(other))[0]
        if first.key == second.key:
            await self.follow()  # a merge that was stopped before this
            raise StoreError(
                f"{one!r} and {other!r} are already one entity; `clew show {one!r} --why` explains"
            )
        names = _find_name(one, first), _find_name(other, second)
        decision = MergeDecision(names[0].id, names[1].id, same=True, by="user")
        about = _Subject("merge", [*first.key_names(names[:1]), *second.key_names(names[1:])])
        return await self._correct(about, RESOLUTION_KIND, _to_values([decision]))

    async def undo(self, one: str, other: str) -> Counts:
        """Undo the latest merge or split of two names: what was decided before holds again."""
        first, second = (await self.explain(one))[0], (await self.explain(other))[0]
        ids = _find_name(one, first).id, _find_name(other, second).id
        pair = MergeDecision(*ids, same=True, by="user").key
        async with self.store.write_lock():
            log = await read_corrections(self.store)
            about = [made for made in log if any(cell.key == pair for cell in made.cells)]
            standing = [made for made in about if not made.undone]
            if standing:
                return await self._revert(log, standing[-1])
            if (await self.store.get(RESOLUTION_KIND, [pair])).get(pair, WITHDRAWN) != WITHDRAWN:
                return await self._derive({RESOLUTION_KIND: {pair: WITHDRAWN}})  # by a model
        await self.follow()  # a withdrawal that was stopped before this
        raise StoreError(f"nobody has merged or split {one!r} and {other!r}; nothing to undo")

    async def undo_correction(self, number: int) -> Counts:
        """Undo one correction of the list, whichever were made since."""
        async with self.store.write_lock():
            log = await read_corrections(self.store)
            made = next((one for one in log if one.number == number and not one.undone), None)
            if made:
                return await self._revert(log, made)
        await self.follow()  # one that was stopped before this
        raise StoreError(f"there is no correction {number}, or it was undone before")

    async def list_corrections(self, limit: int = 100) -> list[ShownCorrection]:
        """List the merges and splits by users that hold, newest first."""
        log = await read_corrections(self.store)
        async with self.store.snapshot() as snapshot:
            return await show_corrections(snapshot, log, limit)

    async def summarize_descriptions(self, chat: Chat) -> int:
        """Let a model summarise long descriptions; return how many it wrote."""
        return await summarize_long_descriptions(self.store, chat)

    async def review_close_names(self, chat: Chat | None, limit: int) -> PairReview:
        """Find close names without a decision; let a model decide, if there is one."""
        found = await review_pairs(self.store, chat, limit)
        if found.decisions:
            await self._derive({RESOLUTION_KIND: _to_values(found.decisions)})
        return found

    async def _correct(self, about: _Subject, kind: str, decided: Mapping[str, str]) -> Counts:
        """Store a user's decisions, and log what they replace."""
        async with self.store.write_lock():
            log = await read_corrections(self.store)
            held = await self.store.get(kind, list(decided))
            made = Correction(
                number=log[-1].number + 1 if log else 1,
                what=about.what,
                names=tuple(about.names),
                documents=tuple(about.documents),
                time=time.time(),
                cells=tuple(find_changes(kind, held, decided)),
            )
            return await self._derive({kind: decided, **log_correction(made)})

    async def _revert(self, log: Sequence[Correction], made: Correction) -> Counts:
        cells = revert(log, made)
        kinds = {cell.kind for cell in cells}
        held = {
            kind: await self.store.get(kind, [cell.key for cell in cells if cell.kind == kind])
            for kind in kinds
        }
        logged = {CORRECTIONS_KIND: {str(made.number): replace(made, undone=True).to_json()}}
        return await self._derive({**apply_cells(cells, held), **logged})

    async def _split_by_document(
        self, entity: EntityExplanation, documents: Sequence[str]
    ) -> Counts:
        sources = await self.store.sources()
        unknown = [name for name in documents if name not in sources]
        if unknown:
            raise StoreError(
                f"no document is named {unknown[0]!r}; `clew status --documents` lists them"
            )
        key = entity.names[0].id.partition("#")[0]  # senses are numbered within a name
        stored = (await self.store.get(SENSES_KIND, [key])).get(key, "{}")
        senses: dict[str, int] = json.loads(stored)
        number = max([FIRST_MANUAL_SENSE - 1, *senses.values()]) + 1
        senses |= {sources[name].document: number for name in documents}
        ids = [sources[name].document for name in documents]
        about = _Subject("split", entity.key_names(entity.names[:1]), ids)
        return await self._correct(about, SENSES_KIND, {key: json.dumps(senses)})

    async def _derive(self, values: Mapping[str, Mapping[str, str]]) -> Counts:
        """Store decisions and derive the arrays from them, in one write."""
        counts = await self.store.write(Change(values=values), derive_arrays)
        return await self.follow() or counts


def _to_values(decisions: Sequence[MergeDecision]) -> dict[str, str]:
    return {one.key: one.to_json() for one in decisions}


def _find_name(typed: str, entity: EntityExplanation) -> Entity:
    """Return the name as typed, so that a merge survives splits of other names."""
    for normalise in (normalize_name, name_key):
        for name in entity.names:
            if normalise(name.name) == normalise(typed):
                return name
    return entity.entity


def _decide_split(entity: EntityExplanation, other: str | None) -> list[MergeDecision]:
    """Return decisions that split an entity's names: all, or one from the rest."""
    ids = {name.id: name.name for name in entity.names}
    if len(ids) < 2:
        raise StoreError(
            f"{entity.entity.name!r} has only one name; `clew split {entity.entity.name!r} "
            "--document DOC` splits off its mentions in a document"
        )
    out = [one for one in ids if other is None or ids[one] == other]
    if not out:
        raise StoreError(
            f"{other!r} is not one of the names of {entity.entity.name!r}: "
            f"{', '.join(sorted(ids.values()))}"
        )
    pairs = [(one, rest) for one in out for rest in ids if rest != one]
    apart = [MergeDecision(*pair, same=False, by="user") for pair in pairs]
    return [*apart, *_keep_rest_together(entity, out)]


def _keep_rest_together(entity: EntityExplanation, out: Sequence[str]) -> list[MergeDecision]:
    """Return decisions that keep the rest merged, where removed names linked its parts."""
    left = {name.name: name.id for name in entity.names if name.id not in out}
    group_of = {name: name for name in left}
    for merge in entity.merges:
        if merge.name in group_of and merge.into in group_of:
            old, new = group_of[merge.name], group_of[merge.into]
            group_of = {name: new if group == old else group for name, group in group_of.items()}
    parts = [left[name] for name in dict.fromkeys(group_of.values())]
    return [MergeDecision(parts[0], other, same=True, by="user") for other in parts[1:]]


async def _explain_entity(snapshot: Snapshot, key: int) -> EntityExplanation:
    arrays = snapshot.arrays
    merged = arrays.get("merged", np.zeros((0, 2), np.int64))
    group = [key, *merged[merged[:, 1] == key, 0].tolist()]
    pairs = arrays.get("merged_pairs", np.zeros((0, 3), np.int64))
    mine = np.flatnonzero(np.isin(pairs[:, 0], group) & np.isin(pairs[:, 1], group))
    names = await _load_names(snapshot, [*group, *pairs[mine, :2].ravel().tolist()])
    merges = tuple(
        NameMerge(
            names[int(right)].name,
            names[int(left)].name,
            MERGE_REASONS[int(reason)],
            float(arrays["merged_scores"][at]),
        )
        for at, (left, right, reason) in zip(mine.tolist(), pairs[mine].tolist(), strict=True)
    )
    entity = (await snapshot.entities([key]))[key]
    return EntityExplanation(
        key,
        entity,
        merges,
        tuple(names[k] for k in group),
        _find_namesakes(arrays, key),
        tuple(int(k) for k in group),
    )


def _find_namesakes(arrays: Arrays, key: int) -> tuple[str, ...]:
    """Return the other senses of the same name, by their distinguishing class."""
    keys = arrays["entity_keys"]
    others = keys[(keys % SENSE_STRIDE == key % SENSE_STRIDE) & (keys != key)]
    return tuple(_format_sense(int(other)) for other in others)


def _format_sense(key: int) -> str:
    number = key // SENSE_STRIDE
    if number == 0:
        return "its main sense"
    return ENTITY_CLASSES[number] if number < len(ENTITY_CLASSES) else f"split by hand ({number})"


async def _load_names(snapshot: Snapshot, keys: Sequence[int]) -> dict[int, Entity]:
    """Load names as stored in the tables, before merging; each has its sense's id."""
    stored = await (snapshot.raw if isinstance(snapshot, ResolvedSnapshot) else snapshot).entities(
        sorted({int(key) % SENSE_STRIDE for key in keys})
    )
    return {
        int(key): replace(entity, id=node_id(entity.id, int(key)))
        for key in keys
        for entity in [stored[int(key) % SENSE_STRIDE]]
    }
