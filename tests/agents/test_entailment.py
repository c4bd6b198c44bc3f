"""What bears a sentence out: names, numbers, the thing said, and whether it is denied."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.answering.finish import fits_answer_type
from clew.agents.citing.entailment import Quote, is_entailed, parse_claim
from clew.agents.citing.support import find_best_citation, find_citations
from clew.types import Passage

TOWN = """Vera Lund (4 May 1931 – 9 June 2001) was a Danish film director. She was born in Ribe, \
a small town. Her father was Per Lund, a smith. She was married to the composer Karl Brask.

Karl Brask (1 January 1920 – 4 March 1999) was a composer born in Odense. He died in Aarhus.

The Grey Mill is a 1970 film directed by Vera Lund. The Long Ferry is a 1981 film directed by \
Jon Dahl.

Ribe is a town. Its population is 8,000. Ida Holm was a civil engineer born in Kolding."""
PAGE = Passage("c", "doc", "Vera Lund", 1.0, TOWN, 0, len(TOWN))


@pytest.mark.parametrize(
    "sentence",
    [
        "Karl Brask murdered Vera Lund.",
        "Vera Lund won a Bodil.",
        "Karl Brask was born in Aarhus.",
        "Jon Dahl directed The Grey Mill.",
        "Ida Holm was a painter born in Kolding.",
        "Vera Lund was never married to Karl Brask.",
        "The population of Ribe is 9,000.",
        "Jon Dahl was born in Ribe.",
        "Vera Lund was born in 1932.",
        "The Grey Mill was the longer film.",
    ],
)
def test_what_nobody_said_is_not_cited(sentence: str) -> None:
    assert find_citations(sentence, [1], [PAGE]) == []
    assert find_best_citation(sentence, [PAGE]) is None


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("Vera Lund was married to Karl Brask.", "married to the composer Karl Brask"),
        ("Karl Brask's wife was Vera Lund.", "married to the composer Karl Brask"),
        ("Vera Lund was born in 1931.", "(4 May 1931"),
        ("Karl Brask died in Aarhus.", "He died in Aarhus."),
        ("The director of The Grey Mill was born in Ribe.", "born in Ribe"),
        ("The Long Ferry was released in 1981.", "a 1981 film"),
        ("Ribe has a population of 8,000.", "8,000"),
        ("Karl Brask is older than Vera Lund.", "Karl Brask"),
    ],
)
def test_what_is_said_in_other_words_is_cited(sentence: str, quote: str) -> None:
    cited = find_citations(sentence, [1], [PAGE])
    assert quote in " ".join(one.quote for one in cited)
    assert all(TOWN[one.start : one.end] == one.quote for one in cited)


def test_a_title_that_another_has_excuses_nothing() -> None:
    text = "The Salt Road is a film directed by Anselm Krug."
    other = Passage("c", "doc", "The Lantern Keeper", 1.0, text, 0, len(text))
    assert find_citations("Anselm Krug directed The Lantern Keeper.", [1], [other]) == []


def test_scripts_without_capitals() -> None:
    text = "李明华出生于青岛。王晓东1963年出生于成都。"
    page = Passage("c", "doc", "人物", 1.0, text, 0, len(text))
    assert find_citations("李明华出生于青岛。", [1], [page])
    assert find_citations("王晓东出生于青岛。", [1], [page]) == []
    assert find_citations("李明华没有出生于青岛。", [1], [page]) == []


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("张三出生在上海。", "张三出生在杭州。"),
        ("李四出生在杭州。", "张三出生在杭州。"),
        ("张三去世于杭州。", "张三出生于杭州。"),
        ("张三出生于1891年。", "张三出生于1890年。"),
        ("张三有四个孩子。", "张三有三个孩子。"),
        ("田中は東京で生まれた。", "田中は京都で生まれた。"),
        ("田中はパリで生まれた。", "田中はロンドンで生まれた。"),
        ("철수는 서울에서 태어났다.", "철수는 부산에서 태어났다."),
    ],
)
def test_another_name_is_seen_without_capitals(sentence: str, text: str) -> None:
    page = Passage("c", "doc", "", 1.0, text, 0, len(text))
    assert find_citations(sentence, [1], [page]) == []
    assert find_best_citation(sentence, [page]) is None
    assert find_citations(text, [1], [page])


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("王五从北京大学毕业。", "王五毕业于北京大学，后来在上海工作。"),
        ("王五后来在上海工作。", "王五毕业于北京大学，后来在上海工作。"),
        ("《红河》是由章家瑞执导的电影。", "《红河》是2009年上映的一部中国电影，由章家瑞执导。"),
        ("東京は日本の首都です。", "東京は日本の首都である。"),
        ("김철수는 서울에서 태어났다.", "김철수는 1950년 서울에서 태어난 화가이다."),
    ],
)
def test_without_capitals_the_same_in_another_order_is_cited(sentence: str, text: str) -> None:
    page = Passage("c", "doc", "", 1.0, text, 0, len(text))
    assert find_citations(sentence, [1], [page])


def test_without_capitals_the_title_says_whom_a_pronoun_means() -> None:
    text = "张三是画家。他出生于杭州。李四出生于上海。"
    page = Passage("c", "doc", "张三", 1.0, text, 0, len(text))
    [found] = find_citations("张三出生于杭州。", [1], [page])
    assert found.quote == "他出生于杭州。"
    assert find_citations("张三出生于上海。", [1], [page]) == []
    untitled = Passage("c", "doc", "", 1.0, text, 0, len(text))
    assert find_citations("张三出生于杭州。", [1], [untitled])


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Wien ist nicht groß.", "Wien ist groß."),
        ("Karl hat keine Kinder in Wien.", "Karl hat Kinder in Wien."),
        ("Karl n'est pas mort à Paris.", "Karl est mort à Paris."),
        ("Иван не родился в Москве.", "Иван родился в Москве."),
        ("Ana nunca vivió en Madrid.", "Ana vivió en Madrid."),
        ("O João não nasceu em Lisboa.", "O João nasceu em Lisboa."),
        ("لم يولد محمد في القاهرة", "يولد محمد في القاهرة"),
        ("田中は京都で生まれない。", "田中は京都で生まれた。"),
        ("Nobody survived the wreck.", "Everybody survived the wreck."),
        ("Ida Holm failed to become a doctor.", "Ida Holm became a doctor."),
        ("The stamp costs -5 crowns.", "The stamp costs 5 crowns."),
        ("The stamp costs 5 crowns.", "The stamp costs −5 crowns."),
    ],
)
def test_a_denial_is_seen_in_many_languages(sentence: str, text: str) -> None:
    page = Passage("c", "doc", "", 1.0, text, 0, len(text))
    assert find_citations(sentence, [1], [page]) == []
    assert find_citations(text, [1], [page])


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Vera Lund directed the film.", 'Vera Lund directed the film "Never Say No".'),
        ("Vera Lund lived at No. 5.", "Vera Lund lived at No. 5 for years."),
        ("Vera Lund wrote non-fiction.", "Vera Lund wrote books of non-fiction."),
        ("Nie Er wrote the march.", "The march was written by Nie Er."),
        ("他去过非洲。", "他去过非洲旅行。"),
        ("Vera Lund lived there in 1713.", "Vera Lund lived there (1700 -1713)."),
    ],
)
def test_what_looks_like_a_denial_is_none(sentence: str, text: str) -> None:
    page = Passage("c", "doc", "", 1.0, text, 0, len(text))
    assert find_citations(sentence, [1], [page])


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_has_an_answer(sentence: str, text: str) -> None:
    page = Passage("c", "doc", "t", 1.0, text, 0, len(text))
    parse_claim(sentence)
    assert is_entailed(sentence, [Quote(page, 0, len(text))]) in (True, False)
    for one in find_citations(sentence, [1], [page]):
        assert text[one.start : one.end] == one.quote


@pytest.mark.parametrize(
    ("question", "short", "fits"),
    [
        ("When was Vera Lund born?", "Ribe", False),
        ("When was Vera Lund born?", "4 May 1931", True),
        ("How many films did she direct?", "Vera Lund", False),
        ("How many films did she direct?", "two", True),
        ("Who directed The Grey Mill?", "1970", False),
        ("Where was she born?", "Ribe", True),
        ("李明华何时出生？", "青岛", False),
    ],
)
def test_an_answer_is_of_the_kind_asked_for(question: str, short: str, fits: bool) -> None:
    assert fits_answer_type(question, short) == fits


STAFF = """# Hangar

