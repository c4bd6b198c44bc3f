"""Glued and split words of PDF text against a reference: the same book as HTML or text.

    python -m bench.pdf_words BOOK.pdf REFERENCE [BOOK.pdf REFERENCE …]

REFERENCE is a file or a folder of HTML or text files of the same book. A word of the PDF that the
reference lacks is glued if it is two words in a row there, and split if it and its neighbour are
one word there. Both engines alone are measured beside the reader.
"""

import argparse
import io
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.machine import print_result
from clew.ingest.readers.html import read_page
from clew.ingest.readers.pdf import read_pdf
from clew.ingest.readers.source import DEFAULT_BUDGET, SourceFile, read_bytes
from clew.types import Document

_WORD = re.compile(r"[^\W\d_]+")


def read_reference(path: Path) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the words of the reference, and the pairs of words that stand in a row."""
    words: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.suffix.lower() not in {".html", ".htm", ".txt", ".text"}:
            continue
        text = file.read_text(errors="replace")
        page = read_page(text) if file.suffix.startswith(".h") else None
        found = [word.casefold() for word in _WORD.findall(page.text() if page else text)]
        words.update(found)
        pairs.update(zip(found, found[1:], strict=False))
    return words, pairs


def count_bad(text: str, words: set[str], pairs: set[tuple[str, str]]) -> tuple[int, int, int]:
    """Return the glued, the split and all words of a text."""
    found = [word.casefold() for word in _WORD.findall(text)]
    glued = split = 0
    for at, word in enumerate(found):
        if word in words:
            continue
        glued += any((word[:n], word[n:]) in pairs for n in range(1, len(word)))
        after = found[at + 1] if at + 1 < len(found) else ""
        before = found[at - 1] if at else ""
        split += (word + after) in words or (before + word) in words
    return glued, split, len(found)


def by_reader(path: Path) -> str:
    """The reader as it is."""
    return "".join(d.text for d in _documents(path))


def _documents(path: Path) -> Iterator[Document]:
    for item in read_pdf(SourceFile(path, path.name), DEFAULT_BUDGET):
        assert isinstance(item, Document)
        yield item


def by_pypdf(path: Path) -> str:
    """With pypdf alone, as it comes."""
    from pypdf import PdfReader

    raw = read_bytes(SourceFile(path, path.name), DEFAULT_BUDGET)
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(raw)).pages)


def by_pdfium(path: Path) -> str:
    """With pdfium alone, as it comes."""
    import pypdfium2

    document = pypdfium2.PdfDocument(read_bytes(SourceFile(path, path.name), DEFAULT_BUDGET))
    return "\n".join(document[n].get_textpage().get_text_range() for n in range(len(document)))


SIDES: dict[str, Callable[[Path], str]] = {
    "reader": by_reader,
    "pdfium": by_pdfium,
    "pypdf": by_pypdf,
}


def main() -> None:
    """Measure every pair, print a table and the figures as the last line."""
    parser = argparse.ArgumentParser(prog="python -m bench.pdf_words", description=__doc__)
    parser.add_argument("books", type=Path, nargs="+")
    parser.add_argument("--sides", default=",".join(SIDES))
    given = parser.parse_args()
    figures: dict[str, object] = {}
    for pdf, reference in zip(given.books[::2], given.books[1::2], strict=True):
        words, pairs = read_reference(reference)
        for side in given.sides.split(","):
            began = time.process_time()
            text = SIDES[side](pdf)
            seconds = time.process_time() - began
            glued, split, total = count_bad(text, words, pairs)
            row = {
                "words": total,
                "glued": round(glued / max(1, total), 5),
                "split": round(split / max(1, total), 5),
                "seconds": round(seconds, 1),
            }
            figures[f"{pdf.name} {side}"] = row
            print(f"{pdf.name:36}{side:10}{row}")
    print_result("pdf_words", figures, {"books": len(given.books) // 2})


if __name__ == "__main__":
    main()
