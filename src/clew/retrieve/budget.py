"""Packing: what of the evidence goes into a prompt, within budgets of tokens, each item cited."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.context import Context
from clew.llm.openai_body import tokens
from clew.retrieve.texts import entities_at, facts_at
from clew.types import Evidence, Found, Hit, Kind, Passage, Statement

NO_LIMIT = 1 << 40


@dataclass(frozen=True)
class Budget:
    """Cuts each kind to a budget of tokens, the best first; passages get what the total leaves.

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
        first, second = within(entities, self.entities), within(facts, self.facts)
        left = self.total - sum(entities[:first]) - sum(facts[:second])
        last = max(1, within(chunks, min(self.chunks, left)))
        return replace(
            found,
            entities=found.entities[:first],
            facts=found.facts[:second],
            chunks=found.chunks[:last],
        )


def within(sizes: Sequence[int], budget: int) -> int:
    """How many of the first fit into the budget together."""
    total = 0
    for count, size in enumerate(sizes):
        total += size
        if total > budget:
            return count
    return len(sizes)


async def _sizes(ctx: Context, kind: Kind, hits: Sequence[Hit]) -> list[int]:
    """The tokens that each hit's text takes in a prompt."""
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
    """A text for a prompt; the source numbered n in it is `sources[n - 1]`."""

    text: str
    sources: tuple[Passage | Statement, ...]


def packed(evidence: Evidence, budget: Budget | None = None) -> Packed:
    """Evidence as a prompt shows it: facts and passages numbered, the most reliable path last.

    What stands last is what a model remembers best (PathRAG).
    """
    limit = budget or Budget()
    names = [f"{e.name} ({e.type})" if e.type else e.name for e in evidence.entities]
    names = names[: within([tokens(name) for name in names], limit.entities)]
    said = [fact.text for fact in evidence.facts]
    facts = evidence.facts[: within([tokens(text) for text in said], limit.facts)]
    used = sum(map(tokens, names)) + sum(tokens(fact.text) for fact in facts)
    sizes = [tokens(p.text) + tokens(p.title) for p in evidence.chunks]
    fitting = max(1, within(sizes, min(limit.chunks, limit.total - used)))
    sources: tuple[Passage | Statement, ...] = (*facts, *evidence.chunks[:fitting])
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
