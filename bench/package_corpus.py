"""A real corpus of any size from the documentation of installed packages, and its knowledge base.

`python -m bench.package_corpus --out FILE [--passages 300000] [FOLDER…]` writes passages as rows of
JSON: paragraphs of manuals (text, Markdown, reStructuredText, HTML, also compressed) and docstrings
of Python modules. Without folders, those of this machine: `/usr/share/doc` and the folders from
which Python imports. `--kb DIR [--seconds S]` adds them to a knowledge base with word vectors, in
steps; run again, it goes on where it ended.
"""

import argparse
import ast
import asyncio
import gzip
import html
import json
import re
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter

from bench.scale import STEP, open_base, processor_seconds, stream_documents
from clew.text.unicode import digest
from clew.types import Document

_SUFFIXES = {".txt", ".md", ".rst", ".html", ".htm", ".py"}
_DEFAULT_FOLDERS = (Path("/usr/share/doc"), *(Path(one) for one in sys.path if one))
_MAX_FILE_BYTES = 5_000_000
_LEAST, _MOST = 120, 1500  # characters of a passage
_ENOUGH = 300  # characters from which on a passage takes no further paragraph
_LEAST_LETTERS = 0.6  # share of letters and spaces: tables of numbers and code are left out
_IGNORED_HTML = re.compile(r"(?is)<(script|style|head|nav)\b.*?</\1\s*>|<!--.*?-->")
_BLOCK_END = re.compile(r"(?i)</(p|div|li|tr|h\d|pre|dd|dt|table|section)\s*>|<br\s*/?>")
_TAG = re.compile(r"<[^>]{0,2000}>")
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")


def find_files(folders: list[Path]) -> Iterator[Path]:
    """Yield the files that may hold documentation, in a fixed order."""
    for folder in dict.fromkeys(one.resolve() for one in folders if one.is_dir()):
        for path in sorted(folder.rglob("*")):
            suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
            if suffix.lower() in _SUFFIXES and path.is_file():
                yield path


def read_text(path: Path) -> str:
    """Return a file's prose: an empty text for one that cannot be read as such."""
    if path.stat().st_size > _MAX_FILE_BYTES:
        return ""
    raw = path.read_bytes()
    try:
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, EOFError, UnicodeDecodeError):
        return ""
    suffix = (Path(path.stem) if path.suffix == ".gz" else path).suffix.lower()
    if suffix == ".py":
        return "\n\n".join(read_docstrings(text))
    return strip_tags(text) if suffix in (".html", ".htm") else text


def read_docstrings(code: str) -> Iterator[str]:
    """Yield the docstrings of a module, each after the name it describes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            found = ast.get_docstring(node)
            if found:
                yield f"{getattr(node, 'name', '')} {found}".strip()


def strip_tags(page: str) -> str:
    """Return the text of an HTML page, with a blank line after each block."""
    text = _BLOCK_END.sub("\n\n", _IGNORED_HTML.sub(" ", page))
    return html.unescape(_TAG.sub(" ", text))


def split_passages(text: str) -> Iterator[str]:
    """Yield passages of neighbouring paragraphs; what is no prose is left out."""
    held = ""
    for paragraph in (" ".join(one.split()) for one in _BLANK_LINES.split(text)):
        letters = sum(map(str.isalpha, paragraph)) + paragraph.count(" ")
        if not paragraph or letters < _LEAST_LETTERS * len(paragraph):
            continue
        if held and len(held) + len(paragraph) > _ENOUGH:
            yield held
            held = ""
        held = f"{held} {paragraph[:_MOST]}".strip()
    yield held


def make_passages(folders: list[Path]) -> Iterator[tuple[str, str]]:
    """Yield a title and a text for each passage that occurs for the first time."""
    seen: set[str] = set()
    for path in find_files(folders):
        title = " ".join(path.parts[-3:-1] + (path.name.split(".")[0],))
        for text in split_passages(read_text(path)):
            key = digest(text)[:16]
            if len(text) >= _LEAST and key not in seen:
                seen.add(key)
                yield title, text


def write_corpus(out: Path, folders: list[Path], most: int) -> int:
    """Write the corpus; return the number of passages."""
    count = 0
    with out.open("w", encoding="utf-8") as file:
        for count, (title, text) in enumerate(islice(make_passages(folders), most), start=1):
            row = {"id": f"package-{count}", "title": title, "text": text}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def load_corpus(file: Path, first: int) -> Iterator[Document]:
    """Yield the documents of a corpus from one on."""
    with file.open(encoding="utf-8") as lines:
        for line in islice(lines, first, None):
            row = json.loads(line)
            yield Document(
                digest(row["title"], row["text"]), row["text"], row["title"], (row["id"],)
            )


async def build(file: Path, folder: Path, seconds: float) -> None:
    """Add passages that are not in the knowledge base yet, until the time is up."""
    began, base = perf_counter(), await open_base(folder)
    have = (await base.store.counts()).documents
    documents = load_corpus(file, have)
    while perf_counter() - began < seconds and (step := list(islice(documents, STEP))):
        used = processor_seconds()
        await base.take(stream_documents(step))
        have += len(step)
        each = 1000 * (processor_seconds() - used) / len(step)
        print(f"{have:,} passages: {each:.1f} ms each", flush=True)
    await base.close()


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m bench.package_corpus", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--passages", type=int, default=300_000)
    parser.add_argument("--kb", type=Path)
    parser.add_argument("--seconds", type=float, default=1e9)
    given = parser.parse_args()
    if not given.out.exists():
        count = write_corpus(given.out, given.folders or list(_DEFAULT_FOLDERS), given.passages)
        print(f"{count:,} passages, {given.out.stat().st_size / 1e6:.0f} MB")
    if given.kb:
        asyncio.run(build(given.out, given.kb, given.seconds))


if __name__ == "__main__":
    main()
