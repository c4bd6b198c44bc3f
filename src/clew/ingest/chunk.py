"""Chunkers: split a document into chunks with their character offsets.

For every chunker: `chunk.text == document.text[chunk.start:chunk.end]`, chunks come in order,
none is empty, and together they cover every visible character of the document. Token counts are
approximate.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from clew.errors import ConfigError
from clew.ingest.atoms import Atom, find_sections, has_structure, split_atoms
from clew.text.sentences import sentence_spans
from clew.text.structure import CRUMB_SEPARATOR, Section
from clew.text.tables import read_tables, write_row_place
from clew.text.unicode import UNSPACED, UNSPACED_CHAR, digest
from clew.types import Chunk, Document

Span = tuple[int, int]
_SPACED_TOKEN = re.compile(r"\w{1,6}|[^\w\s]")
_ANY_TOKEN = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])\w){{1,6}}|[^\w\s]")
_LONG_TEXT = 100_000  # characters
_MAX_GRAPHEME = 32  # code points; real graphemes are shorter, a hostile one may be cut
_ZERO_WIDTH_JOINER = "\u200d"
_WHOLE_TEXT_RATIO = 1.25  # a text up to this many times the size is not split: no tiny tail
_SHORT_TAIL_RATIO = 0.25  # a last chunk below this share of the size is merged into the one before
SizedSpan = tuple[int, int, int]  # start, end, tokens
STRUCTURE_VERSION = "structure 2"
"""Part of the stamp of documents that are split at their structure: others are split as ever."""


def token_count(text: str) -> int:
    """Estimate the number of tokens."""
    pattern = _token_pattern(text)
    if len(text) > _LONG_TEXT:  # slower, but a list of all tokens takes seven times the text
        return sum(1 for _ in pattern.finditer(text))
    return len(pattern.findall(text))


def trim_span(text: str, start: int, end: int) -> Span:
    """Strip white space from both ends of a span."""
    piece = text[start:end]
    left = start + len(piece) - len(piece.lstrip())
    return left, max(left, start + len(piece.rstrip()))


def token_windows(text: str, start: int, end: int, size: int, overlap: int = 0) -> Iterator[Span]:
    """Split a span into windows of at most `size` tokens, at white space where possible."""
    starts: list[int] = []
    first = reached = start
    for token in _token_pattern(text).finditer(text, start, end):
        starts.append(token.start())
        if len(starts) <= size:
            continue
        cut = _find_last_gap(text, starts)
        left, right = trim_span(text, first, _align_to_grapheme(text, starts[cut], first))
        # A cut moved back to a grapheme boundary can leave only the overlap, or white space.
        if left < right and right > reached:
            yield left, right
            reached = right
        next_start = _find_first_gap(text, starts, cut - overlap, cut)
        first = _align_to_grapheme(text, starts[next_start], first)
        del starts[:next_start]
    left, right = trim_span(text, first, end)
    if left < right and right > reached:
        yield left, right


def _token_pattern(text: str) -> re.Pattern[str]:
    if text.isascii() or not UNSPACED_CHAR.search(text):
        return _SPACED_TOKEN
    return _ANY_TOKEN


def _find_last_gap(text: str, starts: list[int]) -> int:
    """Find a gap in the window's last quarter, else cut at its end."""
    full = len(starts) - 1
    for at in range(full, full * 3 // 4, -1):
        if _is_gap(text, starts[at]):
            return at
    return full


def _find_first_gap(text: str, starts: list[int], at: int, cut: int) -> int:
    for again in range(at, cut):
        if _is_gap(text, starts[again]):
            return again
    return cut


def _is_gap(text: str, at: int) -> bool:
    before = text[at - 1]
    if before.isspace():
        return True
    near = UNSPACED_CHAR.match(before) and text[at].isalnum()
    return bool(near) and not _is_inside_grapheme(text, at, at)


def _align_to_grapheme(text: str, at: int, floor: int) -> int:
    """Move a cut back so that it splits no grapheme."""
    for cut in range(at, max(floor, at - _MAX_GRAPHEME), -1):
        if not _is_inside_grapheme(text, cut, floor):
            return cut
    return at


def _is_inside_grapheme(text: str, at: int, floor: int) -> bool:
    here, before = text[at], text[at - 1]
    if before.isspace():
        return False
    if (
        here == _ZERO_WIDTH_JOINER
        or before == _ZERO_WIDTH_JOINER
        or unicodedata.category(here)[0] == "M"
    ):
        return True
    if "\u1160" <= here <= "\u11ff" or "\U0001f3fb" <= here <= "\U0001f3ff":  # jamo, skin tones
        return True
    if not (_is_flag_letter(here) and _is_flag_letter(before)):
        return False
    # Flags are pairs of regional indicators: cut only between pairs, counted from the last cut.
    first = at
    while first > floor and _is_flag_letter(text[first - 1]):
        first -= 1
    return (at - first) % 2 == 1


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


@dataclass(frozen=True)
class ByTokens:
    """Splits into windows of about `size` tokens that overlap by `overlap`."""

    size: int = 400
    overlap: int = 50

    def __post_init__(self) -> None:
        _check_sizes(self.size, self.overlap)

    def __call__(self, document: Document) -> list[Chunk]:
        text = document.text
        spans = list(token_windows(text, 0, len(text), self.size, self.overlap))
        if not follows_structure(document, self.size):
            return _make_chunks(document, spans)
        sections = find_sections(document)
        begins = [section.start for section in sections]
        return [
            chunk
            for start, end in spans
            for chunk in _make_chunks(
                document, [(start, end)], sections[bisect_right(begins, start) - 1].heading
            )
        ]


@dataclass(frozen=True)
class BySentences:
    """Packs whole sentences up to about `size` tokens; chunks overlap by about `overlap` tokens."""

    size: int = 400
    overlap: int = 0

    def __post_init__(self) -> None:
        _check_sizes(self.size, self.overlap)

    def __call__(self, document: Document) -> list[Chunk]:
        if follows_structure(document, self.size):
            return _pack_sections(document, self.size, self.overlap)
        return _make_chunks(document, _pack_text(document.text, 0, self.size, self.overlap))


@dataclass(frozen=True)
class ByHeadings:
    """Splits into sections, and by sentences where a section exceeds about `size` tokens."""

    size: int = 400

    def __post_init__(self) -> None:
        _check_sizes(self.size, 0)

    def __call__(self, document: Document) -> list[Chunk]:
        return [
            chunk
            for section in find_sections(document)
            for chunk in _split_section(document, section, self.size, 0)
        ]


def follows_structure(document: Document, size: int) -> bool:
    """Whether a document is split at its structure: it has one, and does not fit in one chunk."""
    return has_structure(document) and token_count(document.text) > size * _WHOLE_TEXT_RATIO


def _pack_sections(document: Document, size: int, overlap: int) -> list[Chunk]:
    """Pack whole sections that stand below the same heading, and split those that are too long."""
    chunks: list[Chunk] = []
    group: list[Section] = []
    tokens = 0

    def flush() -> None:
        if len(group) == 1:
            chunks.extend(_split_section(document, group[0], size, overlap))
        elif group:
            span = trim_span(document.text, group[0].start, group[-1].end)
            outer = group[0].path[: group[0].outer]
            chunks.extend(_make_chunks(document, [span], CRUMB_SEPARATOR.join(outer)))
        group.clear()

    for section in find_sections(document):
        length = token_count(document.text[section.start : section.end])
        outer = group[0].path[: group[0].outer] if group else ()
        if group and (tokens + length > size or section.path[: len(outer)] != outer):
            flush()
        tokens = length if not group else tokens + length
        group.append(section)
    flush()
    return chunks


def _split_section(document: Document, section: Section, size: int, overlap: int) -> list[Chunk]:
    """Split a section at its atoms; a chunk that continues a definition is headed by its term."""
    start, end = trim_span(document.text, section.start, section.end)
    if start == end:
        return []
    if token_count(document.text[start:end]) <= size * _WHOLE_TEXT_RATIO:
        return _make_chunks(document, [(start, end)], section.heading)
    units: list[SizedSpan] = []
    atoms = list(split_atoms(document, start, end, size, token_count))
    for atom in atoms:
        if atom.tokens <= size:
            units.append((atom.start, atom.end, atom.tokens))
            continue
        for left, right in token_windows(document.text, atom.start, atom.end, size):
            units.append((left, right, token_count(document.text[left:right])))
    begins = [atom.start for atom in atoms]
    chunks = []
    for left, right in _pack_units(units, size, overlap):
        within = atoms[max(0, bisect_right(begins, left) - 1) : bisect_left(begins, right)]
        path = (*section.path, *_find_shared_terms(within))
        chunks += _make_chunks(document, [(left, right)], CRUMB_SEPARATOR.join(path))
    return chunks


def _find_shared_terms(atoms: Sequence[Atom]) -> tuple[str, ...]:
    """Return the terms of the definitions that all atoms continue; one may end among them."""
    shared = atoms[0].terms if atoms else ()
    for atom in atoms:
        while shared != atom.terms[: len(shared)]:
            shared = shared[:-1]
    return shared


def _check_sizes(size: int, overlap: int) -> None:
    if size < 1 or not 0 <= overlap <= size // 2:
        raise ConfigError(
            f"invalid chunk size {size} or overlap {overlap}: set a size of at least 1 and an "
            "overlap of at least 0 and at most half of the size"
        )


def _make_chunks(document: Document, spans: Iterable[Span], heading: str = "") -> list[Chunk]:
    pages = document.page_starts
    return [
        Chunk(
            id=digest(document.id, str(start), str(end)),
            document=document.id,
            start=start,
            end=end,
            text=document.text[start:end],
            title=document.title,
            heading=heading,
            page=max(1, bisect_right(pages, start)) if pages else None,
        )
        for start, end in spans
    ]


def _pack_text(text: str, offset: int, size: int, overlap: int) -> list[Span]:
    """Pack the sentences of a text that begins at `offset` in its document into spans."""
    start, end = trim_span(text, 0, len(text))
    if start == end:
        return []
    # A token has at least one character, so short texts need no counting.
    if end - start <= size or token_count(text) <= size * _WHOLE_TEXT_RATIO:
        return [(start + offset, end + offset)]
    spans = _pack_units(_split_units(text, size), size, overlap)
    return [(start + offset, end + offset) for start, end in spans]


def _split_units(text: str, size: int) -> list[SizedSpan]:
    """Return sentences with their token counts; those longer than a chunk are split."""
    units: list[SizedSpan] = []
    for start, end in sentence_spans(text):
        tokens = token_count(text[start:end])
        if tokens <= size:
            units.append((start, end, tokens))
            continue
        for left, right in token_windows(text, start, end, size):
            units.append((left, right, token_count(text[left:right])))
    return units


def _pack_units(units: list[SizedSpan], size: int, overlap: int) -> list[Span]:
    groups: list[tuple[int, int]] = []  # half-open ranges of units
    first = size_so_far = 0
    for index, (_, _, tokens) in enumerate(units):
        if index > first and size_so_far + tokens > size:
            groups.append((first, index))
            first, size_so_far = _overlap_start(
                units, first + 1, index, min(overlap, size - tokens)
            )
        size_so_far += tokens
    groups.append((first, len(units)))
    if len(groups) > 1 and _is_short_tail(units, groups, size):
        groups[-2:] = [(groups[-2][0], len(units))]
    return [(units[first][0], units[after - 1][1]) for first, after in groups]


def _overlap_start(units: list[SizedSpan], least: int, at: int, limit: int) -> tuple[int, int]:
    """Go back from `at` over units that fit in `limit` tokens; return the first and their size."""
    tokens = 0
    while at > least and tokens + units[at - 1][2] <= limit:
        at -= 1
        tokens += units[at][2]
    return at, tokens


def _is_short_tail(units: list[SizedSpan], groups: list[tuple[int, int]], size: int) -> bool:
    (before, _), (_, after) = groups[-2:]
    fresh = sum(tokens for _, _, tokens in units[groups[-2][1] : after])
    together = sum(tokens for _, _, tokens in units[before:after])
    return fresh < size * _SHORT_TAIL_RATIO and together <= size * _WHOLE_TEXT_RATIO


def split_rows(document: Document, split: Callable[[Document], list[Chunk]]) -> list[Chunk]:
    """Split a file of rows at its rows, each headed by its place, and any other with `split`.

    A row that is too long for one chunk is split as a document of its own would be.
    """
    tables = read_tables(document.text, document.metadata)
    size = getattr(split, "size", 0)
    chunks: list[Chunk] = []
    for table in tables:
        for number, start, end in table.spans():
            spans = [(start, end)]
            if size and end - start > size:
                spans = _pack_text(document.text[start:end], start, size, 0)
            chunks += _make_chunks(document, spans, write_row_place(table.name, number))
    return chunks if tables else split(document)


CHUNKERS: dict[str, ByTokens | BySentences | ByHeadings] = {
    "sentences": BySentences(),
    "tokens": ByTokens(),
    "headings": ByHeadings(),
}
