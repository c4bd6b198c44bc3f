"""Let a model decide on close names, once per pair, and summarise long merged descriptions."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, Field

from clew.errors import ParseError
from clew.llm.chat import Chat
from clew.llm.prompt import Prompt
from clew.store.protocol import SENSE_STRIDE, Snapshot, Store
from clew.store.resolved_entities import (
    LONG_DESCRIPTION,
    RESOLUTION_KIND,
    SUMMARY_KIND,
    MergeDecision,
    summary_key,
)
from clew.text.language import prompt_language
from clew.types import Entity, Usage

_PAIRS_PER_CALL = 8  # pairs per prompt: small models lose count beyond
_EQUAL_COSINE = 0.9999
_MAX_DESCRIPTION_CHARS = 200  # of one description in the prompt on pairs
_MAX_NOTES_CHARS = 6000  # in the prompt for a summary


class SameEntityVerdict(BaseModel, title="Verdict"):
    """Whether the two of a pair are the same."""

    pair: int
    same: bool


class SameEntityVerdicts(BaseModel, title="Verdicts"):
    """What the model must answer."""

    verdicts: list[SameEntityVerdict] = Field(default_factory=list)


SAME_ENTITY_PROMPT = Prompt("same_thing", SameEntityVerdicts, {"pairs"}, documents={"pairs"})


class Description(BaseModel):
    """What the model must answer."""

    description: str


DESCRIPTION_PROMPT = Prompt("description", Description, {"name", "notes"}, documents={"notes"})


ScoredPair = tuple[Entity, Entity, float]
"""Two entities and the cosine of their names."""


@dataclass(frozen=True)
class PairReview:
    """Pairs of close names, the decisions on them, and the token usage."""

    pairs: tuple[ScoredPair, ...]
    decisions: tuple[MergeDecision, ...] = ()
    failed: int = 0
    usage: Usage = Usage()


async def review_pairs(store: Store, chat: Chat | None, limit: int) -> PairReview:
    """Find close names without a decision, and ask the model about them."""
    async with store.snapshot() as now:
        pairs = await _find_open_pairs(store, now, limit)
    if chat is None or not pairs:
        return PairReview(tuple(pairs))
    batches = [pairs[at : at + _PAIRS_PER_CALL] for at in range(0, len(pairs), _PAIRS_PER_CALL)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_ask_model(chat, batch)) for batch in batches]
    decisions = [decision for task in tasks for decision in task.result()[0]]
    usage = sum((task.result()[1] for task in tasks), Usage())
    return PairReview(tuple(pairs), tuple(decisions), len(pairs) - len(decisions), usage)


async def _find_open_pairs(store: Store, snapshot: Snapshot, limit: int) -> list[ScoredPair]:
    """Return the closest pairs of distinct entities without a decision."""
    arrays = snapshot.arrays
    rows, keys = arrays["entity_rows"], arrays["entity_keys"]
    near = arrays.get("near_pairs", np.zeros((0, 2), np.int64))
    at = np.full(int(max(rows.max(initial=-1), near.max(initial=-1))) + 1, -1, np.int64)
    plain = (rows >= 0) & (keys < SENSE_STRIDE) & ~arrays["entity_literal"]
    at[rows[plain]] = np.flatnonzero(plain)
    pair = at[near]
    # Equal vectors come from unknown words or from the same words: nothing to decide.
    present = np.flatnonzero((pair >= 0).all(axis=1) & (arrays["near_cosines"] < _EQUAL_COSINE))
    order = present[np.argsort(-arrays["near_cosines"][present], kind="stable")]
    found: list[ScoredPair] = []
    for start in range(0, len(order), 4 * limit):
        some = order[start : start + 4 * limit]
        entities = await snapshot.entities(keys[np.unique(pair[some])].tolist())
        close = [
            (entities[int(keys[a])], entities[int(keys[b])], float(arrays["near_cosines"][i]))
            for i, (a, b) in zip(some.tolist(), pair[some].tolist(), strict=True)
        ]
        by_key = {MergeDecision(p[0].id, p[1].id, same=True, by="model").key: p for p in close}
        known = await store.get(RESOLUTION_KIND, list(by_key))
        found += [pair for key, pair in by_key.items() if key not in known]
        if len(found) >= limit:
            break
    return found[:limit]


async def _ask_model(chat: Chat, batch: Sequence[ScoredPair]) -> tuple[list[MergeDecision], Usage]:
    lines = [
        f"{number}. A: {_format_entity(one)} | B: {_format_entity(other)}"
        for number, (one, other, _) in enumerate(batch, start=1)
    ]
    text = "\n".join(lines)
    try:
        reply = await SAME_ENTITY_PROMPT.ask_detailed(
            chat, language=prompt_language(text), pairs=text
        )
    except ParseError:
        return [], Usage()  # counted as failed: the pairs stay open and can be tried again
    verdict_of = {verdict.pair: verdict.same for verdict in reply.value.verdicts}
    decisions = [
        MergeDecision(one.id, other.id, same=verdict_of[number], by="model")
        for number, (one, other, _) in enumerate(batch, start=1)
        if number in verdict_of
    ]
    return decisions, reply.usage


def _format_entity(entity: Entity) -> str:
    kind = f" ({entity.type})" if entity.type else ""
    about = " ".join(entity.description.split())[:_MAX_DESCRIPTION_CHARS]
    return f"{entity.name}{kind}: {about}" if about else f"{entity.name}{kind}"


async def summarize_long_descriptions(store: Store, chat: Chat) -> int:
    """Summarise long descriptions without a summary; return how many were written."""
    async with store.snapshot() as now:
        arrays = now.arrays
        if "entity_keys" not in arrays:  # nothing was ever written
            return 0
        keys = {kind: arrays[f"{kind}_keys"][arrays[f"{kind}_long"]] for kind in ("entity", "fact")}
        entities = await now.entities(keys["entity"].tolist())
        facts = await now.facts(keys["fact"].tolist())
    # A description that has a summary is read as that summary, which is short.
    named = [(e.name, e.description) for e in entities.values()]
    named += [(f.text, f.description) for f in facts.values()]
    wanted = {text: name for name, text in named if len(text) > LONG_DESCRIPTION}
    async with asyncio.TaskGroup() as group:
        tasks = {
            text: group.create_task(_summarize(chat, name, text)) for text, name in wanted.items()
        }
    found = {summary_key(text): short for text, task in tasks.items() if (short := task.result())}
    if found:
        await store.set(SUMMARY_KIND, found)
    return len(found)


async def _summarize(chat: Chat, name: str, text: str) -> str:
    notes = "\n".join(f"- {note}" for note in text.split("\n"))
    try:
        reply = await DESCRIPTION_PROMPT.ask_detailed(
            chat, language=prompt_language(text), name=name, notes=notes[:_MAX_NOTES_CHARS]
        )
    except ParseError:
        return ""  # the merged description is kept, as without a model
    return reply.value.description.strip()
