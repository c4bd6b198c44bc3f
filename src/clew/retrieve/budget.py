"""Token budgets for evidence, and its layout as a prompt text with numbered sources."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.context import Context
from clew.llm.openai_body import tokens
from clew.retrieve.texts import entities_at, facts_at
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
        entities = await _sizes(ctx, "entity", found.entities)
        facts = await _sizes(ctx, "fact", found.facts)
        chunks = await _sizes(ctx, "chunk", found.chunks)
        entity_count, fact_count = within(entities, self.entities), within(facts, self.facts)
        room = self.total - sum(entities[:entity_count]) - sum(facts[:fact_count])
        chunk_count = max(1, within(chunks, min(self.chunks, room)))
        return replace(
            found,
            entities=found.entities[:entity_count],
            facts=found.facts[:fact_count],
            chunks=found.chunks[:chunk_count],
        )


def within(sizes: Sequence[int], budget: int) -> int:
    """Count how many leading items fit into the budget together."""
    total = 0
    for count, size in enumerate(sizes):
        total += size
        if total > budget:
            return count
    return len(sizes)


async def _sizes(ctx: Context, kind: Kind, hits: Sequence[Hit]) -> list[int]:
    """Count the tokens that each hit's text takes in a prompt."""
    at = [hit.at for hit in hits]
    if kind == "chunk":
        keys = [int(ctx.view.keys(kind)[one]) for one in at]
        chunks = await ctx.snapshot.chunks(keys)
        return [tokens(chunks[key].text) + tokens(chunks[key].title) for key in keys]
    if kind == "fact":
        facts = await facts_at(ctx, at)
        return [tokens(facts[one].text) for one in at]
    entities = await entities_at(ctx, at)
    return [tokens(entities[one].name + entities[one].description) for one in at]


@dataclass(frozen=True)
class Packed:
    """A prompt text; the source numbered n in it is `sources[n - 1]`."""

    text: str
    sources: tuple[Passage | Statement, ...]


def packed(evidence: Evidence, budget: Budget | None = None) -> Packed:
    """Lay out evidence for a prompt: facts and passages numbered, the most reliable path last.

    Models remember best what stands last (PathRAG).
    """
    limit = budget or Budget()
    names = [f"{e.name} ({e.type})" if e.type else e.name for e in evidence.entities]
    names = names[: within([tokens(name) for name in names], limit.entities)]
    fact_texts = [fact.text for fact in evidence.facts]
    facts = evidence.facts[: within([tokens(text) for text in fact_texts], limit.facts)]
    used = sum(map(tokens, names)) + sum(tokens(fact.text) for fact in facts)
    sizes = [tokens(p.text) + tokens(p.title) for p in evidence.chunks]
    passage_count = max(1, within(sizes, min(limit.chunks, limit.total - used)))
    sources: tuple[Passage | Statement, ...] = (*facts, *evidence.chunks[:passage_count])
    numbered = [f"[{n}] {_line(source)}" for n, source in enumerate(sources, start=1)]
    parts = {
        "Entities": ["; ".join(names)] if names else [],
        "Communities": [f"{one.name}: {one.summary}" for one in evidence.communities],
        "Facts": numbered[: len(facts)],
        "Passages": numbered[len(facts) :],
        "Paths, the most reliable last": [str(path) for path in reversed(evidence.paths)],
    }
    text = "\n\n".join(f"{head}:\n" + "\n".join(lines) for head, lines in parts.items() if lines)
    return Packed(text, sources)


def _line(source: Passage | Statement) -> str:
    if isinstance(source, Statement):
        return source.text
    text = " ".join(source.text.split())
    return f"{source.title}: {text}" if source.title else text
