"""Answers from a graph: the entities that the best paths end at, cited by the paths' facts."""

from collections.abc import Sequence

from clew.agents.answer import Answer
from clew.agents.writing.wordings import explain_not_written
from clew.context import Context
from clew.retrieve.paths.answers import ANSWER_MARK
from clew.types import Citation, Evidence, Found, Path

PATH_NOTE = "these are the ends of the best paths in the graph"

_MIN_RELATIVE_SCORE = (
    0.5  # share of the best score: the entities that the same relation path reaches
)
_MAX_PATH_ANSWERS = 32
_MAX_CITED_PATHS = 8  # candidates whose paths are quoted


def has_ranked_answers(found: Found) -> bool:
    """Whether a recipe ranked entities as answers."""
    return any(hit.by == ANSWER_MARK for hit in found.entities)


async def answer_from_paths(ctx: Context, evidence: Evidence, found: Found) -> Answer:
    """Name the entities that the best paths reach, and quote the paths of the first ones."""
    ranked = [hit for hit in found.entities if hit.by == ANSWER_MARK]
    likely = [hit for hit in ranked if hit.score >= _MIN_RELATIVE_SCORE * ranked[0].score][
        :_MAX_PATH_ANSWERS
    ]
    keys = ctx.view.keys("entity")
    entities = await ctx.snapshot.entities([int(keys[hit.at]) for hit in likely])
    names = [entities[int(keys[hit.at])].name for hit in likely]
    paths = [_first_path_to(found.paths, hit.at) for hit in likely[:_MAX_CITED_PATHS]]
    citations, marks = await _cite_paths(ctx, [path for path in paths if path is not None])
    text = ", ".join(
        f"{name} {''.join(f'[{n}]' for n in marks.get(hit.at, ()))}".strip()
        for name, hit in zip(names, likely, strict=True)
    )
    note = explain_not_written(ctx, PATH_NOTE)
    return Answer(
        *(ctx.question, "", text, "answered", citations, evidence, (), 0.0, names[0], note)
    )


def _first_path_to(paths: Sequence[Path], end: int) -> Path | None:
    return next((path for path in paths if path.entities[-1] == end), None)


async def _cite_paths(
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
