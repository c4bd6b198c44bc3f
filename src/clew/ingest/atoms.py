"""Splits a document into sections, and these into atoms: the pieces that a chunk never cuts.

An atom is a sentence of prose, a whole block of code, a definition with its term, a list item, a
table row; a heading or a sentence that ends in a colon stays with what follows. What is larger than
a chunk is split further: code by lines, definitions and items by the blocks within them.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from clew.text.code_outline import CODE_FORMAT, find_code_sections
from clew.text.sentences import sentence_spans
from clew.text.structure import Block, Section, find_blocks, split_sections
from clew.text.structure import has_structure as text_has_structure
from clew.types import Document

_ANNOUNCES = (":", "：")
CountTokens = Callable[[str], int]


class Atom(NamedTuple):
    """A piece that is not cut, its tokens, and the terms of the definitions it continues."""

    start: int
    end: int
    tokens: int
    terms: tuple[str, ...] = ()


def has_structure(document: Document) -> bool:
    """Whether a document has more than sentences, so that chunks follow its structure."""
    return document.metadata.get("format") == CODE_FORMAT or text_has_structure(document.text)


def find_sections(document: Document) -> list[Section]:
    """Return the sections of a document; of source code its classes and functions."""
    if document.metadata.get("format") == CODE_FORMAT:
        return find_code_sections(document.text, document.names[0] if document.names else "")
    return split_sections(document.text)


def split_atoms(
    document: Document, start: int, end: int, size: int, count: CountTokens
) -> list[Atom]:
    """Split a section into atoms of at most `size` tokens."""
    text = document.text[start:end]
    splitter = _Splitter(text, start, size, count)
    if document.metadata.get("format") == CODE_FORMAT:
        return splitter.split_code(0, len(text), ())
    blocks = find_blocks(text)
    return splitter.glue(list(splitter.split_blocks(blocks, ())), blocks)


class _Splitter:
    """Splits the text of one section; spans are shifted by its offset in the document."""

    def __init__(self, text: str, offset: int, size: int, count: CountTokens) -> None:
        self._text = text
        self._offset = offset
        self._size = size
        self._count = count

    def split_blocks(self, blocks: list[Block], terms: tuple[str, ...]) -> Iterator[Atom]:
        """Yield the atoms of blocks of one depth, with the deeper blocks that follow each."""
        depth = blocks[0].depth if blocks else 0
        tops = [at for at, block in enumerate(blocks) if block.depth <= depth]
        for at, after in pairwise([*tops, len(blocks)]):
            yield from self._split_block(blocks[at], blocks[at + 1 : after], terms)

    def _split_block(
        self, block: Block, inner: list[Block], terms: tuple[str, ...]
    ) -> Iterator[Atom]:
        if block.kind == "paragraph":
            yield from self._sentences(block.start, block.end, terms)
            return
        tokens = self._count(self._text[block.start : block.end])
        if tokens <= self._size:
            yield self._atom(block.start, block.end, tokens, terms)
        elif block.kind == "code":
            yield from self.split_code(block.start, block.end, terms)
        elif inner:
            yield from self._sentences(block.start, inner[0].start, terms)
            held = (*terms, block.title) if block.kind == "definition" else terms
            yield from self.split_blocks(inner, held)
        else:
            yield from self._sentences(block.start, block.end, terms)

    def _atom(self, start: int, end: int, tokens: int, terms: tuple[str, ...]) -> Atom:
        return Atom(start + self._offset, end + self._offset, tokens, terms)

    def _sentences(self, start: int, end: int, terms: tuple[str, ...]) -> Iterator[Atom]:
        for left, right in sentence_spans(self._text[start:end]):
            piece = self._text[start + left : start + right]
            yield self._atom(start + left, start + right, self._count(piece), terms)

    def split_code(self, start: int, end: int, terms: tuple[str, ...]) -> list[Atom]:
        """Split code by lines, joined up to a quarter of a chunk so that few ends are possible."""
        found: list[Atom] = []
        at = start
        for line in self._text[start:end].split("\n"):
            bare = line.strip()
            tokens = self._count(bare) if bare else 0
            first = at + len(line) - len(line.lstrip())
            if bare:
                last = found[-1] if found else None
                if last and last.tokens + tokens <= self._size // 4:
                    stop = at + len(line.rstrip()) + self._offset
                    found[-1] = Atom(last.start, stop, last.tokens + tokens, terms)
                else:
                    found.append(self._atom(first, at + len(line.rstrip()), tokens, terms))
            at += len(line) + 1
        return found

    def glue(self, atoms: list[Atom], blocks: list[Block]) -> list[Atom]:
        """Join headings, table headers and announcing sentences with the atom that follows."""
        stays = {b.start + self._offset for b in blocks if b.kind in ("heading", "header")}
        found: list[Atom] = []
        open_end = False
        for atom in atoms:
            last = found[-1] if found else None
            if last and open_end and last.tokens + atom.tokens <= self._size:
                found[-1] = Atom(last.start, atom.end, last.tokens + atom.tokens, last.terms)
            else:
                found.append(atom)
            piece = self._text[: atom.end - self._offset]
            open_end = atom.start in stays or piece.endswith(_ANNOUNCES)
        return found
