"""The agent without a model: what the span reader of the package reads, names and quotes."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.agents.base import Answer
from clew.engine import KnowledgeBase
from clew.reader.span_reader import find_reader
from clew.types import Document
from conftest import OpenFilled, document, stream

FILMS = (
    document(
        "rain",
        "Winter Rain is a 1964 drama film directed by Olga Marten and set in a harbour town.",
        "Winter Rain",
    ),
    document(
        "salt",
        "Salt Road is a 1971 adventure film directed by Piet Harring. It was filmed in Norway.",
        "Salt Road",
    ),
    document("olga", "Olga Marten (born 3 May 1931) was a director of films.", "Olga Marten"),
    document("piet", "Piet Harring (born 12 June 1919) was a director.", "Piet Harring"),
    document("tide", "潮汐站建于1932年。潮汐站由林海设计。", "潮汐站"),
)


async def fill_films(base: KnowledgeBase) -> None:
    """Add four pages about films, and one in Chinese."""
    await base.take(stream(FILMS))


@pytest.fixture
def reading(valley: KnowledgeBase) -> KnowledgeBase:
    """The valley with the reader of the package."""
    return with_reader(valley)


@pytest.fixture
async def films(open_filled: OpenFilled) -> KnowledgeBase:
    """The films with the reader of the package."""
    return with_reader(await open_filled(fill_films))


def with_reader(base: KnowledgeBase) -> KnowledgeBase:
    reader = find_reader(None)
    if reader is None:
        pytest.skip("the reader's packages are not installed")
    base.reader = reader
    return base


async def check_quotes(base: KnowledgeBase, answer: Answer) -> None:
    """Every citation is a span of its document, and its number stands behind its quote."""
    sources = await base.store.sources()
    async with base.store.snapshot() as now:
        for number, cited in enumerate(answer.citations, start=1):
            held = (await now.documents([sources[cited.doc].document])).popitem()[1]
            assert held.text[cited.start : cited.end] == cited.quote
            assert f"{' '.join(cited.quote.split())} [{number}]" in answer.answer


class TestNamed:
    async def test_one_passage_answers(self, reading: KnowledgeBase) -> None:
        answer = await reading.ask("Who designed Marrow Bridge?")
        assert answer.candidate == "Ilse Brandvik" and answer.verdict == "answered"
        assert answer.answer == "Ilse Brandvik\nIt was designed by Ilse Brandvik. [1]"
        assert answer.confidence >= 0.5 and answer.usage.calls == 0
        await check_quotes(reading, answer)

    async def test_a_name_leads_to_the_page_that_answers(self, reading: KnowledgeBase) -> None:
        answer = await reading.ask("Where was the designer of Marrow Bridge born?")
        assert answer.candidate == "Hallowmere"
        assert [one.doc for one in answer.citations] == ["bridge", "ilse"]
        await check_quotes(reading, answer)

    async def test_two_dates_are_compared(self, films: KnowledgeBase) -> None:
        first = await films.ask("Which film came out first, Salt Road or Winter Rain?")
        later = await films.ask("Which film came out later, Salt Road or Winter Rain?")
        assert (first.candidate, later.candidate) == ("Winter Rain", "Salt Road")
        assert {one.doc for one in first.citations} == {"rain", "salt"}
        await check_quotes(films, first)

    async def test_dates_are_compared_one_page_further(self, films: KnowledgeBase) -> None:
        question = "Which film has the director who is older, Winter Rain or Salt Road?"
        answer = await films.ask(question)
        assert answer.candidate == "Salt Road"
        assert {one.doc for one in answer.citations} == {"rain", "olga", "salt", "piet"}


class TestNotNamed:
    async def test_without_an_answer_the_closest_passages_are_quoted(
        self, reading: KnowledgeBase
    ) -> None:
        answer = await reading.ask("Who repaired the clock of the fishing town?")
        assert not answer.candidate and answer.confidence < 0.5
        assert answer.answer.startswith("No passage clearly answers this. The closest passages:\n")
        assert answer.citations and answer.verdict == "refused"
        await check_quotes(reading, answer)

    async def test_it_is_refused_where_only_sure_answers_are_wanted(
        self, reading: KnowledgeBase
    ) -> None:
        answer = await reading.ask("Who repaired the clock of the railway station?", mode="reject")
        assert answer.verdict == "refused" and not answer.candidate

    async def test_a_script_that_the_reader_does_not_know_is_quoted(
        self, films: KnowledgeBase
    ) -> None:
        answer = await films.ask("潮汐站由谁设计？")
        assert answer.citations[0].quote == "潮汐站由林海设计。" and not answer.candidate
        assert answer.answer.startswith("没有段落明确回答这个问题。")
        await check_quotes(films, answer)

    async def test_without_a_reader_passages_are_quoted(self, valley: KnowledgeBase) -> None:
        valley.reader = None
        answer = await valley.ask("Who designed Marrow Bridge?")
        assert answer.citations[0].quote == "It was designed by Ilse Brandvik."
        assert not answer.candidate
        await check_quotes(valley, answer)


async def test_a_row_of_a_table_is_read(base: KnowledgeBase) -> None:
    rows = "| Town | Mayor |\n| --- | --- |\n| Pellworth | Anna Rook |\n| Vessen | Carl Ode |\n"
    await with_reader(base).take(stream([document("towns", rows, "Towns and mayors")]))
    answer = await base.ask("Who is the mayor of Vessen?")
    assert "Carl Ode" in answer.citations[0].quote
    await check_quotes(base, answer)


WORDS = st.lists(st.sampled_from(["Tarn", "who", "born", "1921", "first", "or", "Ilse", "?"]))


@given(words=WORDS, text=st.text(min_size=1).filter(lambda text: text.isprintable()))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
async def test_quotes_are_spans_whatever_is_asked(
    valley: KnowledgeBase, words: list[str], text: str
) -> None:
    """Also of texts of odd characters, which are added as they come."""
    made: Document = document("odd", f"Tarn {text}. Ilse was born in 1921.", "Odd")
    await valley.take(stream([made]))
    question = " ".join(words).strip() or "Tarn?"
    await check_quotes(valley, await valley.ask(question))
