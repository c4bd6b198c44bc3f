"""A small graph of films, for the tests of graph recipes."""

from collections.abc import Sequence
from pathlib import Path

from clew.engine import KnowledgeBase
from clew.llm.embed import Embedder, EmbedRole, Vectors
from conftest import Fill, OpenFilled

FILMS = """\
Grey Coast|directed_by|Anton Reeve
Grey Coast|starred_actors|Clara Lindqvist
Grey Coast|starred_actors|Ilse Brandvik
Grey Coast|release_year|1988
Grey Coast|has_genre|Drama
Night Ferry|directed_by|Anton Reeve
Night Ferry|starred_actors|Clara Lindqvist
Night Ferry|release_year|1991
Night Ferry|has_genre|Comedy
Night Ferry|written_by|Mara Holt
Stone Orchard|directed_by|Mara Holt
Stone Orchard|written_by|Anton Reeve
Stone Orchard|starred_actors|Peter Vaal
Stone Orchard|release_year|1991
Stone Orchard|has_genre|Drama
The Prowler|directed_by|Peter Vaal
The Prowler|release_year|1999
Prowler|directed_by|Mara Holt
Prowler|release_year|2004
"""


_MEANS = {
    "films": "directed by starred actors release year has genre written by",
    "director": "directed by",
}


class Knowing:
    """An embedder to which some words mean what others say, as a trained one has learnt."""

    def __init__(self, embed: Embedder) -> None:
        self._embed = embed
        self.name, self.dim = embed.name, embed.dim

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        return await self._embed([_MEANS.get(text, text) for text in texts], role=role)


async def take_films(base: KnowledgeBase, folder: Path, rows: str = FILMS) -> KnowledgeBase:
    """Import the films."""
    file = folder / "films.txt"
    file.write_text(rows, encoding="utf-8")
    await base.import_graph(file)
    assert base.embed is not None
    base.embed = Knowing(base.embed)
    return base


async def fill_films(base: KnowledgeBase) -> None:
    """Import the films, for tests that begin with a copy of them."""
    await take_films(base, Path(base.settings.kb).parent)


async def open_films(open_filled: OpenFilled, fill: Fill = fill_films) -> KnowledgeBase:
    """Open a copy of the films, or of another graph."""
    base = await open_filled(fill)
    assert base.embed is not None
    base.embed = Knowing(base.embed)
    return base


async def best(base: KnowledgeBase, question: str, recipe: str, *entities: str) -> list[str]:
    """The names ranked as answers, best first."""
    results = await base.search(question, recipe=recipe, entities=entities)
    return [one.name for one in results.evidence.entities if one.by == "answer"]
