"""Where a span stands: its sections, the term it defines and its page; and the units of a text.

A unit is a piece that can be read alone: a list with what announces it, a row with its header.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from clew.text.announced import ANNOUNCES, find_announced_blocks, find_tasks
from clew.text.code_outline import find_code_headings, find_code_sections, is_code
from clew.text.sentences import sentence_spans
from clew.text.structure import (
    CRUMB_SEPARATOR,
    Block,
    find_blocks,
    find_headings,
    find_item_term,
    find_outer_blocks,
)

Span = tuple[int, int]
MAX_UNIT_CHARS = 700
_MAX_LEAD_CHARS = 200  # of a term, a header or an announcing sentence that stands apart
_PROSE = 4  # sentences, its number among them, from which an item is a paragraph
_RUNS = ("item", "definition", "row", "header")  # kinds of blocks of which several belong together


def _is_open_ended(text: str) -> bool:
    """Whether a text ends in a colon, or in the middle of a sentence: something may follow."""
    bare = text.rstrip()
    return bare.endswith(ANNOUNCES) or bare[-1:].isalnum()


_MAX_CRUMB_CHARS = 80
PAGE_BREAK = "\f"  # between the pages of a document that has pages


def find_breadcrumbs(doc: str, text: str, at: int, heading: str = "") -> tuple[str, ...]:
    """Return where a character of a passage stands: its sections, and the terms it defines.

    `heading` is the path of the sections in which the passage of document `doc` begins.
    """
    outer = [part for part in heading.split(CRUMB_SEPARATOR) if part.strip()]
    code = is_code(doc)
    path: list[tuple[int, str]] = []
    headings = find_code_headings(text, doc, inside=bool(outer)) if code else find_headings(text)
    for found in headings:
        if found.start > at:
            break
        path = [(level, title) for level, title in path if level < found.level]
        path.append((found.level, found.title))
    crumbs = [*outer, *(title for _, title in path if title and title not in outer)]
    if not code:
        held = list(_list_terms(text, [b for b in find_blocks(text) if b.holds(at)]))
        crumbs += [title for title in held if title not in outer]
    return tuple(_shorten(crumb) for crumb in crumbs)


def _shorten(crumb: str) -> str:
    crumb = " ".join(crumb.replace("`", "").split())
    return crumb if len(crumb) <= _MAX_CRUMB_CHARS else crumb[: _MAX_CRUMB_CHARS - 1] + "…"


def page_at(text: str, at: int, first: int | None) -> int | None:
    """Return the page of a character in a passage that begins on page `first`."""
    return None if first is None else first + text.count(PAGE_BREAK, 0, at)


@dataclass(frozen=True, slots=True)
class Unit:
    """What to quote: one span, and before it `lead`, where that stands apart (a header, a term)."""

    start: int
    end: int
    lead: Span | None = None
    section: tuple[str, ...] = ()
    """The headings in the text under which it stands, the outermost first."""
    term: str = ""
    """What it defines, where it is a definition."""
    opening: str = ""
    """How what it says of its term begins."""
    announced: str = ""
    """The sentence that announces the list, table or definitions that it is a part of."""

    def quote(self, text: str) -> str:
        """Return the quoted text; an ellipsis stands for what is left out after the lead."""
        body = text[self.start : self.end]
        if self.lead is None:
            return body
        return f"{text[self.lead[0] : self.lead[1]]} … {body}"


def _after_example(text: str, blocks: list[Block], at: int) -> int:
    """Return the block after code, or an indented one, before which a paragraph breaks off.

    With the paragraph that goes on in small letters: "you can use", the code, "before the call".
    """
    after = at + 1
    if after >= len(blocks) or {blocks[at].kind, blocks[after].kind} - {"paragraph", "code"}:
        return after
    opener, example = blocks[at], blocks[after]
    deeper = _indent_of(text, example.start) > _indent_of(text, opener.end - 1)
    if not (deeper or example.kind == "code") or not _is_open_ended(
        text[opener.start : opener.end]
    ):
        return after
    rest = blocks[after + 1] if after + 1 < len(blocks) else None
    goes_on = rest is not None and rest.kind == "paragraph" and text[rest.start].islower()
    return after + 1 + goes_on


def _indent_of(text: str, at: int) -> int:
    """Return the indent of the line that a character stands on."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:]
    return len(line) - len(line.lstrip(" \t"))


