"""Where a span stands: its sections, the term it defines and its page; and what to quote around it.

A sentence that refers back comes with the one before, a definition with its term, a row with its
header, a step with the steps before and after, code with the sentence that announces it.
"""

import re
from bisect import bisect_right
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
# Words that refer to the sentence before when they begin one.
_REFERS_BACK = re.compile(
    r"(?:this|that|these|those|it|they|such|both|the former|the latter|otherwise|therefore|thus|"
    r"hence|instead|dies|diese|dieser|dieses|cela|ceci|cette|ces|esto|este|esta|estos|это|эти|этот)"
    r"\b|[这此该該其這]|これ|それ|この|その|هذا|هذه|ذلك",
    re.IGNORECASE,
)
_PROSE = 4  # sentences, its number among them, from which an item is a paragraph
_RUNS = ("item", "definition", "row", "header")  # kinds of blocks of which several belong together


def _is_open_ended(text: str) -> bool:
    """Whether a text ends in a colon, or in the middle of a sentence: something may follow."""
    bare = text.rstrip()
    return bare.endswith(ANNOUNCES) or bare[-1:].isalnum()


_MAX_CRUMB_CHARS = 80
_INDENTED = re.compile(r"\n[ \t]*\n[ \t]+\S")
_NOTE_END = r"(?:\n(?![ \t]*(?:\n|\[|#|\Z)).*)*)"  # the lines that go on
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


def quotable_unit(
    text: str, start: int, end: int, most: int = MAX_UNIT_CHARS, *, doc: str = ""
) -> Unit:
    """Return the unit to quote around a span of a text, of at most about `most` characters.

    One that only announces something (`… in this file:`) goes on with what it announces. Where the
    name of the document `doc` says that it is source code, a unit is a function or a part of it.
    """
    if is_code(doc):
        units = _find_code_units(text, doc, most)
        held = [one for one in units if one.start < end and start < one.end]
        most_of_it = max(
            held, key=lambda one: min(one.end, end) - max(one.start, start), default=None
        )
        return most_of_it or Unit(start, end)
    blocks = find_blocks(text)
    return _with_announced(text, blocks, _unit_around(text, blocks, start, end, most), most)


def _with_announced(text: str, blocks: list[Block], unit: Unit, most: int) -> Unit:
    """Return a unit that ends in a colon with the code, list or paragraph after it, as it fits.

    One whose last sentence tells how many things follow, with these.
    """
    if not text[unit.start : unit.end].rstrip().endswith(ANNOUNCES):
        last = next((at for at, one in enumerate(blocks) if one.end == unit.end), None)
        if last is None:
            return unit
        end = max(unit.end, blocks[find_announced_blocks(text, blocks, last) - 1].end)
        return replace(unit, end=end) if end - unit.start <= 2 * most else unit
    after = [b for b in blocks if b.start >= unit.end]
    if not after or after[0].kind == "heading":
        return unit
    first = after[0]
    end = first.end
    if end - first.start > most:  # as many lines or words as fit
        cut = first.start + most
        end = max(
            text.rfind("\n", first.start, cut), text.rfind(" ", first.start, cut), first.start
        )
    for block in after[1:] if first.kind in _RUNS else ():
        same = block.depth == first.depth and block.kind in (first.kind, "row")
        if block.depth < first.depth or (block.depth == first.depth and not same):
            break
        if same and block.end - unit.start <= 2 * most:
            end = block.end
    return replace(unit, end=end)


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


def has_examples(text: str) -> bool:
    """Whether a sentence of a text breaks off before an indented line."""
    if not _INDENTED.search(text):
        return False
    blocks = find_blocks(text)
    return any(_after_example(text, blocks, at) > at + 1 for at in range(len(blocks)))


def find_note(text: str, mark: str) -> Span | None:
    """Return where a text has the footnote of a mark: "[1] …", or "[^1]: …" of the mark "^1"."""
    found = re.search(rf"^[ \t]*(\[{re.escape(mark)}\]:?[ \t]+\S.*{_NOTE_END}", text, re.MULTILINE)
    return found.span(1) if found else None


def _example_unit(text: str, blocks: list[Block], inner: Block, most: int) -> Unit | None:
    """Return the sentence that breaks off before an indented line, that line and what goes on."""
    place = blocks.index(inner)
    for at in range(max(0, place - 2), place + 1):
        after = _after_example(text, blocks, at)
        if after > max(at + 1, place):
            spans = sentence_spans(text[blocks[at].start : blocks[at].end])
            begin = blocks[at].start + (spans[-1][0] if spans else 0)
            end = blocks[after - 1].end
            return Unit(begin, end) if end - begin <= most else None
    return None


