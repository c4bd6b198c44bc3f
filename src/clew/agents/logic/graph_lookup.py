"""Look up a relation in the graph itself, where facts have relations; no model is used."""

from clew.agents.logic.computing import Item, Items
from clew.agents.logic.forms import Retrieve
from clew.context import Context
from clew.retrieve.pack import fetch_evidence
from clew.text import split_words
from clew.types import HEAD, TAIL, Citation, Fact, Found, Hit

_MAX_FACTS_PER_ENTITY = 400  # facts of one entity that are considered
_SAME_RELATION_COSINE = 0.62  # cosine at which two relations mean the same (MiniLM)

FactsByPosition = dict[int, Fact]
"""By position in the view."""


async def look_up_relation(ctx: Context, step: Retrieve) -> Items:
    """Return the other ends of the facts that have the known end and this relation."""
    known, role = (step.object, TAIL) if step.subject == "?" else (step.subject, HEAD)
    [entities] = ctx.view.find_by_own_name([known])
    relations = ctx.view.relations
    if not len(entities) or not len(relations) or not split_words(step.relation):
        return ()
    links = ctx.view.links("entity_fact")
    at = [int(f) for e in entities for f in links.row(int(e)) if relations[int(f)] >= 0][
        :_MAX_FACTS_PER_ENTITY
    ]
    keys = ctx.view.keys("fact")
    found = await ctx.snapshot.facts([int(keys[f]) for f in at])
    facts = {f: found[int(keys[f])] for f in at if int(keys[f]) in found}
    entity_keys = ctx.view.keys("entity")
    own = await ctx.snapshot.entities([int(entity_keys[int(e)]) for e in entities])
    entity_ids = {entity.id for entity in own.values()}
    fits = {
        f: fact
        for f, fact in facts.items()
        if any(p.entity in entity_ids and p.role == role for p in fact.participants)
    }
    chosen = await _match_relation(ctx, step.relation, fits)
    return await _collect_other_ends(ctx, chosen, TAIL if role == HEAD else HEAD, known)


async def _match_relation(ctx: Context, relation: str, facts: FactsByPosition) -> FactsByPosition:
    """Keep facts whose relation shares words with the asked one, else is near it in meaning."""
    wanted = set(split_words(relation))
    same = {f: fact for f, fact in facts.items() if wanted & set(split_words(fact.relation))}
    if same or ctx.embed is None or not facts:
        return same
    labels = list(dict.fromkeys(fact.relation for fact in facts.values()))
    asked, *others = await ctx.vectors([relation, *labels])
    near = {
        label
        for label, v in zip(labels, others, strict=True)
        if float(v @ asked) >= _SAME_RELATION_COSINE
    }
    return {f: fact for f, fact in facts.items() if fact.relation in near}


async def _collect_other_ends(ctx: Context, facts: FactsByPosition, role: str, known: str) -> Items:
    """Return the participants at the other end, each with the citation of its fact."""
    members, keys = ctx.view.links("fact_entity"), ctx.view.keys("entity")
    around = sorted({int(e) for f in facts for e in members.row(f)})
    found = await ctx.snapshot.entities([int(keys[e]) for e in around])
    names = {entity.id: entity.name for entity in found.values()}
    cited = await _cite_facts(ctx, list(facts))
    items: dict[str, Item] = {}
    for fact in facts.values():
        for end in fact.participants:
            if end.role == role and end.entity in names:
                items.setdefault(end.entity, Item(names[end.entity], known, cited.get(fact.id)))
    return tuple(items.values())


async def _cite_facts(ctx: Context, facts: list[int]) -> dict[str, Citation]:
    """Cite each fact; a graph imported without texts has no citations."""
    chunks = ctx.view.links("fact_chunk")
    hits = tuple(Hit(f, 1.0, "relation") for f in facts if len(chunks.row(f)))
    gathered = await fetch_evidence(ctx, Found(facts=hits))
    return {
        s.id: Citation(s.doc, s.chunk, s.start, s.end, s.quote)
        for s in gathered.facts
        if s.quote and s.end - s.start == len(s.quote)
    }
