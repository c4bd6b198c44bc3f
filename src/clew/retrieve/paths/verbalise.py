"""Writes relation paths as text for a model."""

from collections.abc import Sequence

from clew.context import Context
from clew.retrieve.paths.trail_search import PathSearchContext, ScoredRelationPaths
from clew.retrieve.paths.ways import load_relation_texts

_MAX_END_NAMES = 2  # entities at the end of a path that are named
_MAX_SENTENCE_CHARS = 160


async def describe_paths(
    ctx: Context, on: PathSearchContext, found: ScoredRelationPaths, rows: Sequence[int]
) -> list[str]:
    """Describe each path: start, relations with arrows for direction, and end entities."""
    words = await load_relation_texts(ctx)
    keys = ctx.view.keys("entity")
    ends = {at: found.end_entities(at) for at in rows}
    wanted = {found.origin(at) for at in rows}
    wanted |= {int(end) for some in ends.values() for end in some[:_MAX_END_NAMES]}
    entities = await ctx.snapshot.entities([int(keys[at]) for at in sorted(wanted)])
    facts = [int(f) for at in rows for f in on.ways.fact_of_code(found.step_codes(at)) if f >= 0]
    fact_keys = ctx.view.keys("fact")
    fact_at = await ctx.snapshot.facts([int(fact_keys[at]) for at in dict.fromkeys(facts)])

    def step(code: int) -> str:
        if code >> 1 < on.ways.relation_count:
            label = words[code >> 1]
            return f"← {label} —" if code % 2 else f"— {label} →"
        return f"— {fact_at[int(fact_keys[(code >> 1) - on.ways.relation_count])].text[:_MAX_SENTENCE_CHARS]} —"

    texts = []
    for at in rows:
        names = [entities[int(keys[end])].name for end in ends[at][:_MAX_END_NAMES].tolist()]
        more = len(ends[at]) - len(names)
        last = ", ".join(names) + (f" and {more} more" if more > 0 else "")
        steps = " · ".join(step(code) for code in found.step_codes(at).tolist())
        texts.append(f"{entities[int(keys[found.origin(at)])].name} {steps} {last}")
    return texts
