"""Token budgets: cuts evidence to what fits into a prompt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.context import Context
from clew.llm.openai_api import estimate_tokens
from clew.retrieve.pack import fetch_entities, fetch_facts
from clew.types import Found, Hit, Kind

NO_LIMIT = 1 << 40


@dataclass(frozen=True)
class Budget:
    """Cuts each kind of evidence to a token budget, best first; passages get what the total leaves.

    A budget of 0 keeps nothing of its kind, but the best passage always stays.
    """

    entities: int = NO_LIMIT
    facts: int = NO_LIMIT
    chunks: int = NO_LIMIT
    total: int = NO_LIMIT

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Cut `entities`, `facts` and `chunks`."""
        entities = await _count_tokens(ctx, "entity", found.entities)
        facts = await _count_tokens(ctx, "fact", found.facts)
        chunks = await _count_tokens(ctx, "chunk", found.chunks)
        entity_count = count_within_budget(entities, self.entities)
        fact_count = count_within_budget(facts, self.facts)
        left = self.total - sum(entities[:entity_count]) - sum(facts[:fact_count])
        chunk_count = max(1, count_within_budget(chunks, min(self.chunks, left)))
        return replace(
            found,
            entities=found.entities[:entity_count],
            facts=found.facts[:fact_count],
            chunks=found.chunks[:chunk_count],
        )


def count_within_budget(sizes: Sequence[int], budget: int) -> int:
    """Count how many leading items fit into the budget together."""
    total = 0
    for count, size in enumerate(sizes):
        total += size
        if total > budget:
            return count
    return len(sizes)


async def _count_tokens(ctx: Context, kind: Kind, hits: Sequence[Hit]) -> list[int]:
    at = [hit.at for hit in hits]
    if kind == "chunk":
        keys = [int(ctx.view.keys(kind)[one]) for one in at]
        chunks = await ctx.snapshot.chunks(keys)
        return [
            estimate_tokens(chunks[key].text) + estimate_tokens(chunks[key].title) for key in keys
        ]
    if kind == "fact":
        facts = await fetch_facts(ctx, at)
        return [estimate_tokens(facts[one].text) for one in at]
    entities = await fetch_entities(ctx, at)
    return [estimate_tokens(entities[one].name + entities[one].description) for one in at]