def _term_end(text: str, block: Block) -> int:
    """Return where the term of a definition ends: with its line, or before what it means there."""
    if text.startswith(block.title, block.start):
        end = block.start + len(block.title)
    else:
        line = text.find("\n", block.start, block.end)
        end = line if line >= 0 else block.end
    return min(end, block.start + _MAX_LEAD_CHARS)


def _row_unit(text: str, blocks: list[Block], row: Block, start: int, end: int, most: int) -> Unit:
    """Return the rows of the span with their header: as one span if the table is small."""
    at = blocks.index(row)
    held = [b for b in blocks if b.kind == "row" and b.start < end and start < b.end] or [row]
    while at >= 0 and blocks[at].kind == "row":
        at -= 1
    if at < 0 or blocks[at].kind != "header":
        return Unit(held[0].start, held[-1].end)
    header = blocks[at]
    if header is row or held[-1].end - header.start <= most:
        # A span over two tables ends in the header of the second, and holds rows of the first.
        return Unit(min(header.start, held[0].start), max(header.end, held[-1].end))
    return Unit(held[0].start, held[-1].end, (header.start, header.end))


def _is_step(block: Block) -> bool:
    return block.kind == "item" and any(map(str.isalnum, block.title))


def is_numbered_prose(text: str, block: Block) -> bool:
    """Whether an item is no step but a paragraph with a number, as in minutes or a contract."""
    return _is_step(block) and len(sentence_spans(text[block.start : block.end])) >= _PROSE


# -- all units of a text


def _find_code_units(text: str, doc: str, most: int) -> list[Unit]:
    """Return the functions and other parts of code; what is too long in pieces with its head."""
    found = []
    for section in find_code_sections(text, doc, inside=True):
        part = text[section.start : section.end]
        if not part.strip():
            continue
        start = section.start + len(part) - len(part.lstrip())
        block = Block("code", start, section.start + len(part.rstrip()))
        pieces = _pack_lines(text, block, most)
        head = (start, min(text.find("\n", start), start + _MAX_LEAD_CHARS))
        found += [
            Unit(left, right, head if left > start else None, section.path)
            for left, right in pieces
        ]
    return found


def find_units(text: str, most: int = MAX_UNIT_CHARS, *, doc: str = "") -> list[Unit]:
    """Return what can be quoted of a text, in order: all of it but headings, in fitting pieces.

    Where the name of the document `doc` says that it is source code, these are its functions.
    """
    if is_code(doc):
        return _find_code_units(text, doc, most)
    blocks = find_outer_blocks(text)
    levels = {heading.start: heading.level for heading in find_headings(text)}
    found: list[Unit] = []
    path: list[tuple[int, str]] = []
    announced = _find_announcements(text, blocks)
    at = 0
    while at < len(blocks):
        first = blocks[at]
        # A row of a table that was begun stands with its header.
        goes_on = first.kind == "row" and at > 0 and blocks[at - 1].kind in ("row", "header")
        after = at + 1 if goes_on else _run_end(text, blocks, at, most)
        if first.kind == "heading":
            level = levels.get(first.start, 1)
            path = [*((one, title) for one, title in path if one < level), (level, first.title)]
        else:
            size = blocks[after - 1].end - first.start
            tasks = find_tasks(text, first)
            if tasks:
                units = [Unit(begin, end) for begin, end in tasks]
            elif size <= _longest_run(text, blocks, at, most) and not goes_on:
                term = ",".join(_list_terms(text, blocks[at:after]))
                opening = _find_opening(text, first)
                units = [Unit(first.start, blocks[after - 1].end, term=term, opening=opening)]
            else:
                after = at + 1
                units = _split_block(text, blocks, at, most)
            section = tuple(title for _, title in path)
            found += [replace(unit, section=section, announced=announced[at]) for unit in units]
        at = after
    return found