def _indent_of(text: str, at: int) -> int:
    """Return the indent of the line that a character stands on."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:]
    return len(line) - len(line.lstrip(" \t"))


def _unit_around(text: str, blocks: list[Block], start: int, end: int, most: int) -> Unit:
    around = [b for b in blocks if b.start < end and start < b.end]
    inner = around[-1] if around else None
    if inner is None:
        return _sentences_around(text, start, end, (0, len(text)), most)
    if inner.kind in ("row", "header"):
        return _row_unit(text, blocks, inner, start, end, most)
    example = _example_unit(text, blocks, inner, most)
    if example is not None and start < example.end and example.start < end:
        return replace(example, start=min(example.start, max(start, around[0].start)))
    if inner.kind == "code":
        return _code_unit(text, blocks, inner, most)
    if steps := _steps_unit(text, blocks, around, most):
        return steps
    if part := next((b for b in around if _is_quoted_whole(text, b, most)), None):
        return Unit(part.start, part.end)  # the outermost that fits
    lines = inner.kind == "paragraph" and "\n" in text[inner.start : inner.end]
    if lines and inner.end - inner.start <= most // 2:
        return Unit(inner.start, inner.end)  # lines that belong together, such as a signature
    unit = _sentences_around(text, start, end, (inner.start, inner.end), most)
    defined = [block for block in around if block.kind == "definition"]
    if not defined or not defined[-1].title:
        return unit
    term_end = _term_end(text, defined[-1])
    if unit.start <= term_end:
        return Unit(defined[-1].start, unit.end)
    return Unit(unit.start, unit.end, (defined[-1].start, term_end))


def _term_end(text: str, block: Block) -> int:
    """Return where the term of a definition ends: with its line, or before what it means there."""
    if text.startswith(block.title, block.start):
        end = block.start + len(block.title)
    else:
        line = text.find("\n", block.start, block.end)
        end = line if line >= 0 else block.end
    return min(end, block.start + _MAX_LEAD_CHARS)


def _sentences_around(text: str, start: int, end: int, within: Span, most: int) -> Unit:
    """Return the sentences that hold the span, with the one before if they refer to it."""
    first, last = within
    spans = [(a + first, b + first) for a, b in sentence_spans(text[first:last])]
    held = [at for at, (a, b) in enumerate(spans) if a < end and start < b]
    if not held:
        return Unit(start, end)
    low, high = held[0], held[-1]
    if low and _REFERS_BACK.match(text, spans[low][0]):
        low -= 1 if spans[high][1] - spans[low - 1][0] <= most else 0
    if high + 1 < len(spans) and text[: spans[high][1]].endswith(ANNOUNCES):
        high += 1 if spans[high + 1][1] - spans[low][0] <= most else 0
    return Unit(spans[low][0], spans[high][1])


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


def _code_unit(text: str, blocks: list[Block], code: Block, most: int) -> Unit:
    """Return the code, and the sentence before it if that announces it."""
    at = blocks.index(code)
    before = blocks[at - 1] if at else None
    if before is None or before.kind not in ("paragraph", "item", "definition"):
        return Unit(code.start, code.end)
    spans = sentence_spans(text[before.start : min(before.end, code.start)])
    if not spans or not text[before.start : before.start + spans[-1][1]].endswith(ANNOUNCES):
        return Unit(code.start, code.end)
    begin = before.start + spans[-1][0]
    return Unit(begin if code.end - begin <= 2 * most else code.start, code.end)


def _steps_unit(text: str, blocks: list[Block], around: list[Block], most: int) -> Unit | None:
    """Return the numbered list that holds the span, with its announcement, if it is short."""
    step = next((b for b in around if b.kind == "item" and b.title[-1:] in ".)"), None)
    if step is None or not any(map(str.isalnum, step.title)) or is_numbered_prose(text, step):
        return None
    same = [b for b in blocks if b.depth == step.depth]
    at = bisect_right([b.start for b in same], step.start) - 1
    low = high = at
    while low and _is_step(same[low - 1]):
        low -= 1
    while high + 1 < len(same) and _is_step(same[high + 1]):
        high += 1
    begin, finish = same[low].start, same[high].end
    if low and same[low - 1].kind == "paragraph" and text[: same[low - 1].end].endswith(ANNOUNCES):
        spans = sentence_spans(text[same[low - 1].start : same[low - 1].end])
        begin = same[low - 1].start + spans[-1][0] if spans else begin
    return Unit(begin, finish) if finish - begin <= 2 * most else None


def _is_step(block: Block) -> bool:
    return block.kind == "item" and any(map(str.isalnum, block.title))


def _is_quoted_whole(text: str, block: Block, most: int) -> bool:
    part = block.kind in ("definition", "item") and not is_numbered_prose(text, block)
    return part and block.end - block.start <= most


def is_numbered_prose(text: str, block: Block) -> bool:
    """Whether an item is no step but a paragraph with a number, as in minutes or a contract."""
    return _is_step(block) and len(sentence_spans(text[block.start : block.end])) >= _PROSE


def find_term(quote: str) -> str:
    """Return what a quote defines, if it begins with a definition."""
    return next(_list_terms(quote, find_blocks(quote)[:1]), "")


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
