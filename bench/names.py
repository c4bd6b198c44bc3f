"""Names that the offline extractor finds, against marked ones: precision and recall.

    python -m bench.names --pages UNPACKED --rfc RFCS [--data ../shared/data]

Re-DocRED has gold entities of encyclopaedia passages. MINE has none: the entities of its best
published extractor stand for them, so its figures compare versions of ours only. The technical
sample (`bench/names_marked.json`) marks by hand every name in 700 characters of manual pages,
handbooks and RFCs, read from unpacked Debian packages; `optional` names count neither way. Notes
are mails, minutes, a contract and the like, written for this (`bench/names_notes.json`).
"""

import argparse
import asyncio
import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.machine import print_result
from clew.extract.rules import Offline
from clew.ingest.chunk import BySentences
from clew.ingest.files import read
from clew.ingest.readers.source import make_document
from clew.text.names import name_key
from clew.types import LITERAL_TYPES, Document

MARKED = Path(__file__).with_name("names_marked.json")
NOTES = Path(__file__).with_name("names_notes.json")


async def find_names(document: Document) -> list[tuple[str, str, list[tuple[int, int]]]]:
    """Return the names of a document: name, type, spans."""
    found = await Offline()(document, BySentences()(document))
    return [(e.name, e.type, list(e.spans)) for one in found for e in one.entities]


def load(path: Path) -> Any:
    """Load a JSON file."""
    return json.loads(path.read_text())


def share(hits: int, total: int) -> float:
    """Return a share, 0 of nothing."""
    return round(hits / total, 4) if total else 0.0


async def measure_redocred(rows: list[Any]) -> dict[str, Any]:
    """Compare with gold entities: one found by any of its mentions counts as found."""
    right = predicted = found = gold = 0
    for row in rows:
        text = " ".join(" ".join(sentence) for sentence in row["sents"])
        names = await find_names(make_document(text, row["title"]))
        keys = {name_key(name) for name, _, spans in names if spans}
        mentions = [{name_key(m["name"]) for m in one} for one in row["vertexSet"]]
        every = set().union(*mentions)
        right += len(keys & every)
        predicted += len(keys)
        found += sum(bool(keys & one) for one in mentions)
        gold += len(mentions)
    return {"precision": share(right, predicted), "recall": share(found, gold)}


async def measure_mine(folder: Path, most: int) -> dict[str, Any]:
    """Compare with the entities of the best published extractor."""
    essays = load(folder / "essays.json")
    right = predicted = found = gold = 0
    with zipfile.ZipFile(folder / "KGGen.zip") as archive:
        for number, essay in enumerate(essays[:most], 1):
            name = f"kggen/{number}.json"
            if name not in archive.namelist():
                continue
            graph = json.loads(archive.read(name))
            text = essay["content"] if isinstance(essay, dict) else essay
            wanted = {name_key(e) for e in graph["entities"]} & set(_phrases(text))
            names = await find_names(make_document(text))
            keys = {name_key(n) for n, kind, spans in names if spans and kind not in LITERAL_TYPES}
            right += len(keys & wanted)
            predicted += len(keys)
            found += len(wanted & keys)
            gold += len(wanted)
    return {"precision": share(right, predicted), "recall": share(found, gold)}


def _phrases(text: str) -> Iterator[str]:
    words = name_key(text).split()
    for size in range(1, 5):
        yield from (" ".join(words[at : at + size]) for at in range(len(words) - size + 1))


async def measure_marked(pages: Path, rfcs: Path, show: bool) -> dict[str, Any]:
    """Compare with the names marked by hand."""
    total: Counter[str] = Counter()
    for row in load(MARKED):
        document = await _read_page(row["page"], pages, rfcs)
        if document is None:
            continue
        start = document.text.index(row["begins"])
        end = start + row["length"]
        names = {
            name
            for name, kind, spans in await find_names(document)
            if kind not in LITERAL_TYPES and any(start <= a and b <= end for a, b in spans)
        }
        total.update(_count(row, names, row["page"].rsplit("/", 1)[-1] if show else ""))
    return _to_figures(total)


async def measure_notes(show: bool) -> dict[str, Any]:
    """Compare with the names marked in short texts of everyday kinds."""
    total: Counter[str] = Counter()
    for number, row in enumerate(load(NOTES), 1):
        found = await find_names(make_document(row["text"]))
        names = {name for name, kind, spans in found if kind not in LITERAL_TYPES and spans}
        total.update(_count(row, names, f"note {number}" if show else ""))
    return _to_figures(total)


def _count(row: Any, names: set[str], called: str) -> dict[str, int]:
    """Count the names of one text that are right, and the marks that are found."""
    marks = [set(map(_key, one.split("|"))) for one in row["names"]]
    keys = {_key(name) for name in names} - {_key(one) for one in row["optional"]}
    every = set().union(*marks)
    if called:
        missed = [one for one, m in zip(row["names"], marks, strict=True) if not m & keys]
        print(f"{called}\n   wrong  {sorted(keys - every)}\n   missed {missed}")
    return {
        "right": len(keys & every),
        "named": len(keys),
        "found": sum(bool(keys & one) for one in marks),
        "marked": len(marks),
        "texts": 1,
    }


def _to_figures(total: Counter[str]) -> dict[str, Any]:
    figures: dict[str, Any] = {"precision": share(total["right"], total["named"])}
    figures["recall"] = share(total["found"], total["marked"])
    return figures | {"names": total["marked"], "texts": total["texts"]}


def _key(name: str) -> str:
    return " ".join(name.casefold().split()).strip("\"'“”`,:;").removesuffix("()").rstrip(".")


async def _read_page(page: str, pages: Path, rfcs: Path) -> Document | None:
    path = find_rfc(rfcs, page[4:]) if page.startswith("rfc:") else pages / page
    if not path.exists():
        return None  # its package is not there
    items = [item async for item in read([path])]
    assert isinstance(items[0], Document), items
    return items[0]


def find_rfc(folder: Path, name: str) -> Path:
    """Find an RFC in the folders of its states."""
    return next(folder.rglob(name), folder / name)


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Run what there is data for."""
    figures: dict[str, Any] = {"notes": await measure_notes(given.show)}
    if given.pages:
        figures["technical"] = await measure_marked(given.pages, given.rfc, given.show)
    if (file := given.data / "redocred" / "dev.json").exists():
        figures["re-docred"] = await measure_redocred(load(file)[: given.most])
    if (folder := given.data / "mine").exists():
        figures["mine"] = await measure_mine(folder, given.most)
    return figures


def main(arguments: Iterable[str] | None = None) -> None:
    """Measure, print a table, and the figures as the last line."""
    parser = argparse.ArgumentParser(prog="python -m bench.names", description=__doc__)
    parser.add_argument("--pages", type=Path, help="folder of unpacked packages")
    parser.add_argument("--rfc", type=Path, default=Path("RFC"), help="folder of RFCs")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--most", type=int, default=500, help="documents of each set")
    parser.add_argument("--show", action="store_true", help="list what is wrong and missed")
    given = parser.parse_args(list(arguments) if arguments is not None else None)
    figures = asyncio.run(measure(given))
    for name, row in figures.items():
        print(f"{name:12}{row}")
    print_result("names", figures, {"documents": given.most})


if __name__ == "__main__":
    main()
