"""Quote a block whole: the steps, the list or the definition that a question wants."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.reading.choose import measure_coverage
from clew.agents.reading.lists import wants_several
from clew.agents.reading.spans import asked_words
from clew.agents.rules.question_analysis import find_wanted_block
from clew.agents.rules.table import table_for
from clew.retrieve.question import strip_courtesy
from clew.text.definitions import holds_term
from clew.text.structure import find_headings, find_outer_blocks
from clew.text.unicode import split_words
from clew.text.word_forms import holds_form
from clew.types import Citation, Passage

_STEP = r"[Ss]tep\s+\d+[.:]?|第[一二三四五六七八九十\d]+步"
_ORDERED_ITEM = re.compile(rf"[ \t]*(?:\(?\d{{1,3}}[.)、]|{_STEP})")
_ITEM = re.compile(
    rf"[ \t]*(?:(?:[-*+•‣]|\(?\d{{1,3}}[.)、]|\(?[a-zA-Z][.)]|{_STEP})\s+\S|\(?\d{{1,3}}、\S)"
)
_LABELLED = re.compile(
    r"[ \t]*[*_]*(?P<label>[^\W\d_][^:\n]{0,40}?)[*_]*:[*_]*[ \t]+[^\n,]+,[^\n]*[^\s:]"
)
_FORM = 0.9  # from which two words are forms of one
_ROW = re.compile(r"[ \t]*\|.+\|")  # of a table, its header among them
_MIN_ITEMS = 2
_MAX_BLOCK_CHARS = 4_000  # characters of a block that is quoted
_MAX_DEFINITIONS_CHARS = 1_500  # of a run of definitions that is quoted
_LEAD_CHARS = 300  # characters before a block that announce it
_MIN_COVERAGE = 0.5  # share of the question's words in what announces a block
_ORDER_BONUS = 0.2  # for numbered items where steps are asked for


@dataclass(frozen=True, slots=True)
class Block:
    """Items in a row, from the line that introduces them."""

    passage: Passage
    start: int
    end: int
    items: int
    ordered: bool
    introduced: bool = False
    """Whether its first line introduces the items, and is none."""

    @property
    def text(self) -> str:
        """The quoted text."""
        return self.passage.text[self.start : self.end]


def quote_block(question: str, passages: Sequence[Passage]) -> Citation | None:
    """Cite the block of steps or of a list that covers the question best, if one does."""
    kind = find_wanted_block(question)
    passive = asks_passive(question)
    if not kind and passive:
        kind = "steps"
    elif kind != "steps" and wants_several(question):
        kind = "list"
    if kind not in ("steps", "list"):
        return None
    best, best_value = None, _MIN_COVERAGE
    for passage in passages:
        for block in chain(find_blocks(passage), _find_definitions(passage)):
            if kind == "steps" and is_table(block):
                continue  # a table lists things, it does not say how to do one
            if passive and not block.ordered:
                continue
            covered = measure_coverage(question, find_announcement(passage, block.start))
            value = covered + (_ORDER_BONUS if kind == "steps" and block.ordered else 0.0)
            if covered >= _MIN_COVERAGE and value > best_value:
                best, best_value = block, value
    if best is None:
        return None
    span = (_find_labelled(question, best) if kind == "list" else None) or (best.start, best.end)
    return make_citation(best.passage, SupportSpan(*span, 1.0))


def _find_labelled(question: str, block: Block) -> tuple[int, int] | None:
    """Return the line before a block that tells what is asked by itself: "Ingredients: salt, …".

    Such a line announces nothing below it.
    """
    text = block.passage.text[: block.start].rstrip()
    begin = text.rfind("\n") + 1
    found = _LABELLED.fullmatch(text, begin)
    words, asked = asked_words(found["label"]) if found else [], split_words(question)
    return (begin, len(text)) if words and all(holds_form(asked, w, _FORM) for w in words) else None


def asks_passive(question: str) -> bool:
    """Whether a question asks for steps without naming who takes them: "How is it changed?"."""
    return table_for(question).passive.match(strip_courtesy(question)) is not None


def is_table(block: Block) -> bool:
    """Whether a block ends in the row of a table."""
    return _ROW.match(block.text.splitlines()[-1]) is not None


def cite_items(
    block: Citation, terms: Sequence[str], passages: Sequence[Passage]
) -> tuple[Citation, ...]:
    """Cite the items of a list that have the numbers and codes of a question, where not all do.

    What the title or lead of the list says goes for all of its items.
    """
    home = next((one for one in passages if one.id == block.chunk), None)
    if home is None:
        return (block,)
    start = block.start - home.start
    above = f"{home.title} {home.heading} {find_lead(home, start)}"
    terms = [term for term in terms if not holds_term(term, above)]
    lines = list(re.finditer(r".+", block.quote))
    items = [line for line in lines if _ITEM.match(line[0])]
    having = [line for line in items if all(holds_term(term, line[0]) for term in terms)]
    if not 0 < len(having) < len(items) or len(items) < len(lines):
        return (block,)
    return tuple(
        make_citation(home, SupportSpan(start + line.start(), start + line.end(), 1.0))
        for line in having
    )


def has_items(text: str) -> bool:
    """Whether a text has a list."""
    return sum(_ITEM.match(line) is not None for line in text.splitlines()) >= _MIN_ITEMS


def has_entries(text: str) -> bool:
    """Whether a text has several entries of terms."""
    return sum(one.kind == "definition" for one in find_outer_blocks(text)) >= _MIN_ITEMS


def find_listings(passage: Passage) -> Iterator[tuple[Block, list[str], list[str]]]:
    """Yield each list, table and run of definitions with the names of its columns, and what it
    stands under: the title and the headings.
    """
    headings = list(find_headings(passage.text))
    for block in chain(find_blocks(passage), _find_definitions(passage)):
        above = [one.title for one in headings if one.start <= block.start][-1:]
        rows = [line for line in block.text.splitlines() if _ROW.match(line)]
        cells = rows[0].strip().strip("|").split("|") if rows else []
        columns = [cell.partition(": ")[0].strip() for cell in cells]
        yield block, columns, above or [passage.heading, passage.title]


def find_announcement(passage: Passage, start: int) -> str:
    """Return the titles and the lead of a block with its first line.

    They say what it is about; a long block may have the words of a question far apart.
    """
    first = passage.text[start:].partition("\n")[0]
    return f"{passage.title} {passage.heading} {find_lead(passage, start)} {first}"


def find_lead(passage: Passage, start: int) -> str:
    """Return what stands before a block, up to the heading of its section."""
    lead = passage.text[max(0, start - _LEAD_CHARS) : start]
    headings = [one.start for one in find_headings(lead)]
    return lead[headings[-1] :] if headings else lead


def find_blocks(passage: Passage) -> Iterator[Block]:
    """Yield each run of items or rows with the line before it; what is indented belongs to it."""
    at, lines = 0, passage.text.splitlines(keepends=True)
    spans = []
    for line in lines:
        spans.append((at, at + len(line), line))
        at += len(line)
    run: list[int] = []
    kind = _ITEM
    for number, (_, _, line) in enumerate([*spans, (at, at, "end")]):
        found = _ITEM.match(line) or _ROW.match(line)
        belongs = not line.strip() or line[:1] in " \t"
        if not belongs and (found is None or found.re is not kind):
            if len(run) >= _MIN_ITEMS:
                yield _make_block(passage, spans, run, number)
            run = []
        if found is not None:
            kind = found.re
            run.append(number)


def _find_definitions(passage: Passage) -> Iterator[Block]:
    """Yield each short run of definitions, with the paragraph before if that announces them."""
    blocks = find_outer_blocks(passage.text)
    for is_defined, run in groupby(enumerate(blocks), lambda one: one[1].kind == "definition"):
        numbers = [number for number, _ in run] if is_defined else []
        if len(numbers) < _MIN_ITEMS:
            continue
        first, last = numbers[0], numbers[-1]
        announces = first > 0 and blocks[first - 1].kind == "paragraph"
        start = blocks[first - announces].start
        if blocks[last].end - start <= _MAX_DEFINITIONS_CHARS:
            yield Block(passage, start, blocks[last].end, len(numbers), ordered=False)


def _make_block(
    passage: Passage, spans: Sequence[tuple[int, int, str]], run: Sequence[int], until: int
) -> Block:
    first = run[0]
    while first > 0 and not spans[first - 1][2].strip():
        first -= 1
    lead = first - 1 if first > 0 and spans[first - 1][2].rstrip().endswith((":", "：")) else run[0]
    start = spans[lead][0]
    end = min(spans[until - 1][1], start + _MAX_BLOCK_CHARS)
    text = passage.text[start:end]
    ordered = _ORDERED_ITEM.match(spans[run[0]][2]) is not None
    end = start + len(text.rstrip())
    return Block(passage, start, end, len(run), ordered, introduced=lead != run[0])
