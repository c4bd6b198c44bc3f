"""Answers from a graph: the entities that the best paths end at, cited by the paths' facts."""

from collections.abc import Sequence

from clew.agents.answer import Answer
from clew.agents.writing.wordings import unwritten
from clew.context import Context
from clew.retrieve.paths.answers import ANSWER
from clew.types import Citation, Evidence, Found, Path

BY_PATH = "these are the ends of the best paths in the graph"

_LIKELY = 0.5  # share of the best score: the entities that the same relation path reaches
_MOST = 32
_CITED = 8  # candidates whose paths are quoted


def has_answers(found: Found) -> bool:
    """Whether a recipe ranked entities as answers."""
    return any(hit.by == ANSWER for hit in found.entities)


async def answer_by_path(ctx: Context, evidence: Evidence, found: Found) -> Answer:
    """Name the entities that the best paths reach, and quote the paths of the first ones."""
    ranked = [hit for hit in found.entities if hit.by == ANSWER]
    likely = [hit for hit in ranked if hit.score >= _LIKELY * ranked[0].score][:_MOST]
    keys = ctx.view.keys("entity")
    entities = await ctx.snapshot.entities([int(keys[hit.at]) for hit in likely])
    names = [entities[int(keys[hit.at])].name for hit in likely]
    paths = [_first(found.paths, hit.at) for hit in likely[:_CITED]]
    citations, marks = await _cited(ctx, [path for path in paths if path is not None])
    text = ", ".join(
        f"{name} {''.join(f'[{n}]' for n in marks.get(hit.at, ()))}".strip()
        for name, hit in zip(names, likely, strict=True)
    )
    note = unwritten(ctx, BY_PATH)
    return Answer(
        *(ctx.question, "", text, "answered", citations, evidence, (), 0.0, names[0], note)
    )


def _first(paths: Sequence[Path], end: int) -> Path | None:
    return next((path for path in paths if path.entities[-1] == end), None)


async def _cited(
    ctx: Context, paths: Sequence[Path]
) -> tuple[tuple[Citation, ...], dict[int, list[int]]]:
    """Return the citations of the paths' facts, and which of them support each end."""
    keys = ctx.view.keys("fact")
    facts = list(dict.fromkeys(fact for path in paths for fact in path.facts))
    supports = await ctx.snapshot.supports("fact", [int(keys[fact]) for fact in facts])
    chunk_keys, where = ctx.view.keys("chunk"), ctx.view.links("fact_chunk")
    wanted = {int(chunk_keys[at]) for fact in facts for at in where.row(fact)[:1].tolist()}
    chunks = {chunk.id: chunk for chunk in (await ctx.snapshot.chunks(sorted(wanted))).values()}
    names = await ctx.snapshot.names([chunk.document for chunk in chunks.values()])
    citations: list[Citation] = []
    number: dict[int, int] = {}
    for fact in facts:
        places = supports.get(int(keys[fact]), ())
        place = next((one for one in places if one.chunk in chunks), None)
        if place is None:
            continue
        chunk = chunks[place.chunk]
        quote = chunk.text[place.start - chunk.start : place.end - chunk.start]
        doc = (names.get(chunk.document) or (chunk.document,))[0]
        citations.append(Citation(doc, chunk.id, place.start, place.end, quote))
        number[fact] = len(citations)
    marks = {path.entities[-1]: [number[f] for f in path.facts if f in number] for path in paths}
    return tuple(citations), marks