| Team: Rigging | Lead: Nora Vik | Kites: 14 |
| Team: Launch | Lead: Omar Saad | Kites: 52 |

- **Ballast**: a bag of sand that keeps a kite low.
- **Bridle**: the cords that tie a kite to its line.
"""
HANGAR = Passage("h", "hangar.md", "Hangar", 1.0, STAFF, 0, len(STAFF))


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("The lead of the Launch team is Omar Saad.", True),
        ("The lead of the Launch team is Nora Vik.", False),
        ("The Rigging team has 14 kites.", True),
        ("The Rigging team has 52 kites.", False),
        ("Rigging has 14 kites and Launch has 52 kites.", True),
        ("Ballast is a bag of sand that keeps a kite low.", True),
        ("Ballast is the cords that tie a kite to its line.", False),
        ("A bridle is the cords that tie a kite to its line.", True),
    ],
)
def test_a_row_or_term_supports_nothing_about_another(sentence: str, said: bool) -> None:
    assert bool(find_citations(sentence, [1], [HANGAR])) is said
    assert (find_best_citation(sentence, [HANGAR]) is not None) is said


def page_of(title: str, text: str) -> Passage:
    return Passage(title, title, title, 1.0, text, 0, len(text))


def test_what_the_page_of_another_thing_says_is_not_taken_for_this_one() -> None:
    herald = page_of("Ribe Herald", "The Ribe Herald was a weekly magazine founded in Jutland.")
    post = page_of("Lund Post", "The Lund Post is a Swedish weekly magazine about boats.")
    said = "The Ribe Herald was a Swedish weekly magazine founded in Jutland."
    assert find_citations(said, [1, 2], [herald, post]) == []
    assert find_citations(said.replace("Swedish ", ""), [1, 2], [herald, post])


def test_a_page_that_the_other_leads_to_counts() -> None:
    bridge = page_of("Grey Bridge", "The Grey Bridge was designed by the engineer Vera Lund.")
    lund = page_of("Vera Lund", "Vera Lund studied and was born in Kiel.")
    said = "The designer of the Grey Bridge was born in Kiel."
    assert len(find_citations(said, [1, 2], [bridge, lund])) == 2