def _find_announcements(text: str, blocks: list[Block]) -> list[str]:
    """Return for each block the sentence that announces it and those before it in its list."""
    found: list[str] = []
    for at, block in enumerate(blocks):
        before = blocks[at - 1] if at else None
        if block.kind not in _RUNS or before is None:
            found.append("")
        elif before.kind in _RUNS:
            found.append(found[-1])
        else:
            said = text[before.start : before.end] if before.kind == "paragraph" else ""
            spans = sentence_spans(said) if said.endswith(ANNOUNCES) else []
            found.append(said[spans[-1][0] :] if spans else "")
    return found


def _run_end(text: str, blocks: list[Block], at: int, most: int) -> int:
    """Return the block after those that belong together with one: a list, a table, an example."""
    first, after = blocks[at], at + 1
    if first.kind == "paragraph":
        joined = _after_example(text, blocks, at)
        if joined > after and blocks[joined - 1].end - first.start <= most:
            return joined
        if not text[: first.end].endswith(ANNOUNCES) or after == len(blocks):
            told = find_announced_blocks(text, blocks, at)
            return told if blocks[told - 1].end - first.start <= 2 * most else after
        if blocks[after].kind in ("paragraph", "heading"):
            return after
        joined = _end_of_kinds(blocks, after, ("definition",))
        if joined == after or blocks[joined - 1].end - first.start > most:
            joined = _run_end(text, blocks, after, most)
        return joined if blocks[joined - 1].end - first.start <= most else after
    kinds = ("header", "row") if first.kind in ("header", "row") else (first.kind,)
    if first.kind not in ("item", "header", "row") or is_numbered_prose(text, first):
        return after
    if find_item_term(text, first):
        return after
    after = _end_of_kinds(blocks, after, tuple(kind for kind in kinds if kind != "header"))
    return after if blocks[after - 1].end - first.start <= most else at + 1


def _find_opening(text: str, block: Block) -> str:
    """Return how the meaning of a definition begins, else nothing."""
    if block.kind != "definition":
        return ""
    at = _term_end(text, block)
    return text[at : min(block.end, at + _MAX_LEAD_CHARS)].lstrip(" \t\n:")


def _list_terms(text: str, blocks: Iterable[Block]) -> Iterator[str]:
    """Yield what definitions and items define."""
    for block in blocks:
        term = block.title if block.kind == "definition" else find_item_term(text, block)
        if term:
            yield term


def _longest_run(text: str, blocks: list[Block], at: int, most: int) -> int:
    """Return how long a run may be: longer where a sentence says how many things belong to it."""
    told = find_announced_blocks(text, blocks, at) > at + 1
    return 2 * most if told and not text[: blocks[at].end].endswith(ANNOUNCES) else most


def _end_of_kinds(blocks: list[Block], at: int, kinds: tuple[str, ...]) -> int:
    """Return the first block from one on that is of another kind."""
    while at < len(blocks) and blocks[at].kind in kinds:
        at += 1
    return at


def _split_block(text: str, blocks: list[Block], at: int, most: int) -> list[Unit]:
    """Return the units of one block that is too long to be quoted whole, or of a long table."""
    block = blocks[at]
    if block.kind in ("row", "header"):
        return [_row_unit(text, blocks, block, block.start, block.end, most)]
    if block.kind == "code":
        return [Unit(start, end) for start, end in _pack_lines(text, block, most)]
    lead = None
    if block.kind == "definition" and block.title:
        lead = (block.start, _term_end(text, block))
    units = []
    spans = [
        (a + block.start, b + block.start) for a, b in sentence_spans(text[block.start : block.end])
    ]
    for number, (start, end) in enumerate(spans):
        for a, b in spans[max(0, number - 1) : number + 2]:
            if max(end, b) - min(start, a) <= most:
                start, end = min(start, a), max(end, b)
        apart = lead if lead is not None and lead[1] < start else None
        units.append(Unit(start, end, apart, opening=_find_opening(text, block)))
    return units


def _pack_lines(text: str, block: Block, most: int) -> list[Span]:
    """Return the lines of a block in pieces of at most about `most` characters."""
    pieces: list[Span] = []
    start = at = block.start
    for line in text[block.start : block.end].splitlines(keepends=True):
        if at > start and at + len(line) - start > most:
            pieces.append((start, at))
            start = at
        at += len(line)
    return [*pieces, (start, block.end)] if start < block.end else pieces
