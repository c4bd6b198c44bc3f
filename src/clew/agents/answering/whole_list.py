"""Quote a list whole that runs over the border of two passages, in the order of the document.

A long section is split between items, so that the passage that was found may hold only a part of
its list: what comes before and behind is looked for in the passages beside it.
"""

import re
from dataclasses import dataclass, replace
from itertools import takewhile

from clew.agents.answering.quote_block import find_blocks
from clew.agents.citing.support import SupportSpan, make_citation
from clew.context import Context
from clew.text.structure import find_outer_blocks
from clew.types import Chunk, Citation, Evidence, Found, Passage

_MOST_BESIDE = 8  # passages on each side
_MARKER = re.compile(r"(?P<indent>[ \t]*)(?:\(?(?P<number>\d{1,3})[.)、]|(?P<bullet>[-*+•‣]))\s*\S")


@dataclass(frozen=True, slots=True)
class WholeList:
    """The parts of a list in order, and the evidence with the passages that hold them."""

    parts: tuple[Citation, ...]
    evidence: Evidence

    def format(self) -> str:
        """Return the parts as they are quoted, each with its number."""
        return "\n".join(f"{one.quote} [{n}]" for n, one in enumerate(self.parts, start=1))


async def cite_whole(ctx: Context, evidence: Evidence, found: Found, cited: Citation) -> WholeList:
    """Return a list that is cited with what goes on with it in the passages beside its own."""
    home = next((one for one in evidence.chunks if one.id == cited.chunk), None)
    if home is None:
        return WholeList((cited,), evidence)
    parts, taken = [cited], list[Passage]()
    if not home.text[cited.end - home.start :].strip():
        for passage in await _find_beside(ctx, evidence, found, home, 1):
            part = _cite_rest(parts[-1], home, passage)
            if part is None:
                break
            parts, taken = [*parts, part], [*taken, passage]
            if passage.text[part.end - passage.start :].strip():
                break
    if not home.text[: cited.start - home.start].strip():
        for passage in await _find_beside(ctx, evidence, found, home, -1):
            part = _cite_beginning(parts[0], home, passage)
            if part is None:
                break
            parts, taken = [part, *parts], [*taken, passage]
            if passage.text[: part.start - passage.start].strip():
                break
    known = {one.id for one in evidence.chunks}
    new = (one for one in taken if one.id not in known)
    return WholeList(tuple(parts), replace(evidence, chunks=(*evidence.chunks, *new)))


async def _find_beside(
    ctx: Context, evidence: Evidence, found: Found, home: Passage, step: int
) -> list[Passage]:
    """Return the passages of the same document that follow one another from a passage on."""
    keys = ctx.view.keys("chunk")
    rows = [hit.at for hit in found.chunks[: len(evidence.chunks)]]
    held = await ctx.snapshot.chunks([int(keys[row]) for row in rows])
    own = next((row for row in rows if held[int(keys[row])].id == home.id), None)
    if own is None:
        return []
    ahead = [own + step * one for one in range(1, _MOST_BESIDE + 1)]
    ahead = [row for row in ahead if 0 <= row < len(keys)]
    chunks = await ctx.snapshot.chunks([int(keys[row]) for row in ahead])
    passages, document = list[Passage](), held[int(keys[own])].document
    for row in ahead:
        chunk = chunks[int(keys[row])]
        last = passages[-1] if passages else home
        follows = chunk.start >= last.end if step > 0 else chunk.end <= last.start
        if chunk.document != document or not follows:
            break
        passages.append(_make_passage(home, chunk))
    return passages


def _make_passage(home: Passage, chunk: Chunk) -> Passage:
    return replace(
        home,
        id=chunk.id,
        text=chunk.text,
        start=chunk.start,
        end=chunk.end,
        page=chunk.page,
        heading=chunk.heading,
    )


def _cite_rest(before: Citation, home: Passage, passage: Passage) -> Citation | None:
    """Cite the items that a passage begins with, if they go on with those of a list."""
    if _has_definitions(before, -1):
        return _cite_definitions(home, passage, 0)
    lines = passage.text.splitlines(keepends=True)
    last = [one for line in before.quote.split("\n") if (one := _MARKER.match(line))]
    first = _MARKER.match(passage.text.lstrip("\n"))
    if not last or first is None or not _goes_on(last[-1], first):
        return None
    end = 0
    for line in lines:
        if line.strip() and not (_MARKER.match(line) or line[:1] in " \t"):
            break
        end += len(line)
    start = len(passage.text) - len(passage.text.lstrip("\n"))
    return make_citation(passage, SupportSpan(start, len(passage.text[:end].rstrip()), 1.0))


def _cite_beginning(after: Citation, home: Passage, passage: Passage) -> Citation | None:
    """Cite the list at the end of a passage, if another one's items go on with it."""
    if _has_definitions(after, 0):
        return _cite_definitions(home, passage, -1)
    blocks = [one for one in find_blocks(passage) if not passage.text[one.end :].strip()]
    if not blocks:
        return None
    last = [one for line in blocks[-1].text.split("\n") if (one := _MARKER.match(line))]
    first = _MARKER.match(after.quote)
    if not last or first is None or not _goes_on(last[-1], first):
        return None
    return make_citation(passage, SupportSpan(blocks[-1].start, blocks[-1].end, 1.0))


def _has_definitions(cited: Citation, at: int) -> bool:
    """Whether a citation begins (0) or ends (-1) with the entry of a term."""
    blocks = find_outer_blocks(cited.quote)
    return bool(blocks) and blocks[at].kind == "definition"


def _cite_definitions(home: Passage, passage: Passage, at: int) -> Citation | None:
    """Cite the entries that a passage of the same section begins (0) or ends (-1) with."""
    if home.heading != passage.heading:
        return None
    blocks = find_outer_blocks(passage.text)
    run = list(takewhile(lambda one: one.kind == "definition", blocks if at == 0 else blocks[::-1]))
    if not run:
        return None
    start, end = min(one.start for one in run), max(one.end for one in run)
    return make_citation(passage, SupportSpan(start, end, 1.0))


def _goes_on(last: re.Match[str], first: re.Match[str]) -> bool:
    """Whether an item is the next one of a list: the next number, or the same mark as deep."""
    if last["number"] and first["number"]:
        return int(first["number"]) == int(last["number"]) + 1
    return bool(last["bullet"]) and last.group("indent", "bullet") == first.group(
        "indent", "bullet"
    )
