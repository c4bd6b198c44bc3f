"""Token budgets for evidence, and its layout as a prompt text with numbered sources."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.context import Context
from clew.llm.openai_api import estimate_tokens
from clew.retrieve.pack import fetch_entities, fetch_facts
from clew.types import Evidence, Found, Hit, Kind, Passage, Statement

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
        entity_count, fact_count = (
            count_within_budget(entities, self.entities),
            count_within_budget(facts, self.facts),
        )
        room = self.total - sum(entities[:entity_count]) - sum(facts[:fact_count])
        chunk_count = max(1, count_within_budget(chunks, min(self.chunks, room)))
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
    """Count the tokens that each hit's text takes in a prompt."""
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


@dataclass(frozen=True)
class PackedEvidence:
    """A prompt text; the source numbered n in it is `sources[n - 1]`."""

    text: str
    sources: tuple[Passage | Statement, ...]


def pack_evidence(evidence: Evidence, budget: Budget | None = None) -> PackedEvidence:
    """Lay out evidence for a prompt: facts and passages numbered, the most reliable path last.

    Models remember best what stands last (PathRAG).
    """
    limit = budget or Budget()
    names = [f"{e.name} ({e.type})" if e.type else e.name for e in evidence.entities]
    names = names[: count_within_budget([estimate_tokens(name) for name in names], limit.entities)]
    fact_texts = [fact.text for fact in evidence.facts]
    facts = evidence.facts[
        : count_within_budget([estimate_tokens(text) for text in fact_texts], limit.facts)
    ]
    used = sum(map(estimate_tokens, names)) + sum(estimate_tokens(fact.text) for fact in facts)
    sizes = [estimate_tokens(p.text) + estimate_tokens(p.title) for p in evidence.chunks]
    passage_count = max(1, count_within_budget(sizes, min(limit.chunks, limit.total - used)))
    sources: tuple[Passage | Statement, ...] = (*facts, *evidence.chunks[:passage_count])
    numbered = [f"[{n}] {_format_source(source)}" for n, source in enumerate(sources, start=1)]
    parts = {
        "Entities": ["; ".join(names)] if names else [],
        "Communities": [f"{one.name}: {one.summary}" for one in evidence.communities],
        "Facts": numbered[: len(facts)],
        "Passages": numbered[len(facts) :],
        "Paths, the most reliable last": [str(path) for path in reversed(evidence.paths)],
    }
    text = "\n\n".join(f"{head}:\n" + "\n".join(lines) for head, lines in parts.items() if lines)
    return PackedEvidence(text, sources)


def _format_source(source: Passage | Statement) -> str:
    if isinstance(source, Statement):
        return source.text
    text = " ".join(source.text.split())
    return f"{source.title}: {text}" if source.title else text
