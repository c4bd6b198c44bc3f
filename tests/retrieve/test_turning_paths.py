"""Paths along a relation and back, from which a name that stands for two things leads on."""

from pathlib import Path

from clew.engine import KnowledgeBase
from clew.testing.word_scorer import WordScorer

FILMS = "Grey Coast", "Night Ferry", "Low Water", "1984"  # the last is called like a year
OTHERS = "directed_by", "written_by", "in_language", "has_genre", "has_tags", "has_imdb_votes"
YEARS = dict(zip(FILMS, ("1991", "1984", "1997", "1956"), strict=True))
QUESTION = (
    "what is the year of the release of the films that share actors with the film Grey Coast?"
)


async def test_a_year_that_is_also_a_film_leads_no_further(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    rows = [(film, "release_year", YEARS[film]) for film in FILMS]
    rows += [(film, one, f"{film} {one}") for film in FILMS for one in OTHERS]
    rows += [(film, "starred_actors", "Ada Lunn") for film in FILMS[:3]]
    graph = tmp_path / "films.tsv"
    graph.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
    await base.import_graph(graph)
    base.scorer = WordScorer({QUESTION: ["1984 release year ?"]}, right=0.999)
    answer = (await base.ask(QUESTION, recipe="lego-12")).answer.partition("\n")[0]
    assert "1984" in answer
    assert "1997" in answer
    assert "1956" not in answer
